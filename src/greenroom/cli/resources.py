"""What commands work with: settings, models, agents, tools and kits, each loaded when it is first asked for.

A command that only looks at the log does not wait for any of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from greenroom.app.toolset.by_hand import ended_step
from greenroom.app.trust import agreed_notes, own_ledger
from greenroom.app.workspace import current_folder, workspace_root
from greenroom.cli.options import RunOptions
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.ports.model import Model, Models
from greenroom.core.state.step import Step
from greenroom.testing.scripted import ScriptedModel

if TYPE_CHECKING:
    from greenroom.app.agents.finding import Agents
    from greenroom.app.model_registry import Provisions
    from greenroom.app.runtime import Runtime

PACE: Final = "GREENROOM_DEMO_PACE"
"""The environment variable for how many seconds a reply of the demo's scripted agents takes."""

WATCHABLE: Final = 0.4


def demo_pace() -> float:
    """What the environment says, else a pace that can be watched."""
    try:
        return max(float(os.environ.get(PACE, WATCHABLE)), 0.0)
    except ValueError:
        return WATCHABLE


class Resources:
    """One per invocation. It is also the models that a team of this process asks."""

    def __init__(self) -> None:
        self._made: Provisions | None = None
        self._flags: dict[str, object] = {}
        self.runtime: Runtime | None = None
        self.says_yes = False

    @property
    def provisions(self) -> Provisions:
        """Settings, models and recordings."""
        if self._made is None:
            from greenroom.app.model_registry import Provisions

            self._made = Provisions()
        return self._made

    @property
    def language(self) -> str:
        return self.provisions.loaded.settings.language

    @property
    def folder(self) -> Path:
        """The folder in which this was typed."""
        return current_folder()

    @property
    def root(self) -> Path:
        return workspace_root(self.folder)

    def notes(self) -> str:
        """What its people wrote for agents that work there; labelled where the person has not agreed to it."""
        return agreed_notes(self.folder, own_ledger().trusted(self.root))

    def agents(self) -> Agents:
        """The agents that may be used there: not those that it brings and the person has not agreed to."""
        from greenroom.app.agents.finding import find_agents
        from greenroom.app.trust import agreed

        return agreed(find_agents(self.folder), self.root, own_ledger().trusted(self.root))

    def use(self, options: RunOptions) -> None:
        """Take limits and recordings as they were typed."""
        self.cap(options)
        self.tape(options)

    def cap(self, options: RunOptions) -> None:
        """Take the limits as they were typed."""
        self._give({"limits.cost": options.cost, "limits.tokens": options.tokens, "limits.time": options.time})

    def tape(self, options: RunOptions) -> None:
        """Record or replay, if that was asked for."""
        if options.record is not None or options.replay is not None:
            self.provisions.tape(options.record, options.replay)

    def set_attendance(self, *, yes: bool, non_interactive: bool) -> None:
        """Whether plans are approved beforehand, and whether there is a person to be asked."""
        self.says_yes = yes
        self._give({"non_interactive": True if non_interactive else None})

    def _give(self, flags: Mapping[str, object]) -> None:
        self._flags |= flags
        self.provisions.give(self._flags)

    @property
    def attended(self) -> bool:
        """Whether a person may be asked, as far as is known without a look at the terminal."""
        return not self.provisions.loaded.settings.non_interactive

    def patience(self) -> int | None:
        """Milliseconds that a question waits for its answer; None is for ever."""
        return self.provisions.loaded.settings.patience

    def named(self, name: str) -> Model:
        return self.provisions.named(name)

    def around(self, script: ScriptedModel) -> Models:
        """A script, recorded or replayed if that was asked for."""
        return script if self._made is None else self._made.around(script)

    def leftover(self) -> str:
        """A sentence about what a recording held in vain; empty when there is nothing to say."""
        unused = self._made.unused() if self._made is not None else None
        if unused is None:
            return ""
        some = "1 answer" if unused.count == 1 else f"{unused.count} answers"
        return f"Never asked for: {some} in {unused.file} ({', '.join(unused.models)})."

    async def ended(self, team: TeamId, name: StepId) -> Step | None:
        """A step that has ended, for an agent that reads on in its result."""
        return None if self.runtime is None else await ended_step(self.runtime, team, name)

    async def steps(self, team: TeamId) -> list[Step]:
        """All steps of a team that have ended."""
        if self.runtime is None:
            return []
        return [row async for row in self.runtime.archive(team, "step") if isinstance(row, Step)]

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()
