"""Rules for queueing, changing and starting steps. `endings.py` holds how they end."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import Rejection, reject
from greenroom.core.base.ids import StepId, ThreadId, approval_id, timer_id
from greenroom.core.base.records import evolve
from greenroom.core.rules.approvals import compute_expiry, set_expiry_timer
from greenroom.core.rules.draft import (
    Draft,
    RuleResult,
    find_own_step,
    is_trusted,
    reject_not_in_group,
    reject_not_manager,
    reject_unknown,
)
from greenroom.core.rules.endings import (
    INSTRUCTION_SKILL,
    close_after_step,
    drop_step,
    emit_end,
    end_step,
    find_running_step,
    reject_stale_attempt,
)
from greenroom.core.rules.intents import ModifyStep, PrepareEffect, QueueSteps, RecordStep, RemoveStep, StartStep
from greenroom.core.rules.limits import compute_reservation, compute_working_time, pause_at_limit
from greenroom.core.rules.origins import list_principals
from greenroom.core.rules.questions import ask_person
from greenroom.core.rules.queue import (
    enqueue,
    find_next_place,
    find_owed_answer,
    find_place_in_thread,
    is_thread_open,
    next_step,
    open_thread,
)
from greenroom.core.state.agent import AgentState
from greenroom.core.state.approval import ApprovalRequested, ApprovalVoided, covers
from greenroom.core.state.budget import Budget, check_room
from greenroom.core.state.origin import merge_labels
from greenroom.core.state.spec import SEARCH_HISTORY, AgentSpec
from greenroom.core.state.step import (
    SIDE_EFFECTS,
    EffectPrepared,
    Step,
    StepBlocked,
    StepChanged,
    StepStarted,
    StepTerms,
    Work,
    needs_instruction,
)
from greenroom.core.state.team_state import TeamState
from greenroom.core.state.thread import Thread
from greenroom.core.state.timer import Timer, TimerSet

BASIC_SKILLS: Final = frozenset(
    {
        "converse",
        "compact",
        "summarize",
        "filter_tools",
        "prompt_memory_save",
        "retrospect",
        "keep_skill",
        "end_work",
        "plan_task",
        "handoff_summary",
        "choose_receiver",
        "planning",
        "reflection",
        "send_message",
        "process_message",
        "instruction_generation",
    }
)
"""Skills of every agent. `summary` and `tool_decision` cannot be planned: see `_check_work`."""

MANAGER_SKILLS: Final = frozenset({"task_manager", "agent_manager"})
"""Skills of managers only."""

CALL_TOOL: Final = "call_agent"
"""The tool of an agent that may call other agents."""

NO_INSTRUCTION: Final = Rejection(
    code="no_instruction",
    why="A tool step without instruction_content would never run: nothing fills it in.",
    hint=f"Give instruction_content, or put an {INSTRUCTION_SKILL} step before each such tool step.",
)


def queue_steps(draft: Draft, intent: QueueSteps, by: str) -> RuleResult:
    """Add steps at the end of the queue, or before the next step in the given order."""
    agent = _find_agent(draft, intent, by)
    if isinstance(agent, Rejection):
        return agent
    intent = _add_reflection(draft, agent, intent)
    refusals = [_check_work(draft, agent, work, by) for work in intent.works]
    for work, refused in zip(intent.works, refusals, strict=True):
        if refused is not None and work.call_id is None:
            return refused
    thread = _find_thread(draft, intent)
    if isinstance(thread, Rejection):
        return thread
    misplaced = _check_placement(draft, thread, intent, by)
    if misplaced is not None:
        return misplaced
    for name, refused in zip(_enqueue_steps(draft, thread, intent), refusals, strict=True):
        if refused is not None:
            # A native call always gets its one result.
            end_step(draft, draft.state.steps[name], "failed", error=str(refused))
    return None


def _add_reflection(draft: Draft, agent: AgentState, intent: QueueSteps) -> QueueSteps:
    """Append a reflection step to a plan that lacks one."""
    cause = draft.cause
    planned = cause is not None and cause.agent_id == agent.agent_id and cause.work.executor == "planning"
    looks_back = any(work.executor == "reflection" for work in intent.works)
    if not planned or not intent.works or intent.place == "next" or looks_back:
        return intent
    look = Work(type="skill", executor="reflection", intention="Look back on what was done.")
    return evolve(intent, works=(*intent.works, look))


def _enqueue_steps(draft: Draft, thread: ThreadId, intent: QueueSteps) -> list[StepId]:
    """Queue the steps. Steps that lead to an owed answer come next."""
    owed_answer = find_owed_answer(draft, thread)
    agent, place = draft.state.agents[intent.agent_id], None
    if intent.place == "next":
        place = find_place_in_thread(draft.state, agent, thread, owed_answer)
    elif owed_answer is not None:
        place = find_next_place(draft.state, agent)
    repeated = [draft.cause if _is_repeat(draft, agent, work) else None for work in intent.works]
    return [
        enqueue(
            draft,
            thread,
            work,
            place=None if place is None else place + offset,
            message=same.message_id if same is not None else None,
            goes_on=same is not None and same.goes_on,
            stage=intent.stage_id,
            answers=owed_answer,
            after=draft.list_new_waits(intent.agent_id) if owed_answer else (),
            jumped=owed_answer is not None,
            origins=merge_labels((), intent.origins),
        )
        for offset, (work, same) in enumerate(zip(intent.works, repeated, strict=True))
    ]


def _is_repeat(draft: Draft, agent: AgentState, work: Work) -> bool:
    """Return whether the work repeats the sending step. A repeat is allowed regardless of who may plan it."""
    cause = draft.cause
    if cause is None or cause.agent_id != agent.agent_id:
        return False
    sending_work = cause.work
    return (work.type, work.executor, work.text_content) == ("skill", sending_work.executor, sending_work.text_content)


def _check_placement(draft: Draft, thread: ThreadId, intent: QueueSteps, by: str) -> RuleResult:
    """Reject steps of an unknown stage, and tool steps that no step fills in."""
    task = draft.state.tasks[draft.state.threads[thread].task_id]
    if intent.stage_id is not None and intent.stage_id not in task.stages:
        return reject_unknown("stage", intent.stage_id, task.stages)
    is_own = by == intent.agent_id and draft.state.agents[intent.agent_id].spec.kind == "llm"
    if is_own and any(map(needs_instruction, intent.works)) and _is_left_pending(draft, thread, intent):
        return NO_INSTRUCTION
    return None


def _is_left_pending(draft: Draft, thread: ThreadId, intent: QueueSteps) -> bool:
    """Return whether a new tool step has no step before it that fills it in. Each such step fills in one."""
    before = draft.state.steps_of(intent.agent_id) if intent.place == "last" else ()
    queued = [step.work for step in before if step.thread_id == thread]
    spare = 0
    for place, work in enumerate((*queued, *intent.works)):
        if work.executor == INSTRUCTION_SKILL:
            spare += 1
        elif needs_instruction(work):
            if spare == 0 and place >= len(queued):
                return True
            spare = max(0, spare - 1)
    return False


def _find_agent(draft: Draft, intent: QueueSteps, by: str) -> AgentState | Rejection:
    """Return the steps' agent, if the sender may queue steps for it."""
    agent = draft.state.agents.get(intent.agent_id)
    if agent is None:
        return reject_unknown("agent", intent.agent_id, tuple(draft.state.agents))
    if by == intent.agent_id or is_trusted(draft.state, by) or _is_service(draft, agent, intent):
        return agent
    why = f"{by!r} may not queue steps for {intent.agent_id!r}."
    return Rejection(code="not_yours", why=why, hint="Send it a message instead.")


def _is_service(draft: Draft, agent: AgentState, intent: QueueSteps) -> bool:
    """Return whether a step asks a system agent of its own task for what that agent offers: the tools of its spec."""
    cause = draft.cause
    if cause is None or intent.thread_id is not None or intent.task_id not in (None, cause.task_id):
        return False
    offers = all(work.type == "tool" and work.executor in agent.spec.tools for work in intent.works)
    return agent.spec.kind == "system" and offers


def _find_thread(draft: Draft, intent: QueueSteps) -> ThreadId | Rejection:
    """Return the named thread, else the thread of the sending step, else the agent's thread in the subtask or task."""
    state, cause = draft.state, draft.cause
    name = intent.thread_id
    if (
        name is None
        and cause is not None
        and intent.task_id in (None, cause.task_id)
        and cause.agent_id == intent.agent_id
    ):
        name = cause.thread_id
    if name is not None and is_thread_open(state, name) and state.threads[name].agent_id == intent.agent_id:
        return name
    if intent.thread_id is not None:
        return reject_unknown("thread", intent.thread_id)
    home = _find_shared_subtask(state, intent, cause)
    task_name = home.task_id if home is not None else intent.task_id
    if task_name is None:
        return Rejection(code="no_task", why="The steps name no task.", hint="Give task_id.")
    task = state.tasks.get(task_name)
    if task is None or task.state == "cancelling":
        return reject_unknown("task", task_name, tuple(state.tasks))
    if intent.agent_id not in task.group:
        return reject_not_in_group(intent.agent_id, task)
    stage, subtask = (home.stage_id, home.subtask_id) if home is not None else (None, None)
    principals = list_principals(draft)
    return open_thread(draft, intent.agent_id, task_name, stage=stage, subtask=subtask, on_behalf=principals)


def _find_shared_subtask(state: TeamState, intent: QueueSteps, cause: Step | None) -> Thread | None:
    """Return the conversation in a subtask that steps for or by a system agent continue, if its stage is open."""
    if cause is None or intent.task_id not in (None, cause.task_id) or not is_thread_open(state, cause.thread_id):
        return None
    home = state.threads[cause.thread_id]
    kinds = {state.agents[name].spec.kind for name in (cause.agent_id, intent.agent_id)}
    return home if home.subtask_id is not None and "system" in kinds else None


def _check_work(draft: Draft, agent: AgentState, work: Work, by: str) -> RuleResult:
    """Reject work that an agent may not give itself: foreign skills and tools, and steps that other steps cause."""
    if by != agent.agent_id or agent.spec.kind != "llm" or _is_repeat(draft, agent, work):
        return None
    spec, cause = agent.spec, draft.cause
    if work.type == "tool":
        proves = work.executor == spec.proof and work.call_id is None  # Greenroom runs the proof itself, before the end
        if (
            proves
            or work.executor in (*spec.tools, SEARCH_HISTORY)
            or (work.executor == CALL_TOOL and (spec.calls or spec.planner.may_split))
        ):
            return None
        known = ", ".join(spec.tools) or "none"
        why, tool = "{agent!r} may not use the tool {tool!r}.", work.executor
        return reject("no_such_tool", why, "Its tools: {known}.", agent=agent.agent_id, tool=tool, known=known)
    if work.executor == "summary" and (cause is None or cause.work.executor != "reflection"):
        return Rejection(code="summary_not_planned", why="Only reflection may schedule a summary step.")
    if work.executor == "tool_decision":
        return Rejection(code="tool_decision_not_planned", why="Only a long-tail tool may cause a tool_decision step.")
    if work.executor in MANAGER_SKILLS and not spec.manager:
        return reject_not_manager(by, f"use the skill {work.executor!r}")
    if work.executor == "summary" or work.executor in list_skills(spec):
        return None
    return Rejection(
        code="no_such_skill",
        why=f"{agent.agent_id!r} may not use the skill {work.executor!r}.",
        hint=f"Its skills: {', '.join(sorted(list_skills(spec)))}.",
    )


def list_skills(spec: AgentSpec) -> frozenset[str]:
    """Return the skills that an agent may plan."""
    return BASIC_SKILLS | frozenset(spec.skills) | (MANAGER_SKILLS | {"ask_info"} if spec.manager else frozenset())


def _find_waiting_step(draft: Draft, name: str, by: str) -> Step | Rejection:
    step = find_own_step(draft.state, name, by)
    if isinstance(step, Rejection):
        return step
    if step.state not in ("init", "pending"):
        return Rejection(
            code="step_begun", why=f"Step {name!r} is {step.state}: only a step that has not begun changes."
        )
    return step


def modify_step(draft: Draft, intent: ModifyStep, by: str) -> RuleResult:
    """Change a step that has not started."""
    step = _find_waiting_step(draft, intent.step_id, by)
    if isinstance(step, Rejection):
        return step
    if (step.work.type, step.work.executor) != (intent.work.type, intent.work.executor):
        refused = _check_work(draft, draft.state.agents[step.agent_id], intent.work, by)
        if refused is not None:
            return refused
    pending = needs_instruction(intent.work)
    if step.approval is not None and step.approval in draft.state.approvals:
        # The approval was for other work.
        draft.emit(ApprovalVoided(at=draft.now, approval_id=step.approval, why="the step was changed"))
    draft.emit(StepChanged(at=draft.now, step_id=step.step_id, work=intent.work, pending=pending))
    return None


def remove_step(draft: Draft, intent: RemoveStep, by: str) -> RuleResult:
    """Skip a step that has not started."""
    step = _find_waiting_step(draft, intent.step_id, by)
    if isinstance(step, Rejection):
        return step
    drop_step(draft, step, "skipped", error=f"removed by {by}")
    return None


def start_step(draft: Draft, intent: StartStep, by: str) -> RuleResult:
    """Start an attempt: check permission, then the budget, then run."""
    step = find_own_step(draft.state, intent.step_id, by)
    if isinstance(step, Rejection):
        return step
    if next_step(draft.state, step.agent_id) is not step:
        return Rejection(
            code="not_next", why=f"Step {step.step_id!r} may not start now: it is {step.state}, or not next."
        )
    if intent.work != step.work:
        return Rejection(code="other_work", why=f"The terms are for other work than step {step.step_id!r} is to do.")
    terms = intent.terms
    if terms.outward and terms.exposed_at != draft.state.threads[step.thread_id].exposed_by(terms.origins):
        why = f"What the conversation of step {step.step_id!r} has read has changed since its terms were said."
        return Rejection(code="stale_terms", why=why)
    if (step.work.call_id is not None and _is_skipped_after_failure(draft, step, terms)) or not _is_permitted(
        draft, step, terms
    ):
        return None
    budgets = [draft.state.budgets[name] for name in draft.state.budgets_of(step.task_id, step.agent_id)]
    time = compute_working_time(budgets, intent.terms)
    needs = compute_reservation(intent.terms, time)
    if not _is_affordable(draft, step, intent.terms, needs, budgets):
        return None
    draft.emit(
        StepStarted(
            at=draft.now,
            step_id=step.step_id,
            attempt=step.attempt + 1,
            terms=intent.terms,
            reserved=needs,
            notices_seen=len(draft.state.threads[step.thread_id].notices) if step.work.type == "skill" else 0,
            until=None if time is None else draft.now + time,
        )
    )
    if time is not None:
        _set_work_timer(draft, step, draft.now + time)
    return None


def _is_skipped_after_failure(draft: Draft, step: Step, terms: StepTerms) -> bool:
    """Skip a call with side effects if an earlier one of the same reply failed. Return whether it was skipped."""
    if terms.effect not in SIDE_EFFECTS or step.cause is None:
        return False
    if draft.state.threads[step.thread_id].spoilt != step.cause:
        return False
    end_step(draft, step, "skipped", error="Not run: an earlier call of the same reply did not work.")
    return True


def _set_work_timer(draft: Draft, step: Step, due: int) -> None:
    """Set the timer that stops the attempt when its reserved working time ends."""
    timer = Timer(
        timer_id=timer_id(step.step_id, "work"),
        purpose="work",
        subject=step.step_id,
        due=due,
        task_id=step.task_id,
        agent_id=step.agent_id,
    )
    draft.emit(TimerSet(at=draft.now, timer=timer))


def _is_permitted(draft: Draft, step: Step, terms: StepTerms) -> bool:
    """Return whether the policy allows the call. If not, fail the step or ask a person.

    Greenroom's own agents are trusted, so no model speaks for them.
    """
    if step.work.type == "skill" and draft.state.agents[step.agent_id].spec.kind == "system":
        drop_step(draft, step, "failed", error="Not permitted: a system agent asks no model.", effect=terms.effect)
        return False
    if terms.verdict in ("allow", "notify"):
        return True
    if terms.verdict == "deny":
        why = terms.rule.rstrip(". ") or "the policy says no"
        drop_step(draft, step, "failed", error=f"Not permitted: {why}.", effect=terms.effect)
        return False
    approval = draft.state.approvals.get(step.approval) if step.approval else None
    if approval is not None:
        if covers(approval, terms.digest, terms.exposed_at):
            return True
        draft.emit(ApprovalVoided(at=draft.now, approval_id=approval.approval_id, why="something else is asked"))
    name, due = approval_id(step.step_id, step.asked + 1), compute_expiry(draft)
    person = draft.state.find_human()
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
        set_expiry_timer(draft, draft.state.approvals[name], due)
    if person is not None:
        ask_person(draft, step, person, terms.question, {"approval_id": name})
    return False


def _is_affordable(draft: Draft, step: Step, terms: StepTerms, needs: Amounts, budgets: list[Budget]) -> bool:
    """Return whether every budget has room. If not now, the step waits; if never, its task or team pauses."""
    for budget in budgets:
        name = budget.budget_id
        if budget.limits.money is not None and not terms.priced:
            why = f"no price is known for {terms.model!r} and a money cap holds"
            pause_at_limit(draft, name, why, task=step.task_id, step=step.step_id)
            return False
        fit = check_room(budget, needs)
        if fit == "never":
            limit = budget.limits.exceeded_by(budget.spent.plus(needs)) or ""
            pause_at_limit(draft, name, limit, task=step.task_id, step=step.step_id)
            return False
        if fit == "later":
            draft.emit(
                StepBlocked(at=draft.now, step_id=step.step_id, state="awaiting_budget", terms=terms, budget=name)
            )
            return False
    return True


def prepare_effect(draft: Draft, intent: PrepareEffect, by: str) -> RuleResult:
    """Record the external effects that the running attempt is about to make."""
    step = find_running_step(draft, intent.step_id, intent.attempt, by)
    if isinstance(step, Rejection):
        return step
    if step.state == "cancelling":
        return reject_stale_attempt(step, intent.attempt)
    draft.emit(EffectPrepared(at=draft.now, step_id=step.step_id, attempt=step.attempt, prepared=intent.prepared))
    return None


def record_step(draft: Draft, intent: RecordStep, by: str) -> RuleResult:
    """Record a person's action as an ended step. An action that is not allowed is not recorded."""
    agent = draft.state.agents.get(intent.agent_id)
    if agent is None:
        return reject_unknown("agent", intent.agent_id, tuple(draft.state.agents))
    refused = _check_recordable(draft, agent, intent, by)
    for act in (intent.says, intent.reports, intent.ends, intent.decides):
        if refused is None and act is not None:
            refused = draft.apply(act, by)
    if refused is not None:
        return refused
    thread = open_thread(draft, agent.agent_id, intent.task_id)
    name = enqueue(draft, thread, intent.work, stage=intent.stage_id)
    step = draft.state.steps[name]
    emit_end(draft, step, intent.state, result=intent.result, error=intent.error)
    close_after_step(draft, step)
    return None


def _check_recordable(draft: Draft, agent: AgentState, intent: RecordStep, by: str) -> RuleResult:
    if agent.spec.kind != "human" or (by != agent.agent_id and not is_trusted(draft.state, by)):
        why = f"What {agent.agent_id!r} does is written down before it is done."
        return Rejection(code="not_a_person", why=why, hint="Queue a step instead.")
    task = draft.state.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return reject_unknown("task", intent.task_id, tuple(draft.state.tasks))
    if agent.agent_id not in task.group:
        return reject_not_in_group(agent.agent_id, task)
    if intent.stage_id is not None and intent.stage_id not in task.stages:
        return reject_unknown("stage", intent.stage_id, task.stages)
    return None
