"""A run's workspace, what its tools see of the worktree, and the flags that a person gave at its start."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, record
from greenroom.core.ports.commands import CommandRunner
from greenroom.core.ports.sandbox import SandboxMount
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.workspace import MAIN_THREAD, Diff, SharedFolder, TreeSnapshot, Workspace, Worktree
from greenroom.core.state.step import Step

History: TypeAlias = Callable[[TeamId], Awaitable[Sequence[Step]]]
"""Returns all ended steps of a team, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWorkspace:
    """The workspace of a run: the person's files (`workspace`), their `snapshot`, and the `worktree` of the run's
    `thread`. Commands see it at `mount_point`, the person's own path. `shared_folders` are what it needs of theirs:
    packages, submodules. `git` lets commands read its history."""

    run: str
    mount_point: Path
    workspace: Workspace
    snapshot: TreeSnapshot
    worktree: Worktree
    thread: str = MAIN_THREAD
    shared_folders: tuple[SharedFolder, ...] = ()
    git: tuple[SandboxMount, ...] = ()

    @property
    def folder(self) -> Path:
        """The worktree's copy of the workspace folder."""
        return Path(self.worktree.folder, self.snapshot.within)

    @property
    def mounts(self) -> tuple[SandboxMount, ...]:
        """What commands see in the worktree beyond its files: folders that git ignores in the person's tree. What they
        write there is kept beside the worktree and removed with it."""
        layers = Path(self.worktree.folder).parent / "layers"
        all_mounts = (*self.git, *(_build_mount(folder, layers) for folder in self.shared_folders))
        # Relative to the repository's root, which may be above the workspace folder.
        within = Path(self.snapshot.within).parts
        top = self.mount_point.parents[len(within) - 1] if within else None
        return tuple(mount if top is None else replace(mount, at=str(top / mount.at)) for mount in all_mounts)

    async def with_worktree(self, worktree: Worktree) -> RunWorkspace:
        """Return a copy with another worktree. Uncommitted files of this worktree are not in it."""
        return replace(self, worktree=worktree, git=await worktree.make_view())

    async def diff(self) -> Diff:
        """Return all changes of the run so far."""
        return await self.workspace.diff(self.snapshot.commit, await self.worktree.tip())


def _build_mount(folder: SharedFolder, layers: Path) -> SandboxMount:
    name = hashlib.sha256(folder.path.encode()).hexdigest()[:16]
    return SandboxMount(source=folder.source, at=folder.path, layer=str(layers / name), hidden=folder.hidden)


WrapTool: TypeAlias = Callable[[ToolExecutor], ToolExecutor]
StopBackground: TypeAlias = Callable[[], Awaitable[Sequence[str]]]
"""Ends what agents started in the background, and returns what that was."""

ExtraTools: TypeAlias = Callable[[CommandRunner, StopBackground], Iterable[ToolExecutor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeTools:
    """The tools of a worktree: `folder` holds the files of the workspace at `mount_point`, with `mounts` added. Each
    tool is wrapped. `extra_tools` are made from its commands and the function that stops background work.
    `trusted_tools` need no approval, except for what they touch. With `read_only`, no tool edits files, and commands
    cannot change the worktree: without a sandbox they are refused."""

    folder: Path
    mount_point: Path
    mounts: Sequence[SandboxMount]
    wrap: WrapTool = lambda tool: tool
    extra_tools: ExtraTools = lambda _, __: ()
    trusted_tools: tuple[str, ...] = ()
    read_only: bool = False


WANTED_KEY: Final = "wanted"
"""The key of the flags in the first turn."""

FLAG_NAMES: Final = ("question", "tests_may_change", "allow_unverified")


@record
class RunFlags:
    """The flags of a run. `question`: only an answer is wanted. `tests_may_change`: the request is to change tests, so
    changed tests do not count against the work. `allow_unverified`: continue if nothing can verify the change."""

    question: bool = False
    tests_may_change: bool = False
    allow_unverified: bool = False

    @property
    def data(self) -> Data | None:
        """The flags as stored in the first turn; None if none is set."""
        flags = {name: True for name in FLAG_NAMES if getattr(self, name)}
        return {WANTED_KEY: flags} if flags else None


DEFAULT_RUN_FLAGS: Final = RunFlags()


def read_run_flags(steps: Iterable[Step]) -> RunFlags:
    """Return the flags given when these steps began. Steps that an agent started itself do not count."""
    for step in steps:
        flags = (step.work.instruction_content or {}).get(WANTED_KEY)
        if step.cause is None and step.work.executor == "converse" and isinstance(flags, Mapping):
            return RunFlags(**{name: bool(flags.get(name)) for name in FLAG_NAMES})
    return DEFAULT_RUN_FLAGS
