"""Looking ahead: which step probably follows, so that its start is in the same commit as the end before it."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom.core.base.ids import StepId, step_id
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Outcome
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.origin import merged
from greenroom.core.state.step import Step, Work, length
from greenroom.core.state.thread import absorbed
from greenroom.core.state.world import World


def foreseen(world: World, step: Step, outcome: Outcome) -> World:
    """The world as far as the terms of the next step depend on this one's end: its conversation has read more."""
    thread = world.threads.get(step.thread_id)
    if thread is None:
        return world
    began = step.terms.origins if step.terms is not None else ()
    origins = merged(step.origins, (*began, *outcome.origins))
    grown = evolve(thread, size=thread.size + length(step.work, outcome.result, outcome.error, origins))
    grown = absorbed(grown, origins, world.at)
    return evolve(world, threads=world.threads.set(step.thread_id, grown))


def likely_next(world: World, step: Step, intents: Sequence[Consequence]) -> Step | None:
    """The step that probably follows: started in the same commit if the rules agree, else asked for again."""
    agent = world.agents[step.agent_id]
    mine = [one for one in intents if isinstance(one, QueueSteps) and one.agent_id == step.agent_id and one.works]
    first = next((one for one in mine if one.place == "next"), None)
    if first is None and agent.todo:
        return world.steps[agent.todo[0]]
    first = first or (mine[0] if mine else None)
    if first is None or first.thread_id is not None or first.task_id not in (None, step.task_id):
        return None
    return _foreseen(step, first.works[0], step_id(step.agent_id, agent.steps_made + 1))


def _foreseen(step: Step, work: Work, name: StepId) -> Step:
    return Step(
        step_id=name,
        agent_id=step.agent_id,
        thread_id=step.thread_id,
        task_id=step.task_id,
        stage_id=step.stage_id,
        subtask_id=step.subtask_id,
        work=work,
        queued_at=step.queued_at,
    )
