"""What of some work a person's hooks would run when it is committed: they run as the person, behind no walls.

Looked for are hooks that lie in the tree or lead into it, all that those name (a file, or a folder with whatever is
below it), what files that they name do in turn, and the settings of programs that keep hooks for people. Where only a
run could tell, everything counts that is not there for people to read. What tests import is not followed: who lets a
hook run the tests at each commit lets it run the work.
"""

from __future__ import annotations

import asyncio
import json
import os
import posixpath
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from greenroom.adapters.git.comparing import contents, delta, paths
from greenroom.adapters.git.hook_words import DOCS, mentioned, of_code, runs_anything, spoken
from greenroom.adapters.git.house import House

HOOKS: Final = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"),
    *("post-index-change", "reference-transaction", "pre-auto-gc"),
)
"""What git runs when a commit is made."""

NODE: Final = "package.json"
MAKE: Final = ("Makefile", "makefile", "GNUmakefile")
KEEPERS: Final[Mapping[str, Sequence[str]]] = {
    "pre-commit": (".pre-commit-config.yaml", ".pre-commit-config.yml"),
    "prek": (".pre-commit-config.yaml", "prek.toml"),
    "lefthook": ("lefthook.*", ".lefthook.*", "lefthook-local.*", ".lefthook/*", ".lefthook-local/*"),
    "husky": (NODE, ".huskyrc*", ".husky/*"),
    "lint-staged": (NODE, ".lintstagedrc*", "lint-staged.config.*"),
    "simple-git-hooks": (NODE, ".simple-git-hooks.*", "simple-git-hooks.*"),
    "overcommit": (".overcommit.yml", ".git-hooks/*"),
    "npm": (NODE,),
    "pnpm": (NODE,),
    "yarn": (NODE,),
    "bun": (NODE,),
    "make": MAKE,
    "just": ("justfile", "Justfile", ".justfile"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
}
"""Programs that a hook may call, and where they are told what to run."""

USED: Final = ("scripts", "husky", "lint-staged", "simple-git-hooks", "pre-commit")
"""Parts of a package.json that say what to run; the rest of it may change."""

SHELLS: Final = ("", ".sh", ".bash", ".zsh", ".yml", ".yaml", ".toml", ".ini", ".mk", ".cfg", ".json")
"""How files end in which command lines stand; all others are programs that load others."""

FRAMEWORK: Final = KEEPERS["prek"][0]
LOCAL: Final = re.compile(r"repo:\s*['\"]?(?:local|[./~])")
FOUND_BY_LOOKING: Final = re.compile(r"importlib|__import__|runpy|\bexec\(|\beval\(|glob|listdir|iterdir|readdir|walk")
WORD: Final = re.compile(r"[\w@%+.~/-]+")
MOST: Final = 50
"""Files that are followed; a hook that leads to more may run anything."""

LARGEST: Final = 64 * 1024


async def hook_files(house: House, base: str, tip: str) -> tuple[str, ...]:
    """Files that the work changed and that hooks or filters of the person would run."""
    if house.repository.own:
        return ()
    changed = frozenset(one.path for one in await delta(house, base, tip))
    folder = await hooks_folder(house)
    look = Look(house.repository.root, changed, await paths(house, base))
    found = await asyncio.to_thread(look.found, folder, house.habits.programs)
    same = await _same_scripts(house, base, tip, [one for one in found if posixpath.basename(one) == NODE])
    return tuple(sorted(found - same))


async def filter_files(house: House, base: str, tip: str) -> tuple[str, ...]:
    """Of those the filters: without them there is nothing to commit."""
    changed = frozenset(one.path for one in await delta(house, base, tip))
    look = Look(house.repository.root, changed, await paths(house, base))
    return tuple(sorted(await asyncio.to_thread(look.followed, [(one, "") for one in house.habits.filters])))


async def _same_scripts(house: House, base: str, tip: str, some: Sequence[str]) -> set[str]:
    old, new = await contents(house, base, some), await contents(house, tip, some)
    return {one for one in some if _scripts(old.get(one, b"")) == _scripts(new.get(one, b""))}


def _scripts(content: bytes) -> object:
    """What a package.json says is to be run; one that cannot be read is taken whole."""
    try:
        found = json.loads(content or b"{}")
    except ValueError:
        return content
    return {name: found.get(name) for name in USED} if isinstance(found, dict) else content


async def hooks_folder(house: House) -> Path:
    """Where the person's hooks lie."""
    said = await house.as_person().ask("rev-parse", "--git-path", "hooks")
    return house.repository.root / os.fsdecode(said).rstrip("\n")


class Look:
    """A look at a person's tree, in which these files are going to change."""

    def __init__(self, root: Path, changed: frozenset[str], there: Iterable[str]) -> None:
        self._root = root
        self._changed = changed
        self._there = frozenset(there)

    def found(self, folder: Path, programs: Iterable[str]) -> set[str]:
        """Of the changed files those that hooks in a folder, or programs that settings name, may run."""
        own = self._inside(folder)
        found = {one for one in self._changed if own and _is_hook(one, own)}
        texts = [(one, "") for one in programs]
        for place in self._hooks(folder):
            texts.append((_text(place), self._inside(place)))
            found |= {self._inside(place)} & self._changed
        return found | self.followed(texts)

    def followed(self, begun: Iterable[tuple[str, str]]) -> set[str]:
        """Of the changed files those that these texts lead to, each with the path at which it lies in the tree."""
        texts, seen, found = deque(begun), set[str](), set[str]()
        while texts:
            text, path = texts.popleft()
            said = spoken(text, self._root) if _is_told(path) else of_code(text)
            found |= self._may_run(text, said, path)
            for one in (mentioned(self._there, said, around=False) | self._told_in(said)) - seen:
                seen.add(one)
                texts.append((_text(self._root / one), one))
            if len(seen) > MOST:
                return found | self._below("")
        return found

    def _may_run(self, text: str, said: str, path: str) -> set[str]:
        """The changed files that one text may run. What a program finds by looking around lies beside it."""
        found = mentioned(self._changed, said) | (self._told_in(said) & self._changed)
        if _is_told(path):
            return found | (self._below("") if runs_anything(said) else set())
        beside = posixpath.dirname(path)
        return found | (self._below(beside) if beside or FOUND_BY_LOOKING.search(text) else set())

    def _below(self, folder: str) -> set[str]:
        start = f"{folder}/" if folder else ""
        return {one for one in self._changed if one.startswith(start) and not one.lower().endswith(DOCS)}

    def _told_in(self, text: str) -> set[str]:
        """Files in which programs that a text names are told what to run."""
        words = set(WORD.findall(text))
        patterns = {one for word in words for one in KEEPERS.get(posixpath.basename(word), ())}
        return {path for path in self._there | self._changed if any(_is_like(path, one) for one in patterns)}

    def _hooks(self, folder: Path) -> Iterator[Path]:
        """Hooks that run. Husky's own folder has a file for each, which runs the person's in the one above."""
        yield from (folder / name for name in HOOKS if os.access(folder / name, os.X_OK))
        if folder.name == "_":
            yield from (folder.parent / name for name in HOOKS if os.access(folder.parent / name, os.R_OK))

    def _inside(self, place: Path) -> str:
        """A place as the tree knows it, wherever links lead; empty where it is elsewhere, or git's own."""
        where, root = Path(os.path.realpath(place)), Path(os.path.realpath(self._root))
        if not where.is_relative_to(root):
            return ""
        path = where.relative_to(root).as_posix()
        return "" if ".git" in path.split("/") else path


def _is_hook(path: str, folder: str) -> bool:
    """Whether a file lies where hooks are; husky's own folder is one below the person's."""
    if folder == ".":
        return path in HOOKS
    above = posixpath.dirname(folder) if posixpath.basename(folder) == "_" else ""
    return path.startswith((f"{folder}/", f"{above or folder}/"))


def _is_like(path: str, pattern: str) -> bool:
    """Whether a file is one of these, in the tree's own folder or in any other: a hook may go there first."""
    return fnmatch(path, pattern) or fnmatch(path, f"*/{pattern}")


def _is_told(path: str) -> bool:
    """Whether command lines stand in a file."""
    return posixpath.splitext(path)[1].lower() in SHELLS


def _text(place: Path) -> str:
    """What stands in a file; of a package.json what it says is to be run, and of other settings likewise."""
    try:
        with place.open("rb") as file:
            content = file.read(LARGEST)
    except OSError:
        return ""
    if place.name == NODE:
        return str(_scripts(content))
    text = content.decode(errors="replace")
    return _entries(text) if place.name == FRAMEWORK else text


def _entries(text: str) -> str:
    """What a configuration of pre-commit runs of the tree itself: other hooks come from elsewhere and read files."""
    local = [one for one in re.split(r"(?m)^\s*-\s+(?=repo:)", text) if LOCAL.match(one)]
    lines = (line.strip(" -") for one in local for line in one.splitlines())
    return "\n".join(line.partition(":")[2] for line in lines if line.startswith(("entry:", "args:")))
