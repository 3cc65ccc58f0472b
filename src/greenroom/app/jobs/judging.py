"""The work judged by what judged it before: the checks, run beside it on a copy in which the old tests are put back.

An agent may have had to change a test, or have changed it to pass. Where the old ones find nothing wrong with the new
code either, it makes no difference which it was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeAlias

from greenroom.abilities.checks.meddling import Meddled, is_test
from greenroom.app.checks.checker import ProjectChecks
from greenroom.app.checks.folder import FolderLook
from greenroom.app.hands.copied import Copied
from greenroom.app.hands.hands import Hands
from greenroom.app.jobs.place import Place
from greenroom.core.base.errors import Bug
from greenroom.core.ports.commands import Commands
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.workspace import SCRATCH

ALONE: Final = 3
"""Files that may be the work itself and are put back each on its own."""

Judges: TypeAlias = Callable[[Sequence[str]], AbstractAsyncContextManager[ProjectChecks]]
"""The same checks, on the work with these files put back as they were."""


def put_back(changes: Sequence[str], meddled: Sequence[Meddled]) -> list[list[str]]:
    """The files that have to be as they were: all tests, also new ones, and whatever else sets up checks or is run.

    What may be the work itself is put back too, all of it, none of it, and each on its own: who broke the work and the
    judge beside it would else get both back, and nothing would be judged.
    """
    named = {one.path for one in meddled if not one.doubtful}
    doubtful = [one for one in changes if one in {each.path for each in meddled} - named and not is_test(one)]
    sure = [one for one in changes if is_test(one) or one in named]
    alone = [[*sure, one] for one in doubtful[:ALONE]] if len(doubtful) > 1 else []
    every = [[*sure, *doubtful], *([sure] if doubtful else []), *alone]
    return [one for one in every if one]


def judges(place: Place, checker: ProjectChecks, hands: Callable[[Copied], Hands]) -> Judges:
    """How the old tests are run on what is in a place, by commands like those that work there."""

    @asynccontextmanager
    async def opened(paths: Sequence[str]) -> AsyncIterator[ProjectChecks]:
        run, base = place.run, place.snapshot.commit
        commit = await place.workspace.put_back(await place.worktree.tip(), base, paths)
        await place.workspace.close(run, SCRATCH)
        made: Hands | None = None
        try:
            worktree = await place.workspace.open(run, SCRATCH, commit)
            beside, caught = await place.beside(worktree), _Caught()
            made = hands(caught.copied(beside))
            yield checker.elsewhere(caught.commands, worktree.tree, FolderLook(beside.folder))
        finally:
            if made is not None:
                await made.close()
            await place.workspace.close(run, SCRATCH)

    return opened


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

    def _catch(self, commands: Commands) -> Sequence[ToolExecutor]:
        self._commands = commands
        return ()
