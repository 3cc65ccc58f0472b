"""What models are asked with, loaded when somebody asks for it: whoever only looks at the log does not wait for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from greenroom.app.toolset.by_hand import ended_step
from greenroom.app.workspace import current_folder, workspace_root
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.ports.model import Model, Models
from greenroom.core.state.step import Step
from greenroom.interfaces.cli.asked.orders import Caps, Tape
from greenroom.interfaces.cli.loading import load
from greenroom.testing.scripted import ScriptedModel

if TYPE_CHECKING:
    from greenroom.app.kit import Kit
    from greenroom.app.model_registry import Provisions
    from greenroom.app.runtime import Runtime
    from greenroom.app.settings.schema import Settings
    from greenroom.app.toolset.toolbox import Copied, Toolbox
    from greenroom.app.toolset.toolset import FindEnded, Hands
    from greenroom.core.state.team import Team
    from greenroom.interfaces.cli.runs.surroundings import Surroundings


class Means:
    """One per invocation. It is also the models that a team of this process asks."""

    def __init__(self) -> None:
        self._made: Provisions | None = None
        self._around: Surroundings | None = None
        self._flags: dict[str, object] = {}
        self.runtime: Runtime | None = None
        self.says_yes = False

    @property
    def provisions(self) -> Provisions:
        """Settings, models and recordings."""
        if self._made is None:
            make = cast("Callable[[], Provisions]", load("runs.provisioning", "provisions"))
            self._made = make()
        return self._made

    @property
    def surroundings(self) -> Surroundings:
        """The workspace with its agents and notes: reading those takes its time."""
        if self._around is None:
            make = cast("Callable[[], Surroundings]", load("runs.surroundings", "surroundings"))
            self._around = make()
        return self._around

    @property
    def root(self) -> Path:
        """Where the workspace begins in which this was typed."""
        return workspace_root(current_folder())

    def notes(self) -> str:
        """What the workspace says to whoever works there."""
        return self.surroundings.notes()

    def hands(self, root: Path, copied: Copied | None = None) -> Hands:
        """The tools of a workspace, or of one copied from it."""
        make = cast(
            "Callable[[Path, FindEnded, Iterable[str], Settings, Models, Copied | None], Hands]",
            load("runs.hands", "hands_in"),
        )
        return make(root, self._ended, self.provisions.keys(), self.provisions.loaded.settings, self, copied)

    async def job(self, team: Team) -> Kit:
        """What a job is done with."""
        make = cast("Callable[[Means], Callable[[Team], Awaitable[Kit]]]", load("runs.jobs", "kit_of"))
        return await make(self)(team)

    async def organisation(self, team: Team) -> Kit:
        """What an organisation works with."""
        make = cast("Callable[[Means], Callable[[Team], Awaitable[Kit]]]", load("runs.organisation", "kit_of"))
        return await make(self)(team)

    async def steps(self, team: TeamId) -> list[Step]:
        """All steps of a team that have ended."""
        if self.runtime is None:
            return []
        return [one async for one in self.runtime.archive(team, "step") if isinstance(one, Step)]

    def toolbox(self, root: Path) -> Toolbox:
        """The same, only to be looked at."""
        return cast("Callable[[Path], Toolbox]", load("runs.hands", "toolbox_of"))(root)

    async def _ended(self, team: TeamId, name: StepId) -> Step | None:
        """A step that has ended, for whoever reads on in its result."""
        if self.runtime is None:
            return None
        return await ended_step(self.runtime, team, name)

    def named(self, name: str) -> Model:
        """The model of this name."""
        return self.provisions.named(name)

    def around(self, script: ScriptedModel) -> Models:
        """A script, recorded or replayed if that was asked for."""
        return script if self._made is None else self._made.around(script)

    def tape(self, tape: Tape) -> None:
        """Record or replay, if that was asked for."""
        if tape.record is not None or tape.replay is not None:
            self.provisions.tape(tape.record, tape.replay)

    def cap(self, caps: Caps) -> None:
        """What was said about limits."""
        self._give({"limits.cost": caps.cost, "limits.tokens": caps.tokens, "limits.time": caps.time})

    def agree(self, *, said: bool) -> None:
        """Whether it was said that a plan needs nobody's yes."""
        self.says_yes = said

    def leave_alone(self, *, said: bool) -> None:
        """Whether it was said that nobody is there to be asked."""
        self._give({"non_interactive": True if said else None})

    def _give(self, flags: Mapping[str, object]) -> None:
        self._flags |= flags
        self.provisions.give(self._flags)

    def patience(self) -> int | None:
        """Milliseconds that a question waits for its answer; None is for ever."""
        return self.provisions.loaded.settings.patience

    @property
    def attended(self) -> bool:
        """Whether somebody may be asked, as far as is known without a look at the terminal."""
        return not self.provisions.loaded.settings.non_interactive

    def leftover(self) -> str:
        """A sentence about what a recording held in vain; empty when there is nothing to say."""
        unused = self._made.unused() if self._made is not None else None
        if unused is None:
            return ""
        some = "1 answer" if unused.count == 1 else f"{unused.count} answers"
        return f"Never asked for: {some} in {unused.file} ({', '.join(unused.models)})."

    async def close(self) -> None:
        """Let go of what was made."""
        if self._made is not None:
            await self._made.close()
