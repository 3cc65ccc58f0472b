"""How an organisation stands, and all states of a team in MAS's words: {id: {fields}} for tasks, stages, agents, steps.

What JSON cannot hold is a readable placeholder, and what is secret is not there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, cast, get_args

from greenroom.actors.payload import made_whole
from greenroom.app.organisation.inbox import pool_of
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import Standing, standing
from greenroom.app.toolset.redaction import Redaction
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.state.knowledge import Note
from greenroom.core.state.message import Message
from greenroom.core.state.portrait import Portrait, agent_state, plain, portray_stage, portray_step, portray_task
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from greenroom.core.state.world import World

StateType: TypeAlias = Literal["task", "stage", "agent", "step"]
States: TypeAlias = Mapping[str, Portrait]
TYPES: Final[tuple[StateType, ...]] = get_args(StateType)
WORST: Final = ("working", "provider", "limit", "paused", "waiting")


def at_rest(world: World) -> Standing:
    """How it stands: works, stands still for want of something (and why), waits for a person, or has nothing to do."""
    found = [stands for task in world.tasks if (stands := standing(world, task)) is not None]
    found = [stands for stands in found if stands.word in WORST]
    return min(found, key=lambda stands: WORST.index(stands.word), default=Standing(word="idle"))


async def states(runtime: Runtime, team: TeamId, kind: str, *, secrets: Iterable[str] = ()) -> States:
    """The states of one type by their ids, open and over. `secrets` are left out everywhere."""
    match kind:
        case "task":
            found = await _tasks(runtime, team)
        case "stage":
            found = {stage.stage_id: portray_stage(stage) for stage in await _stages(runtime, team)}
        case "agent":
            found = await _agents(runtime, team)
        case "step":
            found = {step.step_id: portray_step(step) for step in await _steps(runtime, team)}
        case _:
            why = f"There are no states of type {kind!r}."
            raise Refused(Rejected(code="unknown_type", why=why, hint=f"There are: {', '.join(TYPES)}."))
    return serialised(found, secrets)


def serialised(found: States, secrets: Iterable[str] = ()) -> States:
    """The same as JSON can hold it, without secrets."""
    redaction = Redaction(secrets)
    safe = {name: cast("Portrait", plain(fields)) for name, fields in found.items()}
    return {name: dict(redaction.data(fields)) for name, fields in safe.items()} if redaction else safe


async def _tasks(runtime: Runtime, team: TeamId) -> dict[str, Portrait]:
    world, stages = await runtime.world(team), defaultdict[TaskId, list[Stage]](list)
    notes: defaultdict[TaskId, list[Note]] = defaultdict(list)
    for stage in await _stages(runtime, team):
        stages[stage.task_id].append(stage)
    async for note in runtime.archive(team, "note"):
        if isinstance(note, Note):
            notes[note.task_id].append(note)
    tasks = [*await runtime.ended_tasks(team), *world.tasks.values()]
    return {
        task.task_id: portray_task(task, stages[task.task_id], notes[task.task_id])
        for task in sorted(tasks, key=lambda task: _ordinal(task.task_id))
    }


async def _stages(runtime: Runtime, team: TeamId) -> list[Stage]:
    ended = [stage async for stage in runtime.archive(team, "stage") if isinstance(stage, Stage)]
    return sorted([*ended, *(await runtime.world(team)).stages.values()], key=lambda stage: _ordinal(stage.stage_id))


async def _steps(runtime: Runtime, team: TeamId) -> list[Step]:
    ended = [await _whole(runtime, step) async for step in runtime.archive(team, "step") if isinstance(step, Step)]
    return [*ended, *(await runtime.world(team)).steps.values()]


async def _whole(runtime: Runtime, step: Step) -> Step:
    """The step with all of its result, if that can still be had."""
    try:
        return await made_whole(step, runtime.log)
    except WorldFault:
        return step


async def _agents(runtime: Runtime, team: TeamId) -> dict[str, Portrait]:
    world, ended = await runtime.world(team), defaultdict[AgentId, list[Step]](list)
    for step in await _steps(runtime, team):
        if step.step_id not in world.steps:
            ended[step.agent_id].append(step)
    messages = [message async for message in runtime.archive(team, "message") if isinstance(message, Message)]
    pools = {
        name: pool_of(world, messages, name, agent.spec.language).portrait
        for name, agent in world.agents.items()
        if agent.spec.kind == "human"
    }
    return {name: agent_state(world, name, ended=ended[name], pool=pools.get(name)) for name in sorted(world.agents)}


def _ordinal(name: str) -> tuple[tuple[int, str], ...]:
    """Ids by their numbers: t2 comes before t10."""
    return tuple((len(part), part) for part in name.split("."))
