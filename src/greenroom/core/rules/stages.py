"""Rules for stages and subtasks: one active stage per task, in order, legal ends only. What they may be: `plans.py`."""

from __future__ import annotations

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, StageId, SubtaskId, thread_id
from greenroom.core.base.records import Data
from greenroom.core.base.text import fenced
from greenroom.core.rules.draft import SYSTEM, Draft, Verdict, is_trusted, not_manager, unknown
from greenroom.core.rules.endings import cancel_steps, close_if_over, settle_question
from greenroom.core.rules.intents import (
    AssignSubtask,
    FinishStage,
    FinishSubtask,
    ReportStage,
    StartStage,
    UpdateStageAgentCompletion,
    UpdateStageAgentState,
)
from greenroom.core.rules.origins import ABOUT, given_by_manager, has_read, people_of, tell, tell_people
from greenroom.core.rules.queue import decider, enqueue, open_thread, release_where
from greenroom.core.state.origin import Labels, untrusted
from greenroom.core.state.stage import (
    Member,
    MemberChanged,
    MemberCompleted,
    MemberWord,
    Stage,
    StageEnd,
    StageEnded,
    StageReported,
    StageStarted,
    Subtask,
    SubtaskAssigned,
    SubtaskEnd,
    SubtaskEnded,
)
from greenroom.core.state.step import Work
from greenroom.core.state.world import World

OPEN = ("init", "running")


def _managed(draft: Draft, name: StageId, by: str, what: str) -> Stage | Rejected:
    stage = draft.world.stages.get(name)
    if stage is None:
        return unknown("stage", name, tuple(draft.world.stages))
    if by != draft.world.tasks[stage.task_id].manager and not is_trusted(draft.world, by):
        return not_manager(by, f"{what} stage {name!r}")
    return stage


def start_stage(draft: Draft, intent: StartStage, by: str) -> Verdict:
    """At any moment exactly one stage of a task is active, and stages run in order."""
    stage = _managed(draft, intent.stage_id, by, "start")
    if isinstance(stage, Rejected):
        return stage
    task = draft.world.tasks[stage.task_id]
    if task.state != "running":
        return Rejected(code="task_not_running", why=f"Task {task.task_id!r} is {task.state}.", hint="Start it first.")
    if draft.world.active_stage(task.task_id) is not None:
        return Rejected(
            code="stage_active", why=f"Another stage of task {task.task_id!r} is active.", hint="Finish it first."
        )
    if task.stages[0] != stage.stage_id:
        return Rejected(code="not_next_stage", why=f"Stage {task.stages[0]!r} comes before {stage.stage_id!r}.")
    draft.emit(StageStarted(at=draft.now, stage_id=stage.stage_id, task_id=task.task_id))
    return None


def has_letters(world: World, stage: Stage) -> bool:
    """Whether a message about the stage is still to be handled, or an answer to one to come: the stage waits for it."""
    return any(wait.stage_id == stage.stage_id for wait in world.waits.values()) or any(
        step.stage_id == stage.stage_id and step.message_id is not None
        for agent in world.tasks[stage.task_id].group
        for step in world.steps_of(agent)
    )


def _too_early(draft: Draft, stage: Stage, by: str) -> Verdict:
    """The house itself ends nothing that somebody wrote about in the meantime; the manager and people may."""
    if by == SYSTEM and has_letters(draft.world, stage):
        return Rejected(code="stage_has_letters", why=f"Messages about stage {stage.stage_id!r} are not handled yet.")
    return None


def finish_stage(draft: Draft, intent: FinishStage, by: str) -> Verdict:
    """End the stage: its steps and waits go, what is unrelated to it stays."""
    stage = _managed(draft, intent.stage_id, by, "finish")
    if isinstance(stage, Rejected):
        return stage
    if stage.state != "running":
        return Rejected(code="stage_not_running", why=f"Stage {stage.stage_id!r} is {stage.state}.")
    refused = _too_early(draft, stage, by)
    if refused is not None:
        return refused
    end_stage(draft, stage.stage_id, intent.state, intent.summary)
    members = people_of(draft.world, tuple(one.agent_id for one in stage.members))
    about = ": ".join(filter(None, (stage.intention, intent.summary)))
    told = {"instruction": "finish_stage", "stage_id": stage.stage_id, "state": intent.state, ABOUT: about}
    text = f"Stage {stage.stage_id} ({stage.intention}) is {intent.state}. {intent.summary}".rstrip()
    tell_people(draft, draft.world.tasks[stage.task_id], members, text, told)
    return None


def left_of(stage: Stage) -> tuple[StageEnd, str]:
    """How a stage ends with its task: what has nothing left to do is done, whoever should have said so."""
    if stage.state != "running" or any(one.state in OPEN for one in stage.subtasks):
        return "cancelled", "the task is over"
    failed = any(one.required and one.state != "finished" for one in stage.subtasks)
    return ("failed" if failed else "finished"), "its subtasks are over, and so is the task"


def end_stage(draft: Draft, name: StageId, state: StageEnd, summary: str) -> None:
    """Close everything that belongs to the stage. Who waited for something in it is told, unless they are over too."""
    stage = draft.world.stages[name]
    group = draft.world.tasks[stage.task_id].group
    for subtask in stage.subtasks:
        if subtask.state in OPEN:
            _end_subtask(draft, stage, subtask.subtask_id, "cancelled", "the stage is over", ())
    draft.emit(StageEnded(at=draft.now, stage_id=name, task_id=stage.task_id, state=state, summary=summary))
    settle_question(draft, "stage_id", name)
    release_where(draft, "stage_over", lambda wait: wait.stage_id == name)
    steps = [step for agent in group for step in draft.world.steps_of(agent) if step.stage_id == name]
    cancel_steps(draft, steps, "skipped")
    for subtask in stage.subtasks:
        for agent in group:
            close_if_over(draft, thread_id(agent, subtask.subtask_id))


def assign_subtask(draft: Draft, intent: AssignSubtask, by: str) -> Verdict:
    """Its agent begins, once what it needs is done: a plan is made, or a conversation begins."""
    stage = _managed(draft, intent.stage_id, by, "allot")
    if isinstance(stage, Rejected):
        return stage
    subtask = stage.subtask(intent.subtask_id)
    if subtask is None:
        return unknown("subtask", intent.subtask_id, tuple(one.subtask_id for one in stage.subtasks))
    done = {one.subtask_id for one in stage.subtasks if one.state == "finished"}
    if stage.state != "running" or subtask.state != "init" or not set(subtask.needs) <= done:
        return Rejected(
            code="not_ready", why=f"Subtask {subtask.subtask_id!r} cannot begin now: it is {subtask.state}."
        )
    agent = draft.world.agents[subtask.agent]
    draft.emit(
        SubtaskAssigned(at=draft.now, stage_id=stage.stage_id, subtask_id=subtask.subtask_id, agent_id=subtask.agent)
    )
    origins = draft.world.tasks[stage.task_id].origins
    text = _briefing(stage, subtask, untrusted(origins))
    if agent.spec.kind == "human":
        _ask_human(draft, stage, subtask.agent, text, {"subtask_id": subtask.subtask_id})
        return None
    thread = open_thread(
        draft,
        subtask.agent,
        stage.task_id,
        stage=stage.stage_id,
        subtask=subtask.subtask_id,
        on_behalf=given_by_manager(draft, stage.task_id),
    )
    executor = "planning" if agent.spec.style == "plan" else "converse"
    work = Work(type="skill", executor=executor, intention=subtask.name, text_content=text)
    enqueue(draft, thread, work, origins=origins)
    return None


def _briefing(stage: Stage, subtask: Subtask, strange: Labels) -> str:
    """The stage's goal, the agent's own, and what the subtasks it needs have left for it."""
    parts = [f"Stage goal: {stage.intention}", f"Your goal: {subtask.duty}"]
    done = [one for one in stage.subtasks if one.subtask_id in subtask.needs and one.summary]
    if done and strange:
        parts.append(has_read(strange))
    parts += [f"From {one.agent} ({one.name}):{_quoted(one.summary, strange)}" for one in done]
    return "\n".join(parts)


def _quoted(summary: str, strange: Labels) -> str:
    """What somebody says of their part, in another one's goal: nothing in it may be taken for a part of that goal."""
    if summary and (strange or len(summary.splitlines()) > 1):
        return f"\n{fenced(summary)}"
    return f" {summary}".rstrip()


def _ask_human(draft: Draft, stage: Stage, person: AgentId, text: str, data: Data) -> None:
    """A person gets a duty as a message they owe an answer to; `data` says which, and doing it is the answer."""
    manager = draft.world.tasks[stage.task_id].manager
    tell(draft, manager, (person,), text, task=stage.task_id, data=data, kind="request", stage=stage.stage_id)


def finish_subtask(draft: Draft, intent: FinishSubtask, by: str) -> Verdict:
    """Its own agent, the manager or a person says how it ended."""
    stage = draft.world.stages.get(intent.stage_id)
    subtask = stage.subtask(intent.subtask_id) if stage else None
    if stage is None or subtask is None or subtask.state not in OPEN:
        return unknown("subtask", intent.subtask_id)
    if stage.state != "running":
        return Rejected(code="stage_not_running", why=f"Stage {stage.stage_id!r} has not begun.")
    manager = draft.world.tasks[stage.task_id].manager
    if by not in (subtask.agent, manager) and not is_trusted(draft.world, by):
        return not_manager(by, f"finish subtask {subtask.subtask_id!r}")
    refused = _for_person(draft, subtask.agent, by) or _only_summary(draft, by, intent.state == "finished")
    if refused is not None:
        return refused
    _end_subtask(draft, stage, subtask.subtask_id, intent.state, intent.summary, intent.evidence)
    if intent.summary:
        _complete(draft, stage.stage_id, subtask.agent, intent.summary)
    follow_subtasks(draft, stage.stage_id, subtask.agent)
    return None


def _only_summary(draft: Draft, by: str, finishing: bool) -> Verdict:
    """An agent that plans says "finished" only in its summary step."""
    agent = draft.world.agents.get(AgentId(by))
    plans = agent is not None and agent.spec.kind == "llm" and agent.spec.style == "plan"
    if not finishing or not plans or (draft.cause is not None and draft.cause.work.executor == "summary"):
        return None
    return Rejected(
        code="not_summary", why="Only a summary step may say that the stage is finished.", hint="Add reflection."
    )


def _end_subtask(
    draft: Draft, stage: Stage, name: SubtaskId, state: SubtaskEnd, summary: str, evidence: tuple[str, ...]
) -> None:
    draft.emit(
        SubtaskEnded(
            at=draft.now,
            stage_id=stage.stage_id,
            subtask_id=name,
            state=state,
            summary=summary,
            evidence=evidence,
        )
    )
    settle_question(draft, "subtask_id", name)


def follow_subtasks(draft: Draft, name: StageId, agent: AgentId) -> None:
    """The member's word follows from its subtasks: it works on one, has one to begin or none at all, or is done."""
    states = {one.state for one in draft.world.stages[name].subtasks if one.agent == agent}
    word: MemberWord = "failed" if "failed" in states else "finished"
    if "running" in states:
        word = "working"
    elif not states or "init" in states:
        word = "idle"
    draft.emit(MemberChanged(at=draft.now, stage_id=name, agent_id=agent, state=word))


def _complete(draft: Draft, name: StageId, agent: AgentId, text: str) -> None:
    draft.emit(MemberCompleted(at=draft.now, stage_id=name, agent_id=agent, completion=text))


def update_state(draft: Draft, intent: UpdateStageAgentState, by: str) -> Verdict:
    """How an agent stands in the stage; a final word ends the subtask it is said in, else those that it works on."""
    member = _member(draft, intent.stage_id, intent.agent_id, by)
    if isinstance(member, Rejected):
        return member
    refused = _only_summary(draft, by, intent.state == "finished")
    if refused is not None:
        return refused
    stage = draft.world.stages[intent.stage_id]
    still = [one for one in stage.subtasks if one.agent == intent.agent_id and one.state in OPEN]
    if member.state in ("finished", "failed") and member.state != intent.state and not still:
        return Rejected(code="member_over", why=f"{intent.agent_id!r} has {member.state} in stage {stage.stage_id!r}.")
    if intent.state in ("finished", "failed"):
        begun = [one for one in still if one.state == "running"]
        over = [one for one in begun if draft.cause is not None and one.subtask_id == draft.cause.subtask_id] or begun
        for one in over:
            _end_subtask(draft, stage, one.subtask_id, intent.state, member.completion, ())
        if len(over) < len(still):
            follow_subtasks(draft, stage.stage_id, intent.agent_id)
            return None
    draft.emit(MemberChanged(at=draft.now, stage_id=intent.stage_id, agent_id=intent.agent_id, state=intent.state))
    return None


def update_completion(draft: Draft, intent: UpdateStageAgentCompletion, by: str) -> Verdict:
    """What an agent says of its part."""
    member = _member(draft, intent.stage_id, intent.agent_id, by)
    if isinstance(member, Rejected):
        return member
    _complete(draft, intent.stage_id, intent.agent_id, intent.completion_summary)
    return None


def _member(draft: Draft, name: StageId, agent: AgentId, by: str) -> Member | Rejected:
    stage = draft.world.stages.get(name)
    if stage is None:
        return unknown("stage", name, tuple(draft.world.stages))
    member = stage.member(agent)
    if member is None:
        return unknown("member", agent, tuple(one.agent_id for one in stage.members))
    if stage.state != "running":
        return Rejected(code="stage_not_running", why=f"Stage {name!r} has not begun.")
    if by not in (agent, draft.world.tasks[stage.task_id].manager) and not is_trusted(draft.world, by):
        return not_manager(by, f"speak for {agent!r}")
    return _for_person(draft, agent, by) or member


def _for_person(draft: Draft, agent: AgentId, by: str) -> Rejected | None:
    """Nobody but the house and people say what a person has done: a model would put words into their mouth."""
    if is_trusted(draft.world, by) or not people_of(draft.world, (agent,)):
        return None
    return Rejected(
        code="speaks_for_person",
        why=f"{agent!r} is a person, and only they say how their part stands.",
        hint="Wait for their answer, write to them, or finish the stage without it.",
    )


def _report(stage: Stage, strange: Labels) -> str:
    """How each part ended. What its agent says of it is data for who decides."""
    lines = [f"Stage {stage.stage_id} ({stage.intention}) has nothing left to do:"]
    if strange:
        lines.append(has_read(strange))
    lines += [f"- {one.agent}, {one.name}: {one.state}.{_quoted(one.summary, strange)}" for one in stage.subtasks]
    return "\n".join(lines)


def report_stage(draft: Draft, intent: ReportStage, by: str) -> Verdict:
    """The manager reads that the stage has nothing left to do and decides how to go on."""
    stage = _managed(draft, intent.stage_id, by, "report")
    if isinstance(stage, Rejected):
        return stage
    if stage.reported or stage.state != "running":
        return Rejected(code="reported", why=f"Stage {stage.stage_id!r} was reported already.")
    refused = _too_early(draft, stage, by)
    if refused is not None:
        return refused
    draft.emit(StageReported(at=draft.now, stage_id=stage.stage_id))
    manager = draft.world.agents[draft.world.tasks[stage.task_id].manager]
    origins = draft.world.tasks[stage.task_id].origins
    text = _report(stage, untrusted(origins))
    if manager.spec.kind == "human":
        _ask_human(draft, stage, manager.agent_id, text, {"stage_id": stage.stage_id})
        return None
    work = Work(
        type="skill",
        executor=decider(manager.spec.style),
        intention=f"Decide how to go on after {stage.stage_id}.",
        text_content=text,
        instruction_content={"people": False},
    )
    enqueue(draft, open_thread(draft, manager.agent_id, stage.task_id), work, origins=origins)
    return None
