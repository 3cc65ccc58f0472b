"""What we keep about one repository, and the ways to ask git about it.

`plain` knows files and commits, but neither settings nor refs: its folder is ours, with an attributes file that turns
every conversion off, so that what is on the disk is what is kept, byte for byte, and no filter runs. `refs` is git in
the repository itself, for what only it can answer, with everything overruled that names a program.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from greenroom.adapters.git.files import says, told, write_whole
from greenroom.adapters.git.finding import Repository
from greenroom.adapters.git.habits import Habits, habits_of
from greenroom.adapters.git.running import PATH, Git, checked, hardened, program_of

RAW: Final = "* -text -crlf -ident !eol !filter !working-tree-encoding !diff !merge\n"
"""Comes before whatever the tree's own attributes say: nothing is converted, and no change is hidden from a diff."""

ALWAYS_OUT: Final = ("node_modules/", ".venv/", "venv/", "__pycache__/", ".tox/", ".nox/", ".greenroom/")
"""What is no work of anybody in a folder that no .gitignore speaks of."""


OLD: Final = 24 * 3600.0
"""Seconds after which what a killed process left is nobody's any more."""


WHO: Final = frozenset(f"GIT_{role}_{part}" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL"))
"""Who a person is, if they say it so."""


HOOKLESS: Final = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")


class House:
    """Ours is `folder`, in the user's cache."""

    def __init__(self, repository: Repository, folder: Path, program: str, env: Mapping[str, str]) -> None:
        self.repository = repository
        self.folder = folder
        self.env = env
        self.habits = Habits()
        self.settled: dict[str, str] = {}
        self._program = program
        self._git = folder / "git"

    @classmethod
    async def open(cls, repository: Repository, folder: Path, env: Mapping[str, str]) -> House:
        """With everything in it that is needed."""
        house = cls(repository, folder, program_of(env, repository.root), env)
        await asyncio.to_thread(house._begin)
        await house._checked()
        if repository.own and not (repository.git / "HEAD").exists():
            await hardened(house._program, env={}, settings={}).ask(
                "init", "--bare", "--quiet", "--template=", str(repository.git)
            )
        house.habits = await habits_of(house.as_person().also(env={"GIT_DIR": str(repository.git)}), env)
        await asyncio.to_thread(house._furnish)
        return house

    @property
    def plain(self) -> Git:
        """For trees, files and commits."""
        told = {"GIT_DIR": str(self._git), "GIT_OBJECT_DIRECTORY": str(self.repository.common / "objects")}
        shallow = self.repository.common / "shallow"
        if shallow.is_file():
            told["GIT_SHALLOW_FILE"] = str(shallow)
        return hardened(self._program, env=told, settings={"core.excludesFile": self.habits.excludes or os.devnull})

    @property
    def refs(self) -> Git:
        """For the repository's own: refs, and who wrote what."""
        told = {"GIT_DIR": str(self.repository.git)}
        if not self.repository.own:
            told["GIT_WORK_TREE"] = str(self.repository.root)
        return hardened(self._program, env=told, settings={}, folder=str(self.repository.root))

    @property
    def shared(self) -> Git:
        """For what all trees of the repository share."""
        return hardened(self._program, env={"GIT_DIR": str(self.repository.common)}, settings={})

    def on(self, tree: Path, index: Path) -> Git:
        """Like `plain`, with a tree of files and an index of its own."""
        return self.plain.also(env={"GIT_WORK_TREE": str(tree), "GIT_INDEX_FILE": str(index)})

    def as_person(self, *, hooks: bool = True) -> Git:
        """Git as its owner runs it in the tree: with their settings, hooks, filters and keys. Nobody is asked. Without
        `hooks` none runs, nor what they let look for changes."""
        own = {name: value for name, value in self.env.items() if name in WHO or not name.startswith("GIT_")}
        calm = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "GIT_PAGER": "cat", "LC_ALL": "C.UTF-8"}
        told = {"PATH": PATH, **own, **calm}
        none = () if hooks else HOOKLESS
        words = ("--no-pager", *none)
        return Git(self._program, words=words, env=told, folder=str(self.repository.root), outlived=hooks)

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """A folder that is gone afterwards."""
        with tempfile.TemporaryDirectory(dir=self.folder / "temporary", ignore_cleanup_errors=True) as name:
            yield Path(name)

    def _begin(self) -> None:
        with told(str(self.folder)):
            (self.folder / "temporary").mkdir(parents=True, exist_ok=True, mode=0o700)
            for left in (self.folder / "temporary").iterdir():
                if time.time() - left.lstat().st_mtime > OLD:
                    shutil.rmtree(left, ignore_errors=True)

    async def _checked(self) -> None:
        """Look whether this git is good enough, once for each that there is."""
        about = _date(self._program)
        if not says(self.folder / "checked", about):
            await checked(hardened(self._program, env={}, settings={}))
            write_whole(self.folder / "checked", about)

    def _furnish(self) -> None:
        for name in ("objects", "refs", "info"):
            (self._git / name).mkdir(parents=True, exist_ok=True)
        write_whole(self._git / "HEAD", b"ref: refs/heads/none\n")
        write_whole(self._git / "config", settings_of(self.habits).encode())
        write_whole(self._git / "info" / "attributes", RAW.encode())
        write_whole(self._git / "info" / "exclude", self.excluded())

    def excluded(self) -> bytes:
        """What git is told not to see here, by nobody's file in the tree."""
        if self.repository.own:
            return "\n".join(ALWAYS_OUT).encode()
        try:
            return (self.repository.common / "info" / "exclude").read_bytes()
        except OSError:
            return b""


def _date(program: str) -> bytes:
    return f"{program} {Path(program).stat().st_mtime_ns}".encode()


def settings_of(habits: Habits) -> str:
    """A repository's settings, with how the person's disk is."""
    told = {
        "bare": False,
        "filemode": habits.file_mode,
        "symlinks": habits.symlinks,
        "ignorecase": habits.ignore_case,
        "precomposeunicode": habits.precompose,
    }
    core = "".join(f"\t{name} = {str(value).lower()}\n" for name, value in told.items())
    return f"[core]\n\trepositoryformatversion = 1\n{core}[extensions]\n\tobjectformat = {habits.hashes}\n"
