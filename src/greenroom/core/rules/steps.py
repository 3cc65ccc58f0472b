"""Queueing, changing and starting steps. How they end is in `endings.py`."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import StepId, ThreadId, approval_id, timer_id
from greenroom.core.base.records import evolve
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, not_in_group, not_manager, own_step, unknown
from greenroom.core.rules.endings import FILLS, after_end, drop_step, emit_end, end_step, running, stale
from greenroom.core.rules.intents import ModifyStep, PrepareEffect, QueueSteps, RecordStep, RemoveStep, StartStep
from greenroom.core.rules.limits import needed, stop_at, working_time
from greenroom.core.rules.origins import given_here
from greenroom.core.rules.permits import expiry, set_expiry
from greenroom.core.rules.questions import ask_person
from greenroom.core.rules.queue import ahead, enqueue, is_open, next_place, next_step, open_thread, owed_in
from greenroom.core.state.agent import Agent
from greenroom.core.state.approval import ApprovalRequested, ApprovalVoided, covers
from greenroom.core.state.budget import Budget, room
from greenroom.core.state.origin import merged
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import (
    SIDE_EFFECTS,
    EffectPrepared,
    Step,
    StepBlocked,
    StepChanged,
    StepStarted,
    Terms,
    Work,
    lacks_instruction,
)
from greenroom.core.state.timer import Timer, TimerSet

ALWAYS: Final = frozenset(
    {
        "converse",
        "compact",
        "summarize",
        "filter_tools",
        "planning",
        "reflection",
        "send_message",
        "process_message",
        "instruction_generation",
    }
)
"""Skills that every agent has. `summary` and `tool_decision` are not planned: see `_forbidden`."""

PRIVILEGED: Final = frozenset({"task_manager", "agent_manager"})
"""Skills of managers."""

CALLS: Final = "call_agent"
"""The tool of an agent that may call others."""

NO_INSTRUCTION: Final = Rejected(
    code="no_instruction",
    why="A tool step without instruction_content would never run: nothing fills it in.",
    hint=f"Give instruction_content, or put an {FILLS} step before each such tool step.",
)


def queue_steps(draft: Draft, intent: QueueSteps, by: str) -> Verdict:
    """Add steps at the end, or before the next one in the order given."""
    agent = _agent_of(draft, intent, by)
    if isinstance(agent, Rejected):
        return agent
    intent = _reflected(draft, agent, intent)
    refusals = [_forbidden(draft, agent, work, by) for work in intent.works]
    for work, refused in zip(intent.works, refusals, strict=True):
        if refused is not None and work.call_id is None:
            return refused
    thread = _thread_for(draft, intent)
    if isinstance(thread, Rejected):
        return thread
    misplaced = _misplaced(draft, thread, intent, by)
    if misplaced is not None:
        return misplaced
    for name, refused in zip(_line_up(draft, thread, intent), refusals, strict=True):
        if refused is not None:
            # A native call gets its one result, whatever becomes of it.
            end_step(draft, draft.world.steps[name], "failed", error=str(refused))
    return None


def _reflected(draft: Draft, agent: Agent, intent: QueueSteps) -> QueueSteps:
    """A plan ends with a look back on what was done: where it forgot that, the house has not."""
    cause = draft.cause
    planned = cause is not None and cause.agent_id == agent.agent_id and cause.work.executor == "planning"
    looks_back = any(one.executor == "reflection" for one in intent.works)
    if not planned or not intent.works or intent.place == "next" or looks_back:
        return intent
    look = Work(type="skill", executor="reflection", intention="Look back on what was done.")
    return evolve(intent, works=(*intent.works, look))


def _line_up(draft: Draft, thread: ThreadId, intent: QueueSteps) -> list[StepId]:
    """Put the steps into the queue: what is on the way to an answer that is owed comes next."""
    owed = owed_in(draft, thread)
    agent, place = draft.world.agents[intent.agent_id], None
    if intent.place == "next":
        place = ahead(draft.world, agent, thread, owed)
    elif owed is not None:
        place = next_place(draft.world, agent)
    repeated = [draft.cause if _repeats(draft, agent, work) else None for work in intent.works]
    return [
        enqueue(
            draft,
            thread,
            work,
            place=None if place is None else place + offset,
            message=same.message_id if same is not None else None,
            goes_on=same is not None and same.goes_on,
            stage=intent.stage_id,
            answers=owed,
            after=draft.asked(intent.agent_id) if owed else (),
            jumped=owed is not None,
            origins=merged((), intent.origins),
        )
        for offset, (work, same) in enumerate(zip(intent.works, repeated, strict=True))
    ]


def _repeats(draft: Draft, agent: Agent, work: Work) -> bool:
    """Whether it is what the asking step was to do: that may be tried again, whoever may plan it."""
    cause = draft.cause
    if cause is None or cause.agent_id != agent.agent_id:
        return False
    done = cause.work
    return (work.type, work.executor, work.text_content) == ("skill", done.executor, done.text_content)


def _misplaced(draft: Draft, thread: ThreadId, intent: QueueSteps, by: str) -> Verdict:
    """Whether the steps cannot be where they are to be: in a stage that is not there, or before what they need."""
    task = draft.world.tasks[draft.world.threads[thread].task_id]
    if intent.stage_id is not None and intent.stage_id not in task.stages:
        return unknown("stage", intent.stage_id, task.stages)
    own = by == intent.agent_id and draft.world.agents[intent.agent_id].spec.kind == "llm"
    if own and any(map(lacks_instruction, intent.works)) and _stays_pending(draft, thread, intent):
        return NO_INSTRUCTION
    return None


def _stays_pending(draft: Draft, thread: ThreadId, intent: QueueSteps) -> bool:
    """Whether one of the tool steps has none before it, queued or new, that fills it in; each of those fills one."""
    before = draft.world.steps_of(intent.agent_id) if intent.place == "last" else ()
    queued = [one.work for one in before if one.thread_id == thread]
    spare = 0
    for place, work in enumerate((*queued, *intent.works)):
        if work.executor == FILLS:
            spare += 1
        elif lacks_instruction(work):
            if spare == 0 and place >= len(queued):
                return True
            spare = max(0, spare - 1)
    return False


def _agent_of(draft: Draft, intent: QueueSteps, by: str) -> Agent | Rejected:
    """Whose steps they are, if the asker may give some."""
    agent = draft.world.agents.get(intent.agent_id)
    if agent is None:
        return unknown("agent", intent.agent_id, tuple(draft.world.agents))
    if by == intent.agent_id or is_trusted(draft.world, by):
        return agent
    why = f"{by!r} may not queue steps for {intent.agent_id!r}."
    return Rejected(code="not_yours", why=why, hint="Send it a message instead.")


def _thread_for(draft: Draft, intent: QueueSteps) -> ThreadId | Rejected:
    """The thread that is named, else the one of the step that asks, else the agent's thread in the task."""
    world, cause = draft.world, draft.cause
    name = intent.thread_id
    if (
        name is None
        and cause is not None
        and intent.task_id in (None, cause.task_id)
        and cause.agent_id == intent.agent_id
    ):
        name = cause.thread_id
    if name is not None and is_open(world, name) and world.threads[name].agent_id == intent.agent_id:
        return name
    if intent.thread_id is not None:
        return unknown("thread", intent.thread_id)
    if intent.task_id is None:
        return Rejected(code="no_task", why="The steps name no task.", hint="Give task_id.")
    task = world.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(world.tasks))
    if intent.agent_id not in task.group:
        return not_in_group(intent.agent_id, task)
    return open_thread(draft, intent.agent_id, intent.task_id, on_behalf=given_here(draft))


def _forbidden(draft: Draft, agent: Agent, work: Work, by: str) -> Verdict:
    """What an agent may not give itself: foreign abilities, and steps that only other steps may cause."""
    if by != agent.agent_id or agent.spec.kind != "llm" or _repeats(draft, agent, work):
        return None
    spec, cause = agent.spec, draft.cause
    if work.type == "tool":
        proves = work.executor == spec.proof and work.call_id is None  # the house does that, in the place of the end
        if proves or work.executor in spec.tools or (work.executor == CALLS and spec.calls):
            return None
        known = ", ".join(spec.tools) or "none"
        return Rejected(
            code="no_such_tool",
            why=f"{agent.agent_id!r} may not use the tool {work.executor!r}.",
            hint=f"Its tools: {known}.",
        )
    if work.executor == "summary" and (cause is None or cause.work.executor != "reflection"):
        return Rejected(code="summary_not_planned", why="Only reflection may schedule a summary step.")
    if work.executor == "tool_decision":
        return Rejected(code="tool_decision_not_planned", why="Only a long-tail tool may cause a tool_decision step.")
    if work.executor in PRIVILEGED and not spec.manager:
        return not_manager(by, f"use the skill {work.executor!r}")
    if work.executor == "summary" or work.executor in skills_of(spec):
        return None
    return Rejected(
        code="no_such_skill",
        why=f"{agent.agent_id!r} may not use the skill {work.executor!r}.",
        hint=f"Its skills: {', '.join(sorted(skills_of(spec)))}.",
    )


def skills_of(spec: AgentSpec) -> frozenset[str]:
    """The skills that an agent may plan."""
    return ALWAYS | frozenset(spec.skills) | (PRIVILEGED | {"ask_info"} if spec.manager else frozenset())


def _waiting_step(draft: Draft, name: str, by: str) -> Step | Rejected:
    step = own_step(draft.world, name, by)
    if isinstance(step, Rejected):
        return step
    if step.state not in ("init", "pending"):
        return Rejected(
            code="step_begun", why=f"Step {name!r} is {step.state}: only a step that has not begun changes."
        )
    return step


def modify_step(draft: Draft, intent: ModifyStep, by: str) -> Verdict:
    """Change a step that has not begun."""
    step = _waiting_step(draft, intent.step_id, by)
    if isinstance(step, Rejected):
        return step
    if (step.work.type, step.work.executor) != (intent.work.type, intent.work.executor):
        refused = _forbidden(draft, draft.world.agents[step.agent_id], intent.work, by)
        if refused is not None:
            return refused
    pending = lacks_instruction(intent.work)
    if step.approval is not None and step.approval in draft.world.approvals:
        # What was agreed to was something else.
        draft.emit(ApprovalVoided(at=draft.now, approval_id=step.approval, why="the step was changed"))
    draft.emit(StepChanged(at=draft.now, step_id=step.step_id, work=intent.work, pending=pending))
    return None


def remove_step(draft: Draft, intent: RemoveStep, by: str) -> Verdict:
    """Skip a step that has not begun."""
    step = _waiting_step(draft, intent.step_id, by)
    if isinstance(step, Rejected):
        return step
    drop_step(draft, step, "skipped", error=f"removed by {by}")
    return None


def start_step(draft: Draft, intent: StartStep, by: str) -> Verdict:
    """Begin an attempt: permission first, then the budget, then it runs."""
    step = own_step(draft.world, intent.step_id, by)
    if isinstance(step, Rejected):
        return step
    if next_step(draft.world, step.agent_id) is not step:
        return Rejected(
            code="not_next", why=f"Step {step.step_id!r} may not start now: it is {step.state}, or not next."
        )
    if intent.work != step.work:
        return Rejected(code="other_work", why=f"The terms are for other work than step {step.step_id!r} is to do.")
    terms = intent.terms
    if terms.outward and terms.exposed_at != draft.world.threads[step.thread_id].exposed_by(terms.origins):
        why = f"What the conversation of step {step.step_id!r} has read has changed since its terms were said."
        return Rejected(code="stale_terms", why=why)
    if (step.work.call_id is not None and _spoilt(draft, step, terms)) or not _permitted(draft, step, terms):
        return None
    budgets = [draft.world.budgets[name] for name in draft.world.budgets_of(step.task_id, step.agent_id)]
    time = working_time(budgets, intent.terms)
    needs = needed(intent.terms, time)
    if not _affordable(draft, step, intent.terms, needs, budgets):
        return None
    draft.emit(
        StepStarted(
            at=draft.now,
            step_id=step.step_id,
            attempt=step.attempt + 1,
            terms=intent.terms,
            reserved=needs,
            notices_seen=len(draft.world.threads[step.thread_id].notices) if step.work.type == "skill" else 0,
            until=None if time is None else draft.now + time,
        )
    )
    if time is not None:
        _set_clock(draft, step, draft.now + time)
    return None


def _spoilt(draft: Draft, step: Step, terms: Terms) -> bool:
    """Once a call with side effects has not worked, the others of the same reply that have some are not run."""
    if terms.effect not in SIDE_EFFECTS or step.cause is None:
        return False
    if draft.world.threads[step.thread_id].spoilt != step.cause:
        return False
    end_step(draft, step, "skipped", error="Not run: an earlier call of the same reply did not work.")
    return True


def _set_clock(draft: Draft, step: Step, due: int) -> None:
    """The attempt is ended when the working time that is reserved for it is over."""
    timer = Timer(
        timer_id=timer_id(step.step_id, "work"),
        purpose="work",
        subject=step.step_id,
        due=due,
        task_id=step.task_id,
        agent_id=step.agent_id,
    )
    draft.emit(TimerSet(at=draft.now, timer=timer))


def _permitted(draft: Draft, step: Step, terms: Terms) -> bool:
    """Whether the policy allows the call. If not, the step fails, or waits for a person."""
    if terms.verdict in ("allow", "notify"):
        return True
    if terms.verdict == "deny":
        why = terms.rule.rstrip(". ") or "the policy says no"
        drop_step(draft, step, "failed", error=f"Not permitted: {why}.", effect=terms.effect)
        return False
    approval = draft.world.approvals.get(step.approval) if step.approval else None
    if approval is not None:
        if covers(approval, terms.digest, terms.exposed_at):
            return True
        draft.emit(ApprovalVoided(at=draft.now, approval_id=approval.approval_id, why="something else is asked"))
    name, due = approval_id(step.step_id, step.asked + 1), expiry(draft)
    person = draft.world.human()
    draft.emit(StepBlocked(at=draft.now, step_id=step.step_id, state="awaiting_approval", terms=terms, approval=name))
    draft.emit(
        ApprovalRequested(
            at=draft.now,
            approval_id=name,
            step_id=step.step_id,
            agent_id=step.agent_id,
            task_id=step.task_id,
            question=terms.question,
            digest=terms.digest,
            asked_of=person,
            grant=terms.grant,
            words=terms.words,
            release=terms.release,
            expires_at=due,
        )
    )
    if due is not None:
        set_expiry(draft, draft.world.approvals[name], due)
    if person is not None:
        ask_person(draft, step, person, terms.question, {"approval_id": name})
    return False


def _affordable(draft: Draft, step: Step, terms: Terms, needs: Amounts, budgets: list[Budget]) -> bool:
    """Whether every budget has room. If not now, the step waits; if never, its task or team pauses."""
    for budget in budgets:
        name = budget.budget_id
        if budget.limits.money is not None and not terms.priced:
            why = f"no price is known for {terms.model!r} and a money cap holds"
            stop_at(draft, name, why, task=step.task_id, step=step.step_id)
            return False
        found = room(budget, needs)
        if found == "never":
            limit = budget.limits.exceeded_by(budget.spent.plus(needs)) or ""
            stop_at(draft, name, limit, task=step.task_id, step=step.step_id)
            return False
        if found == "later":
            draft.emit(
                StepBlocked(at=draft.now, step_id=step.step_id, state="awaiting_budget", terms=terms, budget=name)
            )
            return False
    return True


def prepare_effect(draft: Draft, intent: PrepareEffect, by: str) -> Verdict:
    """Write down what the running attempt is about to do outside."""
    step = running(draft, intent.step_id, intent.attempt, by)
    if isinstance(step, Rejected):
        return step
    if step.state == "cancelling":
        return stale(step, intent.attempt)
    draft.emit(EffectPrepared(at=draft.now, step_id=step.step_id, attempt=step.attempt, prepared=intent.prepared))
    return None


def record_step(draft: Draft, intent: RecordStep, by: str) -> Verdict:
    """What a person does becomes a step of theirs that is over; what they may not do is no step."""
    agent = draft.world.agents.get(intent.agent_id)
    if agent is None:
        return unknown("agent", intent.agent_id, tuple(draft.world.agents))
    refused = _not_a_persons(draft, agent, intent, by)
    for act in (intent.says, intent.reports, intent.ends, intent.decides):
        if refused is None and act is not None:
            refused = draft.apply(act, by)
    if refused is not None:
        return refused
    thread = open_thread(draft, agent.agent_id, intent.task_id)
    name = enqueue(draft, thread, intent.work, stage=intent.stage_id)
    step = draft.world.steps[name]
    emit_end(draft, step, intent.state, result=intent.result, error=intent.error)
    after_end(draft, step)
    return None


def _not_a_persons(draft: Draft, agent: Agent, intent: RecordStep, by: str) -> Verdict:
    if agent.spec.kind != "human" or (by != agent.agent_id and not is_trusted(draft.world, by)):
        why = f"What {agent.agent_id!r} does is written down before it is done."
        return Rejected(code="not_a_person", why=why, hint="Queue a step instead.")
    task = draft.world.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    if agent.agent_id not in task.group:
        return not_in_group(agent.agent_id, task)
    if intent.stage_id is not None and intent.stage_id not in task.stages:
        return unknown("stage", intent.stage_id, task.stages)
    return None
