"""All files that judge the work, however far away: what a check runs, what that runs, sources or imports, and so on.

Not every file that a check names is a judge: `mypy src` names the work itself. Whoever put that back would judge
nothing. So files are *sure* by their names, or *doubtful*: those are put back in every combination.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import Final

from greenroom.abilities.checks.build_files import READ_BELOW, READ_HERE
from greenroom.abilities.checks.command_lines import Command, as_called, commands, placed
from greenroom.abilities.checks.finding.called import called, has_recipes
from greenroom.abilities.checks.imported import asserts, imported
from greenroom.abilities.checks.judge_names import CODE, USED, is_set_up
from greenroom.abilities.checks.looking import Look
from greenroom.core.base.records import record
from greenroom.core.ports.checks import Check

MOST: Final = 2000
"""Files that are followed."""

TELLING: Final = ("test", "check", "verif", "assert", "expect", "golden", "spec")
READERS: Final = frozenset(
    {
        *("gcc", "cc", "clang", "g++", "c++", "clang++", "rustc", "javac", "tsc", "mypy", "ruff", "flake8", "pylint"),
        *("eslint", "prettier", "black", "isort", "pyright", "shellcheck", "biome", "cp", "mv", "rm", "mkdir", "touch"),
        *("cat", "diff", "cmp", "grep", "rg", "find", "ls", "echo", "printf", "test", "[", "git", "tar", "sed", "awk"),
        *("go", "cargo", "npm", "npx", "pnpm", "yarn", "pip", "chmod", "head", "tail", "sort", "wc", "install", "set"),
    }
)
"""Programs that read files, and run none of them."""

STARTERS: Final = frozenset({"npx", "npm", "pnpm", "yarn"})
"""Those of them that run another program, though no file."""

LOOPS: Final = frozenset({"for", "run-parts", "bats", "prove", "shellspec", "busted"})
"""Who runs all that it is given, folders too."""

SCRIPTS: Final = ("", ".sh", ".bash", ".zsh", ".ksh", ".bats", ".mk")
"""How files end that are command lines."""

IMPORTING: Final = (".py", ".js", ".mjs", ".cjs", ".ts")


@record
class Closure:
    """What judges: paths, each with the name of the check. Of `folders` all is a judge, also what is new in them; of
    what is `below` the folders of checks, files with names like these.

    `cut` says that there is more than anybody has followed.
    """

    sure: Mapping[str, str]
    doubtful: Mapping[str, str]
    folders: Mapping[str, str]
    below: Mapping[tuple[str, str], str] = {}
    cut: bool = False

    def check_of(self, path: str) -> str:
        """The check that this file has a say in; empty for none."""
        return self._using(path) or self._reading(path)

    def is_only_read_unasked(self, path: str) -> bool:
        """Whether no check names it: a program looks for a file of that name by itself, and takes from it what it needs
        to build."""
        return not self._using(path) and bool(self._reading(path))

    def _using(self, path: str) -> str:
        above = [str(one) for one in PurePosixPath(path).parents]
        found = self.sure.get(path) or self.doubtful.get(path)
        return found or next((self.folders[one] for one in above if one in self.folders), "")

    def _reading(self, path: str) -> str:
        above = {str(one) for one in PurePosixPath(path).parents}
        return next((check for (top, name), check in self.below.items() if top in above and _is_called(path, name)), "")

    def is_doubtful(self, path: str) -> bool:
        """Whether it may be the work itself."""
        return path in self.doubtful


def _is_called(path: str, name: str) -> bool:
    """In any letters: not every file system tells them apart."""
    return fnmatch.fnmatch(posixpath.basename(path).lower(), name.lower())


def closure(checks: Iterable[Check], look: Look, within: str = ".") -> Closure:
    """What judges in these checks, as `look` sees the base. `within` is the workspace's path in what is seen."""
    found = _Following(_Remembered(look))
    for check in checks:
        found.follow(check, placed(within or ".", check.folder))
    return found.closure


class _Remembered:
    """A look that asks for each folder once: a folder of a thousand tests is asked about a thousand times."""

    def __init__(self, look: Look) -> None:
        self.read = look.read
        self.names = cache(look.names)


class _Following:
    def __init__(self, look: Look) -> None:
        self._look = look
        self._sure: dict[str, str] = {}
        self._read_unasked: dict[str, str] = {}
        self._doubtful: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._below: dict[tuple[str, str], str] = {}
        self._left: deque[tuple[str, str]] = deque()
        self._calling: deque[tuple[tuple[str, ...], str]] = deque()
        self._called: set[tuple[tuple[str, ...], str]] = set()
        self._check = ""
        self._top = "."
        self._cut = False

    @property
    def closure(self) -> Closure:
        sure = {**self._read_unasked, **self._sure}
        return Closure(sure=sure, doubtful=self._doubtful, folders=self._folders, below=self._below, cut=self._cut)

    def follow(self, check: Check, folder: str) -> None:
        self._check, self._top = check.name, folder
        text = f"{check.line}\n{check.means}"
        self._text(text if ".run(" not in text else f"{text}\n{as_called(text)}", folder)
        while self._left or self._calling:
            if self._left:
                self._file(*self._left.popleft())
            else:
                self._recipes(*self._calling.popleft())

    # ---------------------------------------------------------------------------------------------- what a file says

    def _file(self, path: str, folder: str) -> None:
        """What a judge runs or imports. `folder` is where it runs."""
        content = self._look.read(path)
        if content is None or b"\0" in content[:1000]:
            return
        text = content.decode("utf-8", "replace")
        if path.endswith(IMPORTING):
            for one in imported(path, text, self._top):
                self._import(one, folder)
            paths = (line for line in as_called(text).splitlines() if "/" in line or "." in line)
            self._mentions("\n".join(paths), folder)
        elif posixpath.splitext(path)[1] in SCRIPTS:
            self._text(text, folder)
            if posixpath.dirname(path) not in ("", folder):  # a script may go to its own folder first
                self._text(text, posixpath.dirname(path))

    def _import(self, path: str, folder: str) -> None:
        """A module is a judge if its name says so, or if it asserts something: the others are what is judged."""
        if self._is_file(path) and self._judges(path):
            self._take(path, folder)

    def _mentions(self, text: str, folder: str) -> None:
        """What the source of a judge names, which may as well be the work: only what is a judge by itself counts."""
        for one in commands(text, folder):
            for path in {placed(one.folder, word) for word in one.words}:
                if self._is_file(path) and (self._judges(path) or path.endswith(SCRIPTS[1:])):
                    self._take(path, folder)

    def _text(self, text: str, folder: str) -> None:
        for one in commands(text, folder):
            for path, runs in self._named(one):
                self._word(path, one.folder, runs=runs)
            self._calls(one)

    def _calls(self, one: Command) -> None:
        """What it runs by a name: `make -s check`, `timeout 60 make check`. A program that only reads runs nothing."""
        reads = PurePosixPath(one.words[0]).name in READERS - STARTERS
        every = [(one.words[at:], one.folder) for at in range(1 if reads else len(one.words))]
        new = [one for one in every if has_recipes(one[0][0]) and one not in self._called]
        if len(self._called) + len(new) > MOST:
            self._cut = True
            return
        self._called.update(new)
        self._calling.extend(new)

    def _recipes(self, words: tuple[str, ...], folder: str) -> None:
        for one in called(words, folder, self._look):
            for path in (path for path in one.files if not is_set_up(path)):
                self._read_unasked.setdefault(path, self._check)
            self._text(one.text, one.folder)

    # ------------------------------------------------------------------------------------------- what a command names

    def _named(self, one: Command) -> Iterator[tuple[str, bool]]:
        """The words of a command that may be paths, and whether what they name is run: of several the first is, and
        the others are what it is run with."""
        program = PurePosixPath(one.words[0]).name
        self._unasked(program, one.folder)
        first = placed(one.folder, one.words[0])
        yield first, True
        runs = program not in READERS and not self._is_file(first)
        for before, word in zip(one.words, one.words[1:], strict=False):
            found = list(self._paths_of(program, before, word, one.folder))
            yield from ((path, runs) for path in found)
            runs = program in LOOPS or (runs and not any(map(self._is_file, found)))

    def _unasked(self, program: str, folder: str) -> None:
        """The files that a program reads by itself."""
        for name in READ_HERE.get(program, ()):
            self._read_unasked.setdefault(placed(folder, name), self._check)
        for name in READ_BELOW.get(program, ()):
            self._below.setdefault((folder, name), self._check)

    def _paths_of(self, program: str, before: str, word: str, folder: str) -> Iterator[str]:
        if before == "-m":
            yield from self._module(word, folder)
        for part in dict.fromkeys((word, word.rpartition("=")[2])):
            yield from self._paths(placed(folder, part), all_of=program in LOOPS)

    def _module(self, name: str, folder: str) -> Iterator[str]:
        path = name.replace(".", "/")
        for top in dict.fromkeys((folder, placed(folder, "src"), self._top)):
            whole = placed(top, path)
            yield from (f"{whole}.py", f"{whole}/__main__.py", f"{whole}/__init__.py")
            yield from (placed(top, f"{one}/__init__.py") for one in PurePosixPath(path).parents if str(one) != ".")

    def _paths(self, path: str, *, all_of: bool) -> Iterator[str]:
        if any(one in path for one in "*?["):
            folder, pattern = posixpath.split(path)
            names = fnmatch.filter(sorted(self._look.names(folder or ".")), pattern) if "*" not in folder else []
            if all_of and names and folder:
                self._folders.setdefault(folder, self._check)
            yield from (placed(folder or ".", one) for one in names)
            yield from (folder,) if folder else ()
            return
        yield path
        if all_of and path != "." and self._look.names(path):
            self._whole(path)

    # ---------------------------------------------------------------------------------------------------- what counts

    def _word(self, path: str, folder: str, *, runs: bool) -> None:
        if path in (".", self._top) or path.startswith(("../", "/")):
            return
        if self._is_file(path):
            if runs or not path.endswith(CODE) or self._judges(path):
                self._take(path, folder)
        elif self._telling_folder(path):
            self._whole(self._telling_folder(path))

    def _take(self, path: str, folder: str) -> None:
        if path in self._sure or path in self._doubtful:
            return
        if len(self._sure) + len(self._doubtful) >= MOST:
            self._cut = True
            return
        (self._sure if self._telling(path) else self._doubtful)[path] = self._check
        self._left.append((path, folder))
        if self._telling_folder(path):
            self._whole(self._telling_folder(path))

    def _whole(self, folder: str) -> None:
        """All that lies in a folder of judges, and whatever is put there."""
        if folder in self._folders or folder in (".", self._top):
            return
        self._folders[folder] = self._check
        left = deque([folder])
        while left:
            here = left.popleft()
            for name in sorted(self._look.names(here)):
                path = placed(here, name)
                if self._is_file(path):
                    self._take(path, self._top)
                elif len(left) < MOST:
                    left.append(path)

    def _is_file(self, path: str) -> bool:
        return posixpath.basename(path) in self._look.names(posixpath.dirname(path) or ".") and not self._look.names(
            path
        )

    def _judges(self, path: str) -> bool:
        return self._telling(path) or asserts(self._look.read(path) or b"")

    def _telling(self, path: str) -> bool:
        """Whether its name, or that of its first folder, says that it judges."""
        stem = posixpath.basename(path).lower()
        return bool(self._telling_folder(path)) or any(one in stem for one in TELLING)

    def _telling_folder(self, path: str) -> str:
        """The first folder in which it lies, if that is one of judges; deeper down such names mean other things."""
        inside = path.removeprefix(f"{self._top}/") if self._top != "." else path
        first = inside.partition("/")[0]
        whole = placed(self._top, first)
        return whole if first.lower() in USED and self._look.names(whole) else ""
