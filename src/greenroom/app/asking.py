"""A question to one model: a durable team of a single assistant, whose answer ends its only task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from greenroom.abilities.skills.converse import Converse
from greenroom.app.kit import Kit, KitMaker
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TaskId, TeamId, task_id
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.model import Models
from greenroom.core.rules.intents import AddTask, FinishTask, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from greenroom.core.state.world import World

KIT: Final = "ask"
ASSISTANT: Final = AgentId("assistant")
PROFILE: Final = "Answer what you are asked: to the point, and honest about what you do not know."
NAME: Final = 60
"""Characters of a question that its task is called by."""


def ask_kits(models: Models) -> Mapping[str, KitMaker]:
    """The kit by name. The models are not touched before a team runs with it."""
    return {KIT: lambda _: Kit(abilities=Abilities([Converse(models, solo=True)]))}


async def ask(runtime: Runtime, question: str, *, model: str, limits: Limits) -> TeamId:
    """Make the team; it does not work yet. Its assistant keeps this model, whoever goes on with it."""
    spec = AgentSpec(name="assistant", role="an assistant", profile=PROFILE, manager=True, llm_config={"model": model})
    name = " ".join(question.split())
    task = AddTask(name=name[:NAME] or "question", intention=question, manager=ASSISTANT)
    work = Work(type="skill", executor="converse", intention="Answer.", text_content=question)
    first = QueueSteps(agent_id=ASSISTANT, works=(work,), task_id=task_id(1))
    return await runtime.create("ask", [(ASSISTANT, spec)], kit=KIT, limits=limits, begin=(task, first))


def models_of(world: World) -> tuple[str, ...]:
    """The models that a team asks, by the names in the specs of its agents; none for a team with a script."""
    if world.team.kit != KIT:
        return ()
    named = (str((agent.spec.llm_config or {}).get("model", "")) for agent in world.agents.values())
    return tuple(dict.fromkeys(named))


async def settle(runtime: Runtime, team: TeamId) -> None:
    """End the tasks of an asking team in which nothing will happen any more, with the error that made it so."""
    world = await runtime.world(team)
    if world.team.kit != KIT:
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
