"""The work judged on a fresh copy: the checks, run beside it on what is delivered, or with the old tests put back.

Where an agent has worked lies more than it delivers: what git ignores, packages, a home, caches. Any of it can make a
check pass, so nothing that counts is run there. An agent may also have had to change a test, or have changed it to
pass. Where the old ones find nothing wrong with the new code either, it makes no difference which it was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from greenroom.abilities.checks.meddling import FEW, Meddled, may_be_work
from greenroom.app.checks.checker import ProjectChecks, Tree
from greenroom.app.checks.folder import FolderLook
from greenroom.app.hands.copied import Copied, Quiet
from greenroom.app.hands.hands import Hands
from greenroom.app.jobs.place import Place
from greenroom.app.jobs.preparing import TOLD, Setup, prepared
from greenroom.core.base.errors import Bug
from greenroom.core.ports.checks import Check, Witness
from greenroom.core.ports.commands import Commands
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.workspace import SCRATCH, Worktree

Judges: TypeAlias = Callable[[Sequence[str], Witness], AbstractAsyncContextManager[ProjectChecks]]
"""The same checks on a fresh copy of what is delivered, with these files put back as they were."""


def put_back(changes: Sequence[str], tests: Collection[str], meddled: Sequence[Meddled]) -> list[list[str]]:
    """The files that have to be as they were: all tests, also new ones, and whatever else sets up checks or is run.
    What stands in one file with the work is left: it cannot be told apart.

    What may be the work itself is put back too, all of it, none of it, and each part of it: who broke the work and the
    judges beside it would else get all of them back, or one judge that another has to call, and nothing would be
    judged. Of more than a few not every part can be tried: then there is no way, and the old judges say nothing.
    """
    unsure = may_be_work(meddled)
    doubtful = [one for one in changes if one in unsure and one not in tests]
    sure = [one for one in changes if one in tests or one in {each.path for each in meddled if each.apart} - unsure]
    if len(doubtful) > FEW:
        return []
    parts = [part for size in range(len(doubtful)) for part in combinations(doubtful, size)]
    return [way for part in (doubtful, *parts) if (way := [*sure, *part])]


def judges(place: Place, checker: ProjectChecks, setup: Setup, hands: Callable[[Copied], Hands]) -> Judges:
    """How checks are run on what a place delivers, by commands like those that work there. They have the person's own
    packages or, where there is a `setup`, those that it makes; and behind walls a home in which there is nothing."""

    @asynccontextmanager
    async def opened(paths: Sequence[str], witness: Witness) -> AsyncIterator[ProjectChecks]:
        run, base = place.run, place.snapshot.commit
        commit = await place.workspace.put_back(await place.worktree.tip(), base, paths)
        await place.workspace.close(run, SCRATCH)
        made: Hands | None = None
        try:
            worktree = await place.workspace.open(run, SCRATCH, commit)
            await worktree.pass_over(await place.worktree.passed_over())
            beside, caught = await place.beside(worktree), _Caught()
            made = hands(caught.copied(beside))
            ready = await _prepared(setup, worktree, caught.commands, witness) if setup.runs else Ready(worktree.tree)
            yield checker.elsewhere(caught.commands, ready.tree, FolderLook(beside.folder), unable=ready.unable)
        finally:
            if made is not None:
                await made.close()
            await place.workspace.close(run, SCRATCH)

    return opened


def judged_by(judges: Judges, checks: Sequence[Check]) -> Judges:
    """The same copies, in which these checks are run."""

    @asynccontextmanager
    async def opened(paths: Sequence[str], witness: Witness) -> AsyncIterator[ProjectChecks]:
        async with judges(paths, witness) as checker:
            yield checker.instead(checks)

    return opened


@dataclass(frozen=True, slots=True)
class Ready:
    """What names the files of a fresh copy, and why nothing can be judged in it: empty where it can."""

    tree: Tree
    unable: str = ""


async def _prepared(setup: Setup, worktree: Worktree, commands: Commands, witness: Witness) -> Ready:
    """Prepare a copy. What a setup has spoilt goes by the name that it had: it is said of what is delivered."""
    before = await worktree.tree()

    async def as_it_was() -> str:
        return before

    done = await prepared(setup, commands, witness)
    named = f"`{setup.line}` ([workspace] setup)"
    if done.why:
        said = f" It said: {done.printed[-TOLD:].strip()}" if done.printed.strip() else ""
        return Ready(as_it_was, f"{named} failed in the copy that is judged: {done.why}.{said}")
    if await worktree.tree() != before:
        why = (
            f"{named} changed files that git does not ignore, so what would be checked is not what is delivered. Let "
            "git ignore them, or let the work have them."
        )
        return Ready(as_it_was, why)
    return Ready(worktree.tree)


class _Caught:
    """Hands that nobody uses: only the commands that they have are of interest."""

    def __init__(self) -> None:
        self._commands: Commands | None = None

    @property
    def commands(self) -> Commands:
        if self._commands is None:
            raise Bug("These hands have no commands.")
        return self._commands

    def copied(self, place: Place) -> Copied:
        return Copied(folder=place.folder, at=place.at, lent=place.shown, wrap=lambda tool: tool, more=self._catch)

    def _catch(self, commands: Commands, _: Quiet) -> Sequence[ToolExecutor]:
        self._commands = commands
        return ()
