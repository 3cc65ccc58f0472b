"""What a tool of a team has made, for whoever reads on in it later."""

from __future__ import annotations

from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import StepId, TeamId, agent_of, step_id
from greenroom.core.state.step import Step
from greenroom.core.state.world import World
from greenroom.core.sync import replay


async def ended_step(runtime: Runtime, team: TeamId, name: StepId) -> Step | None:
    """An ended step of a team; None when it has none of that name. For a name that somebody made up nothing is read."""
    if not _has_ended(await runtime.world(team), name):
        return None
    return await replay.ended_step(runtime.log, team, name)


def _has_ended(world: World, name: StepId) -> bool:
    agent = world.agents.get(agent_of(name))
    if agent is None or name in world.steps:
        return False
    number = name.rpartition("#")[2]
    made = int(number) if number.isdecimal() and len(number) < 10 else 0
    return 0 < made <= agent.steps_made and name == step_id(agent.agent_id, made)
