"""How talks end, and with which models they are held: what is known of a talk from its world."""

from __future__ import annotations

from greenroom.app.runtime import Runtime
from greenroom.app.talks.founding import model_of, voiced
from greenroom.app.talks.names import ALONE, TALKS
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.rules.intents import ChangeAgent, FinishTask
from greenroom.core.state.step import Step
from greenroom.core.state.world import World, ordered


def models_of(world: World) -> tuple[str, ...]:
    """The models that a team asks, by the names in the specs of its agents; none for a team with a script."""
    if world.team.kit not in TALKS:
        return ()
    return tuple(dict.fromkeys(model_of(agent.spec) for agent in world.agents.values()))


def choose_model(world: World, agent: AgentId, name: str) -> tuple[ChangeAgent, ...]:
    """Let an agent ask another model from now on, and with it all who ask the same one."""
    own = model_of(world.agents[agent].spec)
    same = [one for one in ordered(world.agents) if model_of(one.spec) == own]
    return tuple(ChangeAgent(agent_id=one.agent_id, spec=voiced(one.spec, name)) for one in same)


async def settle(runtime: Runtime, team: TeamId) -> None:
    """End the tasks in which nothing will happen any more, with the error that made it so. A chat waits for people."""
    world = await runtime.world(team)
    if world.team.kit not in ALONE:
        return
    for name in tuple(world.tasks):
        if (await runtime.stands(team, name)).word == "idle":
            why = await last_error(runtime, team, name)
            await runtime.ask(team, FinishTask(task_id=name, state="failed", summary=why))


async def last_error(runtime: Runtime, team: TeamId, task: TaskId) -> str:
    """Why nothing happens any more in a task."""
    found = ""
    async for step in runtime.archive(team, "step"):
        if isinstance(step, Step) and step.task_id == task and step.error:
            found = step.error
    return found or "There was no answer."
