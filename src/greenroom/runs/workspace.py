"""Where a run works, what its tools see of that worktree, and what a person allowed when they began the run."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, record
from greenroom.core.ports.commands import Commands
from greenroom.core.ports.sandbox import Shown
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.workspace import Diff, Lent, Snapshot, Workspace, Worktree
from greenroom.core.state.step import Step

LAYERS: Final = "layers"

History: TypeAlias = Callable[[TeamId], Awaitable[Sequence[Step]]]
"""All steps of a team that have ended, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The person's files (`workspace`) as they were (`snapshot`), and the copy (`worktree`) that a `run` has of them,
    which commands see `at` the person's own place. `lent` is what the copy needs of theirs: packages, submodules; `git`
    lets commands look at its history."""

    run: str
    at: Path
    workspace: Workspace
    snapshot: Snapshot
    worktree: Worktree
    lent: tuple[Lent, ...] = ()
    git: tuple[Shown, ...] = ()

    @property
    def folder(self) -> Path:
        """The copy of the folder that is worked in."""
        return Path(self.worktree.folder, self.snapshot.within)

    @property
    def shown(self) -> tuple[Shown, ...]:
        """What a command finds in the worktree that is not in it: what git ignores in the person's folder. What it
        writes there is kept beside the worktree, and goes with it."""
        layers = Path(self.worktree.folder).parent / LAYERS
        every = (*self.git, *(_layered(lent, layers) for lent in self.lent))
        # Seen from the repository's own folder; that may be one above the one that is worked in.
        within = Path(self.snapshot.within).parts
        top = self.at.parents[len(within) - 1] if within else None
        return tuple(shown if top is None else replace(shown, at=str(top / shown.at)) for shown in every)

    async def beside(self, worktree: Worktree) -> Place:
        """The same with another copy. What was made in this one and is in no commit is not there."""
        return replace(self, worktree=worktree, git=await worktree.view())

    async def diff(self) -> Diff:
        """All that was changed by now."""
        return await self.workspace.diff(self.snapshot.commit, await self.worktree.tip())


def _layered(lent: Lent, layers: Path) -> Shown:
    name = hashlib.sha256(lent.path.encode()).hexdigest()[:16]
    return Shown(source=lent.source, at=lent.path, layer=str(layers / name), hidden=lent.hidden)


Wrap: TypeAlias = Callable[[ToolExecutor], ToolExecutor]
Quiet: TypeAlias = Callable[[], Awaitable[Sequence[str]]]
"""Ends what agents have begun in the background, and says which those were."""

More: TypeAlias = Callable[[Commands, Quiet], Iterable[ToolExecutor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """`folder` has the files of the workspace `at`, and what is `lent` to it. Each tool is wrapped; there are `more` of
    them, which may need its commands, and that they are quiet; nobody is asked about those that are `known`, but for
    what they touch."""

    folder: Path
    at: Path
    lent: Sequence[Shown]
    wrap: Wrap = lambda tool: tool
    more: More = lambda _, __: ()
    known: tuple[str, ...] = ()


WANTED: Final = "wanted"
"""Where the first turn has it."""

FIELDS: Final = ("question", "tests_may_change", "allow_unverified")


@record
class Wanted:
    """`question`: an answer is all that is wanted. `tests_may_change`: the request is to change tests, so that those
    which were there before are not what they were proves nothing against the work. `allow_unverified`: go on where
    nothing can verify the change."""

    question: bool = False
    tests_may_change: bool = False
    allow_unverified: bool = False

    @property
    def data(self) -> Data | None:
        """As the first turn keeps it; None when nothing was said."""
        said = {name: True for name in FIELDS if getattr(self, name)}
        return {WANTED: said} if said else None


NOTHING_SAID: Final = Wanted()


def wanted_in(steps: Iterable[Step]) -> Wanted:
    """What was said when these steps began. What an agent has begun itself says nothing about it."""
    for step in steps:
        held = (step.work.instruction_content or {}).get(WANTED)
        if step.cause is None and step.work.executor == "converse" and isinstance(held, Mapping):
            return Wanted(**{name: bool(held.get(name)) for name in FIELDS})
    return NOTHING_SAID
