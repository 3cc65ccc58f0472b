"""What a tool of a team has made, for whoever reads on in it later."""

from __future__ import annotations

from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.state.step import Step


async def ended_step(runtime: Runtime, team: TeamId, name: StepId) -> Step | None:
    """An ended step of a team; None when it has none of that name."""
    async for one in runtime.archive(team, "step"):
        if isinstance(one, Step) and one.step_id == name:
            return one
    return None
