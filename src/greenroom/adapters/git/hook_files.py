"""What of some work a person's hooks would run when it is committed: they run as the person, behind no walls.

Looked for are hooks that lie in the tree or lead into it, files that those name, what such files name in turn, and the
settings of programs that keep hooks for people. What tests import is not followed: who lets a hook run the tests at
each commit lets it run the work.
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

from greenroom.adapters.git.comparing import contents, delta
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

PROGRAMS: Final = ("", ".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".mk")
READ: Final = ("", ".sh", ".bash", ".zsh", ".yml", ".yaml", ".toml", ".ini", ".mk")
"""How files end that name what they run."""

WORD: Final = re.compile(r"[\w@%+.~/-]+")
MOST: Final = 50
"""Files that are followed."""

LARGEST: Final = 64 * 1024
DEEP: Final = 8
"""Folders in a name of which the beginning may be a variable's value."""


async def hook_files(house: House, base: str, tip: str) -> tuple[str, ...]:
    """Files that the work changed and that hooks or filters of the person would run."""
    if house.repository.own:
        return ()
    changed = frozenset(one.path for one in await delta(house, base, tip))
    folder = Path(os.fsdecode(await house.as_person().ask("rev-parse", "--git-path", "hooks")).rstrip("\n"))
    look = Look(house.repository.root, changed)
    found = await asyncio.to_thread(look.found, house.repository.root / folder, house.habits.programs)
    same = await _same_scripts(house, base, tip, [one for one in found if posixpath.basename(one) == NODE])
    return tuple(sorted(found - same))


async def filter_files(house: House, base: str, tip: str) -> tuple[str, ...]:
    """Of those the filters: without them there is nothing to commit."""
    changed = frozenset(one.path for one in await delta(house, base, tip))
    look = Look(house.repository.root, changed)
    return tuple(sorted({path for text in house.habits.filters for path in look.named(text, "") if path in changed}))


async def _same_scripts(house: House, base: str, tip: str, paths: Sequence[str]) -> set[str]:
    old, new = await contents(house, base, paths), await contents(house, tip, paths)
    return {one for one in paths if _scripts(old.get(one, b"")) == _scripts(new.get(one, b""))}


def _scripts(content: bytes) -> object:
    """What a package.json says is to be run; one that cannot be read is taken whole."""
    try:
        found = json.loads(content or b"{}")
    except ValueError:
        return content
    return {name: found.get(name) for name in USED} if isinstance(found, dict) else content


class Look:
    """A look at a person's tree, in which these files are going to change."""

    def __init__(self, root: Path, changed: frozenset[str]) -> None:
        self._root = root
        self._changed = changed

    def found(self, folder: Path, programs: Iterable[str]) -> set[str]:
        """Of the changed files those that hooks in a folder, or programs that settings name, lead to."""
        own = self._inside(folder)
        found = {one for one in self._changed if own and _is_hook(one, own)}
        texts, seen = deque((one, "") for one in programs), set[str]()
        for place in self._hooks(folder):
            texts.append((_text(place), posixpath.dirname(self._inside(place))))
            found |= {self._inside(place)} & self._changed
        while texts and len(seen) < MOST:
            for path in self.named(*texts.popleft()):
                found |= {path} & self._changed
                if path not in seen and self._is_read(path):
                    seen.add(path)
                    texts.append((_text(self._root / path), posixpath.dirname(path)))
        return found

    def named(self, text: str, folder: str) -> set[str]:
        """Files of the tree that a text names, seen from the tree's own folder or from this one; and those in which
        programs that it names are told what to run."""
        words = set(WORD.findall(text))
        found = {path for word in words for path in self._paths(word, folder) if _ends(path, PROGRAMS)}
        patterns = {one for word in words for one in KEEPERS.get(posixpath.basename(word), ())}
        found |= {path for path in self._changed if any(_is_like(path, one) for one in patterns)}
        return found | {one for one in patterns if (self._root / one).is_file()}

    def _paths(self, word: str, folder: str) -> Iterator[str]:
        """What a word may mean: it may begin with a variable, and a module of Python has dots in its name."""
        parts = [one for one in word.split("/") if one not in ("", ".")]
        for start in range(min(len(parts), DEEP)):
            name = "/".join(parts[start:])
            for one in (name, posixpath.join(folder, name), f"{name.replace('.', '/')}.py"):
                path = posixpath.normpath(one)
                if path in self._changed or (not path.startswith("..") and (self._root / path).is_file()):
                    yield path

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

    def _is_read(self, path: str) -> bool:
        return _ends(path, READ) or posixpath.basename(path) in (NODE, *MAKE)


def _is_hook(path: str, folder: str) -> bool:
    """Whether a file lies where hooks are; husky's own folder is one below the person's."""
    if folder == ".":
        return path in HOOKS
    above = posixpath.dirname(folder) if posixpath.basename(folder) == "_" else ""
    return path.startswith((f"{folder}/", f"{above or folder}/"))


def _is_like(path: str, pattern: str) -> bool:
    """Whether a file is one of these, in the tree's own folder or in any other: a hook may go there first."""
    return fnmatch(path, pattern) or fnmatch(path, f"*/{pattern}")


def _ends(path: str, endings: Sequence[str]) -> bool:
    return posixpath.splitext(path)[1].lower() in endings


def _text(place: Path) -> str:
    """What stands in a file; of a package.json what it says is to be run."""
    try:
        with place.open("rb") as file:
            content = file.read(LARGEST)
    except OSError:
        return ""
    if place.name == NODE:
        return str(_scripts(content))
    return content.decode(errors="replace")
