"""What a command runs by a name: targets of a Makefile, recipes of a justfile, scripts of a package.json, and the like.

Where it cannot be told which of them, it is all: a judge that nobody follows can be changed.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from greenroom.abilities.checks.build_files import RECIPES
from greenroom.abilities.checks.command_lines import as_called, placed
from greenroom.abilities.checks.finding.javascript import told_scripts
from greenroom.abilities.checks.finding.recipes import JUSTFILES, MAKEFILES, Rules
from greenroom.abilities.checks.looking import Look, Place, json_object, table, toml
from greenroom.core.base.records import record

FOLDER: Final = ("-C", "-d", "--directory", "--working-directory", "--dir", "--cwd", "--prefix")
FILE: Final = (
    *("-f", "-t", "-c", "--file", "--makefile", "--justfile", "--taskfile", "--rakefile", "--noxfile", "--config"),
)
LETTERS: Final[Mapping[str, str]] = {
    "make": "Cf",
    "gmake": "Cf",
    "just": "df",
    "task": "dt",
    "rake": "f",
    "nox": "f",
    "tox": "c",
    "pre-commit": "c",
    "npm": "C",
    "pnpm": "C",
}
"""Which short options of a program name a folder or a file."""

OTHER: Final = "-"
REDIRECTED: Final = ">"
TO_A_FILE: Final = re.compile(r"\d*(?:<|>>?)(.*)")
MAKES: Final = ("make", "gmake")
OF_SEVERAL: Final = ("lerna", "turbo", "nx")
NODES: Final = ("npm", "pnpm", "yarn", "bun", *OF_SEVERAL)
IN_PARTS: Final = re.compile(r"(?:-w|-ws|-r|-F|--recursive|--workspaces?|--filter|workspaces?)(?:=|$)")
"""How packages of a repository of several are chosen."""

LISTED: Final = re.compile(r"^\s*-\s*['\"]?([^'\"#\s]+)", re.MULTILINE)
SHORTER: Final[Mapping[str, str]] = {"t": "test", "tst": "test"}
TASKS: Final = ("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml", "Taskfile.dist.yml")
WHOLE: Final[Mapping[str, tuple[str, ...]]] = {
    "task": TASKS,
    "rake": ("Rakefile", "rakefile", "Rakefile.rb"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "invoke": ("tasks.py",),
    "inv": ("tasks.py",),
    "doit": ("dodo.py",),
    "pre-commit": (".pre-commit-config.yaml", ".pre-commit-config.yml"),
}
"""Programs of whose files nobody here knows the parts."""

TABLES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "composer": (("composer.json", "scripts"),),
    "deno": (("deno.json", "tasks"), ("deno.jsonc", "tasks")),
}
IN_PYPROJECT: Final = frozenset({"hatch", "pdm", "poe", "task", "rye"})
BRACKETS: Final = re.compile(r"[\[\]{},\"']")


@record
class Called:
    """What is run by its name: command lines, the `folder` in which they run, and the `files` in which they stand."""

    text: str
    folder: str
    files: tuple[str, ...]


@record
class _Asked:
    """How a program is called: where it reads, the `files` that it is told to read, and what it is to run."""

    folder: str
    files: tuple[str, ...]
    names: tuple[str, ...]


def has_recipes(word: str) -> bool:
    """Whether it is the name of a program that runs something by a name."""
    program = PurePosixPath(word).name
    return any(program in some for some in (MAKES, NODES, WHOLE, TABLES, IN_PYPROJECT, ("just",)))


def called(words: Sequence[str], folder: str, look: Look) -> Iterator[Called]:
    """What the first of these words runs that the others name; nothing for a program that has no recipes."""
    program = PurePosixPath(words[0]).name
    if program in (*MAKES, "just"):
        yield from _recipes(program, _asked(words, folder, look), look)
    elif program in NODES:
        yield from _scripts(words, folder, look)
    if program in WHOLE:
        yield from _whole(_asked(words, folder, look), WHOLE[program], look)
    if program in TABLES or program in IN_PYPROJECT:
        yield from _tables(program, _asked(words, folder, look).folder, look)


def _asked(words: Sequence[str], folder: str, look: Look) -> _Asked:
    letters = LETTERS.get(PurePosixPath(words[0]).name, "")
    left = deque(words[1:])
    names: list[str] = []
    files: list[str] = []
    while left:
        word = left.popleft()
        name, value = _option(word, letters)
        if name in (*FOLDER, *FILE, REDIRECTED):
            value = value or (left.popleft() if left else "")
        if name in FILE:
            files.append(value)
        elif name in FOLDER and look.names(placed(folder, value)):
            folder = placed(folder, value)
        elif name in FOLDER:
            names.append(value)  # nobody knows where that is
        elif not name and not word.isdigit():
            names.append(word)
    return _Asked(folder=folder, files=tuple(files), names=tuple(names))


def _option(word: str, letters: str) -> tuple[str, str]:
    """The option that a word is and what it is given; empty for none. What sets a variable is one as well. Short ones
    go together, and with what they are given: `-sf ci.mk`, `-Cweb`."""
    if redirected := TO_A_FILE.fullmatch(word):
        return REDIRECTED, redirected[1]
    if word.startswith("--"):
        name, _, value = word.partition("=")
        return name, value
    short = re.fullmatch(rf"-[A-Za-z]*?([{letters}])(.*)", word) if letters else None
    if short is not None:
        return f"-{short[1]}", short[2]
    return (OTHER, "") if word.startswith("-") or "=" in word else ("", "")


def _recipes(program: str, asked: _Asked, look: Look) -> Iterator[Called]:
    usual = MAKEFILES if program in MAKES else JUSTFILES
    folder = asked.folder if program in MAKES else _above(asked.folder, usual, look)
    place = Place(look, folder)
    named = [one for one in asked.files if look.read(placed(folder, one)) is not None]
    files = named if named and len(named) == len(asked.files) else [*named, place.first(*usual)]
    rules = Rules(place, *filter(None, files))
    names = asked.names or rules.usual
    unknown = [one for one in names if one not in rules.targets]
    arguments = program == "just" and len(unknown) < len(names)  # what comes after a recipe's name is given to it
    lost = len(named) < len(asked.files) or (bool(unknown) and not arguments)
    text = rules.means(*(rules.targets if lost else names))
    every = dict.fromkeys((*rules.files, *usual))  # a new one may take the place of the one there is
    yield Called(text=text, folder=folder, files=tuple(placed(folder, one) for one in every))


def _scripts(words: Sequence[str], folder: str, look: Look) -> Iterator[Called]:
    asked = _asked(words, folder, look)
    folder = _above(asked.folder, ("package.json",), look)
    names = [SHORTER.get(one, one) for one in asked.names]
    several = PurePosixPath(words[0]).name in OF_SEVERAL or any(map(IN_PARTS.match, words))
    inside = _packages(Place(look, folder)) if several else ()
    for one in (folder, *(placed(folder, path) for path in inside)):
        text = told_scripts(Place(look, one), names, every=any("$" in one for one in names))
        yield Called(text=text, folder=one, files=())


def _packages(place: Place) -> Iterator[str]:
    """The folders of a repository of several packages; where it says `packages/*`, whatever lies there."""
    said = list(_strings(json_object(place.text("package.json")).get("workspaces")))
    listed = LISTED.findall(place.text("pnpm-workspace.yaml"))
    for pattern in (*said, *listed):
        above, star, _ = pattern.partition("/*")
        yield from (f"{above}/{name}" for name in sorted(place.inside(above))) if star else (pattern,)


def _whole(asked: _Asked, usual: Sequence[str], look: Look) -> Iterator[Called]:
    folder = _above(asked.folder, usual, look)
    place = Place(look, folder)
    for file in (*asked.files, *(one for one in usual if one in place.names)):
        text = place.text(file)
        plain = as_called(text) if file.endswith((".py", ".rb", "file")) else BRACKETS.sub(" ", text)
        yield Called(text=f"{text}\n{plain}", folder=folder, files=(placed(folder, file),))


def _tables(program: str, folder: str, look: Look) -> Iterator[Called]:
    """Of these files most is the work itself, and only the tables of commands are read."""
    files = TABLES.get(program, ())
    here = _above(folder, [*(file for file, _ in files), *(("pyproject.toml",) if not files else ())], look)
    place = Place(look, here)
    found: list[object] = [table(json_object(place.text(file)), key) for file, key in files]
    if not files:
        project = toml(place.text("pyproject.toml"))
        found = [table(project, "tool", *path) for path in RECIPES]
    yield Called(text="\n".join(_strings(found)), folder=here, files=())


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for one in value.values() for text in _strings(one))
    elif isinstance(value, list):
        yield from (text for one in value for text in _strings(one))


def _above(folder: str, names: Sequence[str], look: Look) -> str:
    """The next folder that has one of these: most programs look for their file in those above as well."""
    here = folder
    while look.names(here).isdisjoint(names):
        above = posixpath.dirname(here) or "."
        if here == above or here.startswith(".."):
            return folder
        here = above
    return here
