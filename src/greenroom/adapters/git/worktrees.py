"""A worktree: a copy of a person's tree in our folder, each step a commit.

Its own `.git` file is for whoever works in it; we never read it, nor anything else that could be planted in there.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import shutil
import stat
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.git import littering, viewing
from greenroom.adapters.git.comparing import diff
from greenroom.adapters.git.files import read_data, write_data
from greenroom.adapters.git.house import House
from greenroom.adapters.git.locks import alone
from greenroom.adapters.git.names import quoted, thread_ref, unquoted
from greenroom.adapters.git.refs import move, tree_of, value_of
from greenroom.adapters.git.running import Git
from greenroom.adapters.git.seeding import listing, look_again
from greenroom.adapters.git.snapshots import commit_tree
from greenroom.adapters.git.staging import Named, stage, unknown
from greenroom.adapters.git.states import Ground
from greenroom.adapters.git.submodules import files_in
from greenroom.adapters.git.trailers import mark_of, marked
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.litter import NONE
from greenroom.core.ports.sandbox import Shown
from greenroom.core.ports.workspace import LeftOut, Looked, Mark, Recorded, WorkspaceFault

STAND_INS: Final = frozenset({".greenroom", ".claude", ".mcp.json"})
"""What commands must not make: where there is none, the walls put an empty one."""

RECENT: Final = 200
"""Commits among which that of a step is looked for: far more than can be going on at once, however long a run is."""

PAUSED: Final = "paused"
"""A file that says that nothing is work for now."""

SPARED: Final = "spared"
"""What lay there then and can be in no commit."""

LOOKS: Final = 3
"""How often one looks whether all is as it was: what is put back may have hidden something."""


@record
class Lying:
    """What lies in a worktree and in no commit: `files` that would be in the next one, and what can be in none."""

    files: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()


class GitWorktree:
    """`place` is a folder of ours: the files lie in its `tree`, what we know of them in its `index`. The `submodules`
    in it are empty at first."""

    def __init__(
        self,
        house: House,
        place: Path,
        *,
        run: str,
        thread: str,
        base: str,
        sparse: bool = False,
        submodules: Sequence[str] = (),
    ) -> None:
        self._house = house
        self._place = place
        self._run = run
        self._thread = thread
        self._base = base
        self._sparse = sparse
        self._submodules = submodules

    @property
    def folder(self) -> str:
        """Where the files lie."""
        return str(self._place / "tree")

    @property
    def base(self) -> str:
        """The commit that it began as."""
        return self._base

    @property
    def _ref(self) -> str:
        return thread_ref(self._run, self._thread)

    async def tip(self) -> str:
        """Its newest commit."""
        return await value_of(self._house, self._ref) or self._base

    async def view(self) -> tuple[Shown, ...]:
        """What commands in it see of git."""
        return await viewing.view(self._house, self._place, await self.tip())

    async def tree(self) -> str:
        """The hash of what is there now."""
        return (await self.look()).tree

    async def look(self) -> Looked:
        """That, and what can be in no commit."""
        async with self._looking() as git:
            return await self._staged(git)

    async def lying(self) -> Lying:
        """What is there, against its newest commit."""
        with self._beside() as git:
            staged = await self._staged(git)
            said = await self._house.plain.ask(
                "diff-tree", "-r", "-z", "--name-only", "--no-renames", await self.tip(), staged.tree
            )
        files = sorted(os.fsdecode(one) for one in said.split(b"\0") if one)
        return Lying(files=tuple(files), left_out=staged.left_out)

    async def commit(self, mark: Mark) -> Recorded:
        """Make all that changed a commit."""
        async with self._looking() as git:
            tip = await self.tip()
            if found := await self._found(mark.key, tip):
                return Recorded(commit=found, tree=await tree_of(self._house, found))
            staged = await self._staged(git)
            if staged.tree == await tree_of(self._house, tip):
                return Recorded(commit="", tree=staged.tree)
            commit = await commit_tree(self._house, staged.tree, tip, marked(mark), name=mark.agent)
            await move(self._house, self._ref, commit, await self._old())
        return Recorded(commit=commit, tree=staged.tree)

    async def _old(self) -> str:
        return await value_of(self._house, self._ref)

    async def _found(self, key: str, tip: str) -> str:
        """The commit with this key, if it is among the newest since the base: who was killed is the first to go on."""
        words = ("log", "--first-parent", "--no-show-signature", f"--max-count={RECENT}", "-z", "--format=%H%n%B")
        said = await self._house.plain.ask(*words, f"{self._base}..{tip}")
        for one in os.fsdecode(said).split("\0"):
            commit, _, message = one.partition("\n")
            mark = mark_of(message)
            if mark is not None and mark.key == " ".join(key.split()) and mark.run == self._run:
                return commit
        return ""

    async def _staged(self, git: Git, but: Collection[str] = ()) -> Looked:
        """What is there. Git says nothing of what lies in a submodule, so that is looked for here."""
        looked = await self._known(git, but)
        if not self._submodules:
            return looked
        found, nobodys = await asyncio.to_thread(files_in, self._ground, self._submodules), self._nobodys(but)
        others = [LeftOut(path=one, why="submodule") for one in found if not nobodys(one)]
        return evolve(looked, left_out=(*looked.left_out, *others))

    async def _known(self, git: Git, but: Collection[str]) -> Looked:
        if self._sparse:
            await look_again(git, Path(self.folder), await listing(git))
        try:
            return await stage(git, Path(self.folder), whole=not self._sparse, ignored=self._nobodys(but))
        except WorkspaceFault as fault:
            if self._sparse or fault.reason not in ("git", "repository"):
                raise
        return await self._anew(git)

    async def _anew(self, git: Git) -> Looked:
        """The same with an index made anew: it was broken, or git has thrown away what nothing led to any more."""
        self._forget()
        await git.ask("read-tree", await self.tip())
        return await stage(git, Path(self.folder), whole=not self._sparse, ignored=self._nobodys())

    async def settle(self) -> tuple[str, ...]:
        """Put back what is not as in its newest commit, and pass over what came."""
        async with self._looking() as git:
            tip, names = await self.tip(), littering.pass_over(self._place, ())
            for _ in range(LOOKS):
                found = await littering.strayed(self._house, git, tip, await self._staged(git))
                hiding = [one for one in found.came if posixpath.basename(one) == littering.HIDING]
                await littering.put_back(git, self._ground, found, hiding)
                came = [one for one in found.came if one not in hiding]
                names = littering.pass_over(self._place, await littering.kept_names(self._house, tip, came))
                if not found.names:
                    break
            return names

    async def pass_over(self, names: Iterable[str]) -> None:
        """Let these be nobody's work."""
        littering.pass_over(self._place, map(unquoted, names))

    async def passed_over(self) -> tuple[str, ...]:
        """What is nobody's work."""
        return littering.pass_over(self._place, ())

    async def littered(self) -> tuple[str, ...]:
        """What of that lies there."""
        litter = littering.litter(self._place)
        if not litter.names:
            return ()
        async with self._looking() as git:
            return tuple(quoted(one) for one in await unknown(git) if litter.has(one))

    async def moved(self, names: Iterable[str], before: Mapping[str, str] = NONE) -> Mapping[str, str]:
        """Files of the base that lie among these now, or did, which are nobody's work."""
        among = frozenset(map(unquoted, names))
        changes = (await diff(self._house, self._base, await self.tip(), limit=0)).changes if among or before else ()
        gone = {one.path for one in changes if one.kind == "deleted"}
        there = {one.path for one in changes} - gone
        if not gone:
            return {}
        with self._beside() as git:
            staged = await self._staged(git, among)
        found = await littering.renamed(self._house, self._base, staged.tree, self._ground.hashed(b""))
        still = {old: new for old, new in before.items() if unquoted(old) in gone and unquoted(new) not in there}
        return still | {quoted(old): quoted(new) for old, new in found if old in gone and new in among}

    async def claim(self, paths: Iterable[str]) -> None:
        """Let these be work."""
        littering.claim(self._place, paths)

    async def pause(self) -> None:
        """Let nothing be work from now on."""
        looked = await self.look()
        write_data(self._place / PAUSED, {SPARED: [one.path for one in looked.left_out]})

    @property
    def paused(self) -> bool:
        """Whether nothing is work for now."""
        return (self._place / PAUSED).exists()

    async def restore(self) -> tuple[str, ...]:
        """Make everything as in its newest commit, if there was a pause."""
        if not self.paused:
            return ()
        spared = (read_data(self._place / PAUSED) or {}).get(SPARED)
        kept, names = frozenset(map(str, spared) if isinstance(spared, list) else ()), list[str]()
        async with self._looking() as git:
            tip = await self.tip()
            for _ in range(LOOKS):
                found = await littering.strayed(self._house, git, tip, await self._staged(git), kept)
                if not found.names:
                    break
                names += found.names
                await littering.put_back(git, self._ground, found, found.came)
            (self._place / PAUSED).unlink(missing_ok=True)
        return tuple(map(quoted, dict.fromkeys(names)))

    @property
    def _ground(self) -> Ground:
        return Ground(Path(self.folder), self._house.habits.hashes)

    def _nobodys(self, but: Collection[str] = ()) -> Named:
        litter = littering.litter(self._place)
        return lambda path: self._is_stand_in(path) or (litter.has(path) and path not in but)

    def _is_stand_in(self, path: str) -> bool:
        """Whether it is what walls stand on while commands run, which a kill leaves there: it is nobody's work, and it
        must not be taken away while a command may still run behind them."""
        if posixpath.basename(path) not in STAND_INS:
            return False
        try:
            kind = os.lstat(Path(self.folder, path))
        except OSError:
            return True
        return stat.S_ISREG(kind.st_mode) and kind.st_size == 0

    def _refuse_gone(self) -> None:
        if not Path(self.folder).is_dir():
            why = f"The worktree {self.folder!r} is gone. Open it again; its commits are in the repository."
            raise WorkspaceFault("repository", why)

    def _forget(self) -> None:
        (self._place / "index").unlink(missing_ok=True)

    def _unlock(self) -> None:
        (self._place / "index.lock").unlink(missing_ok=True)

    @contextmanager
    def _beside(self) -> Iterator[Git]:
        """With an index that is thrown away."""
        with self._house.temporary() as folder:
            index = folder / "index"
            with suppress(FileNotFoundError):
                shutil.copy2(self._place / "index", index)
            yield self._house.on(Path(self.folder), index)

    @asynccontextmanager
    async def _looking(self) -> AsyncIterator[Git]:
        """Alone with the index. A lock on it that a killed git has left is nobody's any more."""
        self._refuse_gone()
        async with alone(self._place / "lock"):
            self._unlock()
            yield self._house.on(Path(self.folder), self._place / "index")
