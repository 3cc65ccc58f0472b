"""Wishes: random intents over a small house, legal-ish and nonsense, each with somebody who asks."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from greenroom.core.rules.intents import Consequence, FinishStep, Intent, PrepareEffect, ReleaseStep, StartStep
from greenroom.core.state.step import Step
from greenroom.core.state.world import World
from tests.core.wishes import plan, talk, words, work

Wish = Callable[[Random, World], Intent]

CONSEQUENCES: tuple[Callable[[Random, World], Consequence], ...] = (
    talk.send_message,
    talk.send_message,
    talk.send_message,
    talk.send_message,
    work.queue_steps,
    work.queue_steps,
    work.queue_steps,
    work.modify_step,
    work.remove_step,
    talk.ask_info,
    talk.need_tool_decision,
    talk.post_note,
    talk.set_value,
    plan.add_agent,
    plan.remove_agent,
    plan.add_participants,
    plan.update_working_memory,
    plan.add_task,
    plan.start_task,
    plan.finish_task,
    plan.pause_task,
    plan.resume_task,
    plan.cancel_task,
    plan.add_stages,
    plan.start_stage,
    plan.finish_stage,
    plan.finish_subtask,
    plan.finish_subtask,
    plan.update_stage_agent_state,
    plan.update_stage_agent_completion,
    work.set_limits,
    talk.cancel_timer,
    work.move_window,
    work.set_workspace,
)
"""What a step may ask for, as often as it stands here."""

OTHERS: tuple[Wish, ...] = (
    plan.create_team,
    plan.fork_team,
    plan.recover,
    plan.declare,
    plan.pause_team,
    plan.resume_team,
    plan.resume_team,
    plan.resume_task,
    plan.report_stage,
    plan.start_stage,
    plan.start_stage,
    plan.assign_subtask,
    plan.assign_subtask,
    plan.assign_subtask,
    talk.answer_approval,
    talk.answer_approval,
    talk.answer_approval,
    talk.fire_timer,
    talk.fire_timer,
    talk.persons_answer,
)
"""What only doors and the house ask for."""


def wish(rng: Random, world: World, now: int) -> tuple[Intent, str]:
    """Something that somebody asks for."""
    kind = rng.randrange(10)
    if kind < 3:
        return owned(rng, world, work.start_step(rng, world))
    if kind < 6:
        return owned(rng, world, finish(rng, world))
    if kind == 6:
        return owned(rng, world, rng.choice((work.release_step, work.prepare_effect))(rng, world))
    if kind == 7:
        return rng.choice(OTHERS)(rng, world), rng.choice(("door", "system", words.asker(rng, world)))
    if kind == 8 and rng.randrange(6) == 0:
        return talk.set_timer(rng, world, now), words.asker(rng, world)
    return rng.choice(CONSEQUENCES)(rng, world), words.asker(rng, world)


def owned(
    rng: Random, world: World, intent: StartStep | FinishStep | ReleaseStep | PrepareEffect
) -> tuple[Intent, str]:
    """Asked for by the step's agent, mostly."""
    step = world.steps.get(intent.step_id)
    if step is not None and rng.randrange(12):
        return intent, step.agent_id
    return intent, words.asker(rng, world)


def finish(rng: Random, world: World) -> FinishStep:
    """A result with up to three consequences; a step that owes an answer mostly gives it."""

    def consequences(step: Step) -> tuple[Consequence, ...]:
        found = [rng.choice(CONSEQUENCES)(rng, world) for _ in range(rng.randrange(4))]
        if step.answers is not None and rng.randrange(3):
            found.insert(rng.randint(0, len(found)), talk.answer(rng, world, step))
        return tuple(found)

    return work.finish_step(rng, world, consequences)
