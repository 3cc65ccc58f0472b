"""How talks end, and with which models they are held: what is known of a talk from its world."""

from __future__ import annotations

from typing import Final

from greenroom.app.runtime import Runtime
from greenroom.app.talks.founding import model_of
from greenroom.app.talks.kits import ALONE, TALKS
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.rules.intents import FinishTask, SetValue
from greenroom.core.state.step import Step
from greenroom.core.state.world import World, value_key

CHOSEN: Final = "model"
"""Under this name the board has the model that a person has chosen instead of the agent's own."""


def models_of(world: World) -> tuple[str, ...]:
    """The models that a team asks, by the names in the specs of its agents; none for a team with a script."""
    if world.team.kit not in TALKS:
        return ()
    named = (model_of(agent.spec) for agent in world.agents.values())
    instead = chosen_models(world)
    return tuple(dict.fromkeys(instead.get(name, name) for name in named))


def chosen_models(world: World) -> dict[str, str]:
    """The models that a person has chosen in a talk, each by the name of the one that it is asked instead of."""
    found: dict[str, str] = {}
    for task in world.tasks.values():
        value = world.values.get(value_key(task.task_id, CHOSEN))
        if value is not None:
            found[model_of(world.agents[task.manager].spec)] = value.content
    return found


def choose_model(task: TaskId, name: str) -> SetValue:
    """Ask another model from now on, also after a crash."""
    return SetValue(task_id=task, key=CHOSEN, content=name)


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
