"""Random intents on a small team, nearly legal or nonsense, each with a sender."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from tests.core.wishes import knowledge, plan, talk, words, work

Wish = Callable[[Random, TeamState], i.Intent]

CONSEQUENCES: tuple[Callable[[Random, TeamState], i.Consequence], ...] = (
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
    plan.add_participants,
    plan.update_working_memory,
    plan.add_task,
    plan.add_stages,
    plan.replan,
    plan.start_stage,
    plan.finish_stage,
    plan.finish_subtask,
    plan.finish_subtask,
    plan.update_stage_agent_state,
    plan.update_stage_agent_completion,
    talk.cancel_timer,
    work.move_window,
    work.set_workspace,
    knowledge.save_memory,
    knowledge.clear_memory,
    knowledge.remember,
    knowledge.write_artifact,
    knowledge.write_artifact,
)
"""Consequences that a step may ask for, repeated by their weight."""

SELDOM: tuple[Callable[[Random, TeamState], i.Consequence], ...] = (
    plan.add_agent,
    plan.remove_agent,
    plan.start_task,
    plan.finish_task,
    plan.pause_task,
    plan.resume_task,
    plan.cancel_task,
    work.set_limits,
)
"""Rare consequences. Used often, they would leave the team without work."""

HOUSE: tuple[Wish, ...] = (
    plan.create_team,
    plan.fork_team,
    plan.change_agent,
    plan.recover,
    plan.declare,
    plan.pause_team,
    plan.report_stage,
    work.interrupt,
    work.record_step,
    talk.form_group,
)
"""Intents that only people and the runtime send."""

LIVELY: tuple[Wish, ...] = (
    plan.resume_team,
    plan.resume_task,
    plan.start_task,
    plan.add_task,
    plan.start_stage,
    plan.start_stage,
    plan.replan,
    plan.assign_subtask,
    plan.assign_subtask,
    plan.assign_subtask,
    talk.answer_approval,
    talk.answer_approval,
    talk.fire_timer,
    talk.persons_answer,
    work.queue_steps,
    work.queue_steps,
    talk.send_message,
)
"""Intents that start work in an idle team."""


def wish(rng: Random, state: TeamState, now: int) -> tuple[i.Intent, str]:
    """Return an intent and its sender: mostly one that advances the team, sometimes any."""
    busy, ready = words.busy(state), words.startable(state)
    kind = rng.randrange(16)
    if kind < 6 and busy:
        return owned(rng, state, finish(rng, state))
    if kind < 10 and ready:
        return owned(rng, state, work.start_step(rng, state))
    if kind == 10 and busy:
        return owned(rng, state, rng.choice((work.release_step, work.prepare_effect))(rng, state))
    if kind == 11 and rng.randrange(2):
        return rng.choice(HOUSE if rng.randrange(2) == 0 else SELDOM)(rng, state), words.asker(rng, state)
    if kind == 12:
        return anything(rng, state, now), words.asker(rng, state)
    return rng.choice(LIVELY)(rng, state), rng.choice(("door", "system", words.asker(rng, state)))


def anything(rng: Random, state: TeamState, now: int) -> i.Intent:
    """Return any intent."""
    if rng.randrange(6) == 0:
        return talk.set_timer(rng, state, now)
    kinds = (*CONSEQUENCES, *SELDOM, *HOUSE, *LIVELY, work.start_step, work.prepare_effect, work.release_step, finish)
    return rng.choice(kinds)(rng, state)


def owned(
    rng: Random, state: TeamState, intent: i.StartStep | i.FinishStep | i.ReleaseStep | i.PrepareEffect
) -> tuple[i.Intent, str]:
    """Return the intent with its step's agent as sender, mostly."""
    step = state.steps.get(intent.step_id)
    if step is not None and rng.randrange(12):
        return intent, step.agent_id
    return intent, words.asker(rng, state)


def one_of(rng: Random) -> Callable[[Random, TeamState], i.Consequence]:
    """Choose a consequence, rarely a rare one."""
    return rng.choice(SELDOM if rng.randrange(10) == 0 else CONSEQUENCES)


def mine(rng: Random, step: Step, intent: i.Consequence) -> i.Consequence:
    """Make the consequence refer to the agent's own work, mostly."""
    if rng.randrange(4) == 0:
        return intent
    match intent:
        case i.QueueSteps() | i.UpdateWorkingMemory() | i.UpdateStageAgentState() | i.UpdateStageAgentCompletion():
            return evolve(intent, agent_id=step.agent_id)
        case i.SendMessage():
            return evolve(intent, sender=None, task_id=step.task_id)
        case i.FinishSubtask() if step.subtask_id is not None and step.stage_id is not None:
            return evolve(intent, subtask_id=step.subtask_id, stage_id=step.stage_id)
        case i.NeedToolDecision():
            return evolve(intent, agent_id=step.agent_id, task_id=step.task_id, stage_id=None)
        case i.WriteArtifact():
            return evolve(intent, task_id=step.task_id)
        case _:
            return intent


def finish(rng: Random, state: TeamState) -> i.FinishStep:
    """Return a result with up to three consequences. A step that owes an answer mostly gives it."""

    def consequences(step: Step) -> tuple[i.Consequence, ...]:
        found = [mine(rng, step, one_of(rng)(rng, state)) for _ in range(rng.randrange(4))]
        if step.answers is not None and rng.randrange(3):
            found.insert(rng.randint(0, len(found)), talk.answer(rng, state, step))
        return tuple(found)

    return work.finish_step(rng, state, consequences)
