"""Rules for stages and subtasks: one active stage per task, in order, valid ends. Plans are checked in `tasks.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final

from greenroom.core.base.errors import Rejection, reject
from greenroom.core.base.ids import AgentId, StageId
from greenroom.core.base.records import Data, encode, evolve
from greenroom.core.base.text import add_fence
from greenroom.core.rules.draft import SYSTEM, Draft, RuleResult, is_trusted, reject_not_manager, reject_unknown
from greenroom.core.rules.endings import cancel_steps, close_thread_if_over, settle_question
from greenroom.core.rules.intents import (
    AssignSubtask,
    FinishStage,
    FinishSubtask,
    ReportStage,
    StartStage,
    UpdateStageAgentCompletion,
    UpdateStageAgentState,
)
from greenroom.core.rules.origins import (
    ABOUT_KEY,
    emit_message,
    filter_people,
    list_manager_principals,
    notify_people,
    render_origins_line,
)
from greenroom.core.rules.queue import choose_deciding_skill, enqueue, open_thread, release_waits_where
from greenroom.core.rules.recovery import stop_thread
from greenroom.core.state.knowledge import Note, list_newest_notes, render_notes
from greenroom.core.state.origin import Labels, filter_untrusted
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import (
    Member,
    MemberChanged,
    MemberCompleted,
    MemberState,
    Stage,
    StageEnd,
    StageEnded,
    StageReported,
    StageStarted,
    Subtask,
    SubtaskAssigned,
    SubtaskEnd,
    SubtaskEnded,
    SubtaskRetried,
)
from greenroom.core.state.step import Work, needs_instruction
from greenroom.core.state.team_state import TeamState, sort_rows
from greenroom.core.state.thread import Thread

OPEN_STATES = ("init", "running")

MAX_COLLABORATORS: Final = 20
"""Maximum subtasks of other agents that a briefing lists."""

MAX_OUTPUT_CHARS: Final = 20_000
"""Maximum characters of a hand-off in a briefing."""


def find_managed_stage(draft: Draft, name: StageId, by: str, what: str) -> Stage | Rejection:
    """Return the open stage if the sender may manage it."""
    stage = draft.state.stages.get(name)
    if stage is None:
        return reject_unknown("stage", name, tuple(draft.state.stages))
    if by != draft.state.tasks[stage.task_id].manager and not is_trusted(draft.state, by):
        return reject_not_manager(by, f"{what} stage {name!r}")
    return stage


def start_stage(draft: Draft, intent: StartStage, by: str) -> RuleResult:
    """Start a stage. A task has one active stage at a time, and its stages run in order."""
    stage = find_managed_stage(draft, intent.stage_id, by, "start")
    if isinstance(stage, Rejection):
        return stage
    task = draft.state.tasks[stage.task_id]
    if task.state != "running":
        return Rejection(code="task_not_running", why=f"Task {task.task_id!r} is {task.state}.", hint="Start it first.")
    if draft.state.find_active_stage(task.task_id) is not None:
        return Rejection(
            code="stage_active", why=f"Another stage of task {task.task_id!r} is active.", hint="Finish it first."
        )
    if task.stages[0] != stage.stage_id:
        return Rejection(code="not_next_stage", why=f"Stage {task.stages[0]!r} comes before {stage.stage_id!r}.")
    draft.emit(StageStarted(at=draft.now, stage_id=stage.stage_id, task_id=task.task_id))
    return None


def has_open_messages(state: TeamState, stage: Stage) -> bool:
    """Return whether the stage waits for a message to be handled or answered."""
    return any(wait.stage_id == stage.stage_id for wait in state.waits.values()) or any(
        step.stage_id == stage.stage_id and step.message_id is not None
        for agent in state.tasks[stage.task_id].group
        for step in state.steps_of(agent)
    )


def _check_no_open_messages(draft: Draft, stage: Stage, by: str) -> RuleResult:
    """Reject an end by the scheduler while messages about the stage are open. The manager and people may end it."""
    if by == SYSTEM and has_open_messages(draft.state, stage):
        return Rejection(code="stage_has_letters", why=f"Messages about stage {stage.stage_id!r} are not handled yet.")
    return None


def finish_stage(draft: Draft, intent: FinishStage, by: str) -> RuleResult:
    """End a stage with its steps and waits. Unrelated work stays."""
    stage = find_managed_stage(draft, intent.stage_id, by, "finish")
    if isinstance(stage, Rejection):
        return stage
    if stage.state != "running":
        return reject("stage_not_running", "Stage {stage!r} is {state}.", stage=stage.stage_id, state=stage.state)
    refused = _check_no_open_messages(draft, stage, by)
    if refused is not None:
        return refused
    end_stage(draft, stage.stage_id, intent.state, intent.summary)
    members = filter_people(draft.state, tuple(member.agent_id for member in stage.members))
    about = ": ".join(filter(None, (stage.intention, intent.summary)))
    data = {"instruction": "finish_stage", "stage_id": stage.stage_id, "state": intent.state, ABOUT_KEY: about}
    text = f"Stage {stage.stage_id} ({stage.intention}) is {intent.state}. {intent.summary}".rstrip()
    notify_people(draft, draft.state.tasks[stage.task_id], members, text, data)
    return None


def choose_stage_end(stage: Stage) -> tuple[StageEnd, str]:
    """Return how a stage ends with its task: by its subtasks if all have ended, else cancelled."""
    if stage.state != "running" or any(subtask.state in OPEN_STATES for subtask in stage.subtasks):
        return "cancelled", "the task is over"
    failed = any(subtask.required and subtask.state != "finished" for subtask in stage.subtasks)
    return ("failed" if failed else "finished"), "its subtasks are over, and so is the task"


def end_stage(draft: Draft, name: StageId, state: StageEnd, summary: str) -> None:
    """Close everything that belongs to the stage. Waiting agents are notified, unless their work has ended too."""
    stage = draft.state.stages[name]
    group = draft.state.tasks[stage.task_id].group
    for subtask in stage.subtasks:
        if subtask.state in OPEN_STATES:
            _end_subtask(draft, stage, _build_end(stage, subtask, "cancelled", "the stage is over"))
    draft.emit(StageEnded(at=draft.now, stage_id=name, task_id=stage.task_id, state=state, summary=summary))
    settle_question(draft, "stage_id", name)
    release_waits_where(draft, "stage_over", lambda wait: wait.stage_id == name)
    steps = [step for agent in group for step in draft.state.steps_of(agent) if step.stage_id == name]
    cancel_steps(draft, steps, "skipped")
    for thread in sort_rows(draft.state.threads):
        if thread.stage_id == name:
            close_thread_if_over(draft, thread.thread_id)


def count_running(state: TeamState, stage: Stage) -> Counter[str]:
    """Count the running subtasks of the stage by the type of their agent. Greenroom's own agents do not count."""
    running = [subtask for subtask in stage.subtasks if subtask.state == "running" and subtask.agent in state.agents]
    specs = [state.agents[subtask.agent].spec for subtask in running]
    return Counter(spec.name for spec in specs if spec.kind != "system")


def has_room(stage: Stage, spec: AgentSpec, running: Counter[str]) -> bool:
    """Return whether one more subtask of such an agent may run in the stage. A limit of 0 is none."""
    own_limit = spec.cooperation.concurrency if spec.cooperation is not None else 0
    is_full = 0 < stage.concurrency <= running.total() or 0 < own_limit <= running[spec.name]
    return spec.kind == "system" or not is_full


def is_done(stage: Stage) -> bool:
    """Return whether all subtasks have ended, but for those that wait for a decision about a failure."""
    open_states = {subtask.state for subtask in stage.subtasks if subtask.state in OPEN_STATES}
    return not open_states or (open_states == {"init"} and bool(list_escalated(stage)))


def list_failed(stage: Stage) -> list[Subtask]:
    """Return the required subtasks that failed or were skipped."""
    return [part for part in stage.subtasks if part.required and part.state in ("failed", "skipped")]


def list_escalated(stage: Stage) -> list[Subtask]:
    """Return the failed subtasks about which a person or the manager decides. What starts `anyway` waits for that."""
    return [part for part in list_failed(stage) if stage.on_failure == "escalate" and not part.anyway]


def render_failures(subtasks: Iterable[Subtask]) -> str:
    """Return the subtasks that ended without being finished, as in "code-1 failed, doc was skipped"."""
    words = {"failed": "failed", "skipped": "was skipped", "cancelled": "was cancelled"}
    return ", ".join(f"{subtask.name} {words[subtask.state]}" for subtask in subtasks if subtask.state in words)


def are_needs_met(stage: Stage, subtask: Subtask) -> bool:
    """Return whether everything that the subtask needs is finished; with `anyway`, whether it has ended."""
    return all(
        other.state == "finished" or (subtask.anyway and other.state not in OPEN_STATES)
        for other in stage.subtasks
        if other.subtask_id in subtask.needs
    )


def assign_subtask(draft: Draft, intent: AssignSubtask, by: str) -> RuleResult:
    """Let the subtask's agent begin once its needs are met and there is room: with its work, a plan or a briefing."""
    stage = find_managed_stage(draft, intent.stage_id, by, "allot")
    if isinstance(stage, Rejection):
        return stage
    subtask = stage.find_subtask(intent.subtask_id)
    if subtask is None:
        return reject_unknown("subtask", intent.subtask_id, tuple(other.subtask_id for other in stage.subtasks))
    if stage.state != "running" or subtask.state != "init" or not are_needs_met(stage, subtask):
        return Rejection(
            code="not_ready", why=f"Subtask {subtask.subtask_id!r} cannot begin now: it is {subtask.state}."
        )
    agent = draft.state.agents[subtask.agent]
    if not has_room(stage, agent.spec, count_running(draft.state, stage)):
        return Rejection(code="too_many", why=f"Subtask {subtask.subtask_id!r} waits: too many others are running.")
    draft.emit(
        SubtaskAssigned(at=draft.now, stage_id=stage.stage_id, subtask_id=subtask.subtask_id, agent_id=subtask.agent)
    )
    origins = draft.state.tasks[stage.task_id].origins
    is_pushed = (agent.spec.kind, agent.spec.style) == ("llm", "converse")  # MAS's agents ask for notes
    board = list_newest_notes(stage.task_id, draft.state.tasks[stage.task_id].notes_made) if is_pushed else ()
    notes = tuple(draft.state.notes[name] for name in board)
    text = _render_briefing(draft.state, stage, subtask, notes)
    if agent.spec.kind == "human":
        _ask_human(draft, stage, subtask.agent, text, {"subtask_id": subtask.subtask_id})
        return None
    thread = open_thread(
        draft,
        subtask.agent,
        stage.task_id,
        stage=stage.stage_id,
        subtask=subtask.subtask_id,
        on_behalf=list_manager_principals(draft, stage.task_id),
    )
    executor = "planning" if agent.spec.style == "plan" else "converse"
    briefing = Work(type="skill", executor=executor, intention=subtask.name, text_content=text)
    for work in subtask.work or (briefing,):
        filled = evolve(work, instruction_content={}) if needs_instruction(work) else work
        if work.type == "skill" and not work.text_content:
            filled = evolve(work, text_content=text)
        enqueue(draft, thread, filled, origins=origins)
    return None


BRIEFING: Final[Mapping[str, tuple[str, str]]] = {
    "stage": ("Stage goal: {}", "阶段目标：{}"),
    "duty": ("Your goal: {}", "你的目标：{}"),
    "person": ("A person says: {}", "有人说：{}"),
    "writes": ("Write only: {}", "只修改：{}"),
    "attempt": ("This is attempt {} of {}. The last attempt failed:", "这是第 {} 次尝试，共 {} 次。上一次失败了："),
    "from": ("From {} ({}):", "来自 {}（{}）："),
    "notes": ("Notes of the agents on this task, the newest last:", "各智能体对本任务的笔记，最新的在最后："),
    "others": ("Others in this stage:", "本阶段的其他成员："),
    "more": ("- and {} more", "- 另有 {} 个"),
}
"""The frame of a briefing in English and in Chinese. A person's is English in the log, and translated when shown."""


def _render_briefing(state: TeamState, stage: Stage, subtask: Subtask, board: tuple[Note, ...]) -> str:
    """Return the goals, the write set, the collaborators, what failed before, the results that it needs, and notes."""
    labels, spec = filter_untrusted(state.tasks[stage.task_id].origins), state.agents[subtask.agent].spec
    is_chinese = spec.kind != "human" and spec.language.lower().startswith("zh")
    frame = {name: texts[is_chinese] for name, texts in BRIEFING.items()}
    notes = [note for note in board if not is_trusted(state, note.agent_id)]
    parts = [frame["stage"].format(stage.intention), frame["duty"].format(subtask.duty)]
    parts += [frame["person"].format(" ".join(note.content.split())) for note in board if note not in notes]
    if subtask.writes:
        parts.append(frame["writes"].format(", ".join(subtask.writes)))
    needed = [other for other in stage.subtasks if other.subtask_id in subtask.needs]
    done = [other for other in needed if other.summary or other.output is not None]
    parts += _list_collaborators(stage, subtask, done, frame)
    if labels and (done or notes or subtask.attempt > 1):
        parts.append(render_origins_line(labels))
    if subtask.attempt > 1:
        failed = frame["attempt"].format(subtask.attempt, subtask.tries)
        parts.append(f"{failed}{_quote_summary(subtask.summary, labels)}")
    for other in done:
        parts.append(f"{frame['from'].format(other.agent, other.name)}{_quote_summary(other.summary, labels)}")
        if other.output is not None:
            parts.append(add_fence(encode(other.output).decode()[:MAX_OUTPUT_CHARS]))
    parts += [f"{frame['notes']}\n{render_notes(notes)}"] if notes else []
    return "\n".join(parts)


def _list_collaborators(stage: Stage, subtask: Subtask, quoted: list[Subtask], frame: Mapping[str, str]) -> list[str]:
    """Return a line for each other subtask that is not finished and quoted: linked ones first, then running ones."""
    finished = {other.subtask_id for other in quoted if other.state == "finished"}
    others = [other for other in stage.subtasks if other is not subtask and other.subtask_id not in finished]
    if not others:
        return []

    def rank(other: Subtask) -> tuple[bool, bool]:
        is_linked = other.subtask_id in subtask.needs or subtask.subtask_id in other.needs
        return not is_linked, other.state != "running"

    lines = [
        f"- {other.agent}, {' '.join((other.title or other.name).split())}: {other.state}"
        for other in sorted(others, key=rank)[:MAX_COLLABORATORS]
    ]
    more = len(others) - len(lines)
    return [frame["others"], *lines, *([frame["more"].format(more)] if more else [])]


def _quote_summary(summary: str, labels: Labels) -> str:
    """Quote an agent's summary in another agent's briefing, fenced if it could be mistaken for the briefing."""
    if summary and (labels or len(summary.splitlines()) > 1):
        return f"\n{add_fence(summary)}"
    return f" {summary}".rstrip()


def _ask_human(draft: Draft, stage: Stage, person: AgentId, text: str, data: Data) -> None:
    """Send a person a duty as a message that needs an answer. `data` names the duty; doing it is the answer."""
    manager = draft.state.tasks[stage.task_id].manager
    emit_message(draft, manager, (person,), text, task=stage.task_id, data=data, kind="request", stage=stage.stage_id)


def finish_subtask(draft: Draft, intent: FinishSubtask, by: str) -> RuleResult:
    """End a subtask. Its agent, the manager or a person may."""
    stage = draft.state.stages.get(intent.stage_id)
    subtask = stage.find_subtask(intent.subtask_id) if stage else None
    if stage is None or subtask is None or subtask.state not in OPEN_STATES:
        return reject_unknown("subtask", intent.subtask_id)
    if stage.state != "running":
        return reject(
            "stage_not_begun", "Stage {stage!r} has not begun.", code="stage_not_running", stage=stage.stage_id
        )
    manager = draft.state.tasks[stage.task_id].manager
    if by not in (subtask.agent, manager) and not is_trusted(draft.state, by):
        return reject_not_manager(by, f"finish subtask {subtask.subtask_id!r}")
    refused = _check_not_for_person(draft, subtask.agent, by) or _check_summary_step(
        draft, by, intent.state == "finished"
    )
    if refused is not None:
        return refused
    _settle_subtask(draft, stage, subtask, intent, by)
    if intent.summary:
        _record_completion(draft, stage.stage_id, subtask.agent, intent.summary)
    update_member_state(draft, stage.stage_id, subtask.agent)
    return None


def _check_summary_step(draft: Draft, by: str, finishing: bool) -> RuleResult:
    """Reject "finished" from a planning agent outside its summary step."""
    agent = draft.state.agents.get(AgentId(by))
    is_planner = agent is not None and agent.spec.kind == "llm" and agent.spec.style == "plan"
    if not finishing or not is_planner or (draft.cause is not None and draft.cause.work.executor == "summary"):
        return None
    return Rejection(
        code="not_summary", why="Only a summary step may say that the stage is finished.", hint="Add reflection."
    )


def _settle_subtask(draft: Draft, stage: Stage, subtask: Subtask, intent: FinishSubtask, by: str) -> None:
    """End the subtask, or let it wait for its next attempt. The steps of a cancelled one are stopped first."""
    threads = list_subtask_threads(draft.state, subtask) if intent.state != "finished" else []
    if intent.state == "failed" and not intent.final and _may_retry(draft, subtask, by):
        places = {thread.thread_id for thread in threads}
        steps = [step for thread in threads for step in draft.state.steps_of(thread.agent_id)]
        cancel_steps(draft, [step for step in steps if step.thread_id in places and step.message_id is None], "skipped")
        name = subtask.subtask_id
        draft.emit(SubtaskRetried(at=draft.now, stage_id=stage.stage_id, subtask_id=name, why=intent.summary))
        return
    for thread in threads if intent.state in ("cancelled", "skipped") else ():
        stop_thread(draft, thread.thread_id)
    _end_subtask(draft, stage, intent)


def list_subtask_threads(state: TeamState, subtask: Subtask) -> list[Thread]:
    """Return the conversations in a subtask: its agent's, and those of system agents and agents that they ask."""
    threads = [thread for thread in state.threads.values() if thread.subtask_id == subtask.subtask_id]
    return sorted(threads, key=attrgetter("thread_id"))


def _may_retry(draft: Draft, subtask: Subtask, by: str) -> bool:
    """Return whether a failed attempt is followed by another. What a person or a manager decides is final."""
    agent = draft.state.agents.get(subtask.agent)
    is_person = agent is not None and agent.spec.kind == "human"
    has_attempts = subtask.state == "running" and subtask.attempt < subtask.tries
    return has_attempts and not is_person and by in (subtask.agent, SYSTEM)


def _end_subtask(draft: Draft, stage: Stage, intent: FinishSubtask) -> None:
    draft.emit(
        SubtaskEnded(
            at=draft.now,
            stage_id=stage.stage_id,
            subtask_id=intent.subtask_id,
            state=intent.state,
            summary=intent.summary,
            evidence=intent.evidence,
            output=intent.output,
        )
    )
    settle_question(draft, "subtask_id", intent.subtask_id)


def _build_end(stage: Stage, subtask: Subtask, state: SubtaskEnd, summary: str) -> FinishSubtask:
    return FinishSubtask(stage_id=stage.stage_id, subtask_id=subtask.subtask_id, state=state, summary=summary)


def update_member_state(draft: Draft, name: StageId, agent: AgentId) -> None:
    """Derive the member's state from its subtasks: working, idle (one to begin, or none), finished or failed."""
    states = {subtask.state for subtask in draft.state.stages[name].subtasks if subtask.agent == agent}
    word: MemberState = "failed" if "failed" in states else "finished"
    if "running" in states:
        word = "working"
    elif not states or "init" in states:
        word = "idle"
    draft.emit(MemberChanged(at=draft.now, stage_id=name, agent_id=agent, state=word))


def _record_completion(draft: Draft, name: StageId, agent: AgentId, text: str) -> None:
    draft.emit(MemberCompleted(at=draft.now, stage_id=name, agent_id=agent, completion=text))


def update_state(draft: Draft, intent: UpdateStageAgentState, by: str) -> RuleResult:
    """Set an agent's state in a stage. A final state ends the subtask of the sending step, else all running ones."""
    member = _find_member(draft, intent.stage_id, intent.agent_id, by)
    if isinstance(member, Rejection):
        return member
    refused = _check_summary_step(draft, by, intent.state == "finished")
    if refused is not None:
        return refused
    stage = draft.state.stages[intent.stage_id]
    open_subtasks = [
        subtask for subtask in stage.subtasks if subtask.agent == intent.agent_id and subtask.state in OPEN_STATES
    ]
    if member.state in ("finished", "failed") and member.state != intent.state and not open_subtasks:
        values = {"name": intent.agent_id, "state": member.state, "stage": stage.stage_id}
        return reject("member_over", "{name!r} has {state} in stage {stage!r}.", **values)
    if intent.state in ("finished", "failed"):
        begun = [subtask for subtask in open_subtasks if subtask.state == "running"]
        over = [
            subtask for subtask in begun if draft.cause is not None and subtask.subtask_id == draft.cause.subtask_id
        ] or begun
        for subtask in over:
            end = _build_end(stage, subtask, intent.state, member.completion)
            _settle_subtask(draft, stage, subtask, end, by)
        subtasks = draft.state.stages[stage.stage_id].subtasks
        if any(subtask.agent == intent.agent_id and subtask.state in OPEN_STATES for subtask in subtasks):
            update_member_state(draft, stage.stage_id, intent.agent_id)
            return None
    draft.emit(MemberChanged(at=draft.now, stage_id=intent.stage_id, agent_id=intent.agent_id, state=intent.state))
    return None


def update_completion(draft: Draft, intent: UpdateStageAgentCompletion, by: str) -> RuleResult:
    """Record an agent's report about its part."""
    member = _find_member(draft, intent.stage_id, intent.agent_id, by)
    if isinstance(member, Rejection):
        return member
    _record_completion(draft, intent.stage_id, intent.agent_id, intent.completion_summary)
    return None


def _find_member(draft: Draft, name: StageId, agent: AgentId, by: str) -> Member | Rejection:
    stage = draft.state.stages.get(name)
    if stage is None:
        return reject_unknown("stage", name, tuple(draft.state.stages))
    member = stage.find_member(agent)
    if member is None:
        return reject_unknown("member", agent, tuple(known.agent_id for known in stage.members))
    if stage.state != "running":
        return reject("stage_not_begun", "Stage {stage!r} has not begun.", code="stage_not_running", stage=name)
    if by not in (agent, draft.state.tasks[stage.task_id].manager) and not is_trusted(draft.state, by):
        return reject_not_manager(by, f"speak for {agent!r}")
    return _check_not_for_person(draft, agent, by) or member


def _check_not_for_person(draft: Draft, agent: AgentId, by: str) -> Rejection | None:
    """Reject a model that reports for a person. Only people and Greenroom itself may."""
    if is_trusted(draft.state, by) or not filter_people(draft.state, (agent,)):
        return None
    return Rejection(
        code="speaks_for_person",
        why=f"{agent!r} is a person, and only they say how their part stands.",
        hint="Wait for their answer, write to them, or finish the stage without it.",
    )


def _render_report(stage: Stage, labels: Labels) -> str:
    """Render how each subtask ended. The agents' summaries are data for the manager."""
    lines = [f"Stage {stage.stage_id} ({stage.intention}) has nothing left to do:"]
    if labels:
        lines.append(render_origins_line(labels))
    lines += [
        f"- {subtask.agent}, {subtask.name}: {subtask.state}.{_quote_summary(subtask.summary, labels)}"
        for subtask in stage.subtasks
    ]
    return "\n".join(lines)


def report_stage(draft: Draft, intent: ReportStage, by: str) -> RuleResult:
    """Notify the manager that the stage has no work left, so that it decides what comes next."""
    stage = find_managed_stage(draft, intent.stage_id, by, "report")
    if isinstance(stage, Rejection):
        return stage
    if stage.reported or stage.state != "running":
        return Rejection(code="reported", why=f"Stage {stage.stage_id!r} was reported already.")
    refused = _check_no_open_messages(draft, stage, by)
    if refused is not None:
        return refused
    draft.emit(StageReported(at=draft.now, stage_id=stage.stage_id))
    manager = draft.state.agents[draft.state.tasks[stage.task_id].manager]
    origins = draft.state.tasks[stage.task_id].origins
    text = _render_report(stage, filter_untrusted(origins))
    if manager.spec.kind == "human":
        _ask_human(draft, stage, manager.agent_id, text, {"stage_id": stage.stage_id})
        return None
    work = Work(
        type="skill",
        executor=choose_deciding_skill(manager.spec.style),
        intention=f"Decide how to go on after {stage.stage_id}.",
        text_content=text,
        instruction_content={"people": False},
    )
    enqueue(draft, open_thread(draft, manager.agent_id, stage.task_id), work, origins=origins)
    return None
