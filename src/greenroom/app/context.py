"""The app context: settings, models, runtime and tools of one process, under the library and the command line alike."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from greenroom.app.settings.home import worktrees_folder
from greenroom.app.toolset.by_hand import ended_step
from greenroom.app.trust import agreed, agreed_notes, own_ledger
from greenroom.app.workspace import current_folder, workspace_root
from greenroom.core.base.errors import Bug
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.ports.model import Model, Models
from greenroom.core.ports.sandbox import HOLDING, Tier
from greenroom.core.state.step import Step
from greenroom.core.sync.replay import StepHistory

if TYPE_CHECKING:
    from greenroom.app.agents.finding import Agents
    from greenroom.app.model_registry import Provisions
    from greenroom.app.runtime import Runtime
    from greenroom.app.settings.schema import Settings
    from greenroom.app.toolset.toolbox import Toolbox
    from greenroom.app.toolset.toolset import Hands
    from greenroom.runs.workspace import Copied

GUESS_READ: Final = (20_000, 40_000)
GUESS_WRITTEN: Final = (2_000, 4_000)
"""Tokens of a small change, and what each file adds to that at most."""


class AppContext:
    """One per process. Each part is loaded when it is first needed: a command that only reads the log waits for none.

    It is also the `Models` that the teams of this process ask. `says_yes` approves plans and found checks beforehand.
    """

    def __init__(self) -> None:
        self._models: Provisions | None = None
        self._flags: dict[str, object] = {}
        self._runtime: Runtime | None = None
        self._histories: dict[TeamId, StepHistory] = {}
        self.says_yes = False

    @property
    def runtime(self) -> Runtime:
        """The open runtime; a `Bug` before it is opened."""
        if self._runtime is None:
            raise Bug("The app context has no open runtime.")
        return self._runtime

    @runtime.setter
    def runtime(self, opened: Runtime) -> None:
        self._runtime = opened

    # ------------------------------------------------------------------------------------------ settings and models

    @property
    def provisions(self) -> Provisions:
        """Settings, models and recordings."""
        if self._models is None:
            from greenroom.app.model_registry import Provisions

            self._models = Provisions()
        return self._models

    @property
    def settings(self) -> Settings:
        return self.provisions.loaded.settings

    @property
    def language(self) -> str:
        return self.settings.language

    @property
    def attended(self) -> bool:
        """Whether a person may be asked, as far as the settings know."""
        return not self.settings.non_interactive

    def patience(self) -> int | None:
        """Milliseconds that a question waits for its answer; None is for ever."""
        return self.settings.patience

    def override(self, flags: Mapping[str, object]) -> None:
        """Set what was typed, by the names of the settings; it wins over all others. None changes nothing."""
        self._flags |= flags
        self.provisions.give(self._flags)

    def set_attendance(self, *, yes: bool, non_interactive: bool) -> None:
        """Whether plans are approved beforehand, and whether there is a person to be asked."""
        self.says_yes = yes
        self.override({"non_interactive": True if non_interactive else None})

    def use_recording(self, record: Path | None, replay: Path | None) -> None:
        """Record all model calls into one file, or answer them from one."""
        if record is not None or replay is not None:
            self.provisions.tape(record, replay)

    def named(self, name: str) -> Model:
        return self.provisions.named(name)

    def settled(self, name: str) -> str:
        """The model or group that a role, or an empty name, stands for today."""
        return self.provisions.settled(name)

    def around(self, script: Model) -> Models:
        """A scripted model in the place of all others, recorded or replayed if that was asked for."""
        return self.provisions.around(script)

    def unused_recording(self) -> str:
        """A sentence about recorded answers that no request asked for; empty when there are none."""
        unused = self._models.unused() if self._models is not None else None
        if unused is None:
            return ""
        answers = "1 answer" if unused.count == 1 else f"{unused.count} answers"
        return f"Never asked for: {answers} in {unused.file} ({', '.join(unused.models)})."

    def estimate_cost(self, model: str, files: int) -> tuple[int, int] | None:
        """What a change of so many files may cost at least and at most, in millionths of a dollar; None if unknown."""
        count, asked = max(1, files), self.named(model)
        least = asked.price(GUESS_READ[0], GUESS_WRITTEN[0])
        most = asked.price(GUESS_READ[0] + GUESS_READ[1] * count, GUESS_WRITTEN[0] + GUESS_WRITTEN[1] * count)
        return (least, most) if least and most else None

    # --------------------------------------------------------------------------------------- workspace and its agents

    @property
    def folder(self) -> Path:
        """The folder in which the command was typed."""
        return current_folder()

    @property
    def root(self) -> Path:
        """Where its workspace begins."""
        return workspace_root(self.folder)

    def notes(self) -> str:
        """What AGENTS.md and CLAUDE.md say there; labelled as untrusted where the person has not agreed to it."""
        return agreed_notes(self.folder, own_ledger().trusted(self.root))

    def agents(self) -> Agents:
        """The agents that may be used there: not those that the project brings and the person has not agreed to."""
        from greenroom.app.agents.finding import find_agents

        return agreed(find_agents(self.folder), self.root, own_ledger().trusted(self.root))

    # ------------------------------------------------------------------------------------------------ tools and teams

    def toolset(self, root: Path, copied: Copied | None = None) -> Hands:
        """The tools of a workspace, or of a worktree `copied` from it, under the rules the person has agreed to."""
        from greenroom.app.toolset.custom import equipment_in
        from greenroom.app.toolset.policy import Confirming, persons_rules, policy_for, project_rules
        from greenroom.app.toolset.sandbox import Walls
        from greenroom.app.toolset.toolset import Hands

        settings = self.settings
        folder = copied.folder if copied is not None else root
        lent = copied.lent if copied is not None else ()
        walls = Walls(folder, settings.sandbox, at=root, lent=lent, web=settings.web)
        known = copied.known if copied is not None else ()
        rules, project = persons_rules().of(root), project_rules(root)
        policy = policy_for(root, rules, project, brought=known, walled=walls.hold, lies=folder)
        return Hands(
            folder,
            Confirming(policy) if settings.execute_tool_confirm else policy,
            find=self.ended_step,
            equipment=equipment_in(root),
            unattended=settings.non_interactive,
            secrets=self.provisions.keys(),
            web=settings.web,
            browser=settings.browser,
            models=self,
            walls=walls,
            copied=copied,
        )

    def toolbox(self, root: Path | None = None) -> Toolbox:
        """The tools of a workspace by name, only to be looked at."""
        from greenroom.app.toolset.custom import equipment_in
        from greenroom.app.toolset.toolset import toolbox_of

        return toolbox_of(root or self.root, equipment_in(root or self.root))

    @cached_property
    def sandbox_tier(self) -> Tier:
        """What confines commands in a run's worktree. To find out a sandbox is set up, so it is done once."""
        from greenroom.app.toolset.sandbox import tier_in

        return tier_in(worktrees_folder(), self.settings.sandbox, at=self.root).tier

    @property
    def is_sandboxed(self) -> bool:
        return self.sandbox_tier in HOLDING

    @property
    def may_run_checks(self) -> bool:
        """Whether checks run that a person has not approved: in a sandbox, or because they said --yes."""
        return self.is_sandboxed or self.says_yes

    async def ended_step(self, team: TeamId, name: StepId) -> Step | None:
        """A step that has ended, for an agent that reads on in its result."""
        return None if self._runtime is None else await ended_step(self._runtime, team, name)

    async def steps(self, team: TeamId) -> Sequence[Step]:
        """All steps of a team that have ended, oldest first."""
        if team not in self._histories:
            self._histories[team] = StepHistory(self.runtime.log, team)
        return await self._histories[team].read()

    async def blob(self, digest: str) -> bytes:
        """The content of a large result."""
        return await self.runtime.log.get_blob(digest)

    async def close(self) -> None:
        if self._models is not None:
            await self._models.close()


def tune_process() -> None:
    """Collect garbage less often: records are acyclic and die by reference count, so looking for cycles finds none.

    Measured with 1,000 active agents: a quarter less CPU per step. And wait for children without threads.
    """
    gc.set_threshold(50_000, 20, 100)
    if sys.version_info < (3, 12) and _can_wait_by_file():
        # As later Pythons do by themselves. Before, each child has a thread that waits for it: with the hundreds of
        # gits of a job, a quarter of their time.
        asyncio.get_event_loop_policy().set_child_watcher(asyncio.PidfdChildWatcher())


def _can_wait_by_file() -> bool:
    """Whether this system shows a process as a file; some containers allow nobody that."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True
