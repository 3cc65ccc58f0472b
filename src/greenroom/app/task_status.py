"""The status of a task in one word, as people read it and as exit codes use it; what a run took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from greenroom.actors.stage_scheduler import schedule
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.ids import AgentId, StepId, SubtaskId, TaskId, ThreadId, WaitingId, agent_of, timer_id
from greenroom.core.base.records import record
from greenroom.core.rules.queue import next_step
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step, StepEnded, StepInterrupted
from greenroom.core.state.task import Task
from greenroom.core.state.team import OwnerChanged
from greenroom.core.state.team_state import TeamState

TaskState = Literal["working", "waiting", "paused", "limit", "provider", "idle", "finished", "failed", "cancelled"]
_PAUSE_STATES: Final[Mapping[str, TaskState]] = {
    "limit": "limit",
    "provider": "provider",
    "incomplete": "provider",
    "escalated": "paused",
}
"""The state for a pause whose reason starts with this word and a colon."""


@record
class TaskStatus:
    """The status of a task. `waiting` is for a person; `idle` means that nothing happens by itself; `reason`
    gives details."""

    state: TaskState
    reason: str = ""

    @property
    def code(self) -> str:
        """The first word of a pause's reason, such as `incomplete`; empty for other states."""
        word = self.reason.partition(":")[0]
        return word if word in _PAUSE_STATES and self.state == _PAUSE_STATES[word] else ""

    @property
    def is_settled(self) -> bool:
        """Whether the status stays the same without input from outside."""
        return self.state != "working"


def read_status(state: TeamState, task_id: TaskId) -> TaskStatus | None:
    """Return the status of an open task, or None if it is not open."""
    task = state.tasks.get(task_id)
    if task is None:
        return None
    group = [agent for agent in task.group if agent in state.agents]
    if task.state == "cancelling" or any(
        step.state in ("running", "cancelling") and step.task_id == task_id
        for agent in group
        for step in state.steps_of(agent)
    ):
        return TaskStatus(state="working")
    pauses = [
        task.paused,
        *(state.tasks[pause].paused for pause in state.list_ancestors(task.task_id)),
        state.team.paused,
    ]
    pause_reason = next((pause for pause in pauses if pause is not None), None)
    if pause_reason is not None:
        return TaskStatus(state=classify_pause(pause_reason), reason=pause_reason)
    if _is_moving(state, task_id) or _is_answer_coming(state, task):
        return TaskStatus(state="working")
    question = next(_find_questions(state, task), None)
    if question is not None:
        return TaskStatus(state="waiting", reason=question)
    if any(timer_id(wait_id, "wait") in state.timers for wait_id in _find_waits(state, task)):
        return TaskStatus(state="working")
    return TaskStatus(state="idle", reason="no agent has anything to do")


def read_ended_status(task: Task) -> TaskStatus:
    """Return the status of an ended task."""
    return TaskStatus(state=task.state if task.state in ("finished", "cancelled") else "failed", reason=task.summary)


def find_partial(state: TeamState) -> str:
    """Return the text of the answer that has no end; empty if there is none."""
    return next((step.partial for step in state.steps.values() if step.partial), "")


def classify_pause(why: str) -> TaskState:
    """Return the state for a pause reason."""
    return _PAUSE_STATES.get(why.partition(":")[0], "paused")


def _is_moving(state: TeamState, task_id: TaskId) -> bool:
    """Whether the task progresses by itself: a step, a wake-up or the scheduler."""
    task = state.tasks[task_id]
    if any(state.steps[step].task_id == task_id for step in state.awaiting_budget):
        return True
    for agent in (state.agents[name] for name in task.group if name in state.agents):
        # A step of another task may block this task's step, which runs after it.
        has_step = any(state.steps[name].task_id == task_id for name in agent.todo)
        if has_step and (agent.running is not None or next_step(state, agent.agent_id) is not None):
            return True
    # The timeout of a wait is not progress: see `_find_questions`.
    if any(timer.task_id == task_id and timer.purpose not in ("wait", "answer") for timer in state.timers.values()):
        return True
    return bool(schedule(state, [task_id]))


def _is_answer_coming(state: TeamState, task: Task) -> bool:
    """Whether an agent works on an answer that the task waits for, in any task."""
    wait_ids = _find_waits(state, task)
    return any(
        not _is_awaiting_person(state, step)
        and (state.agents[name].running is not None or next_step(state, name) is not None)
        for name in {state.waits[wait_id].on for wait_id in wait_ids}
        for step in state.steps_of(name)
        if step.answers in wait_ids
    )


def _is_awaiting_person(state: TeamState, step: Step) -> bool:
    thread_steps = (
        thread_step for thread_step in state.steps_of(step.agent_id) if thread_step.thread_id == step.thread_id
    )
    return any(thread_step.state == "awaiting_approval" for thread_step in thread_steps)


def _find_questions(state: TeamState, task: Task) -> Iterator[str]:
    """Yield the questions to people in the task, and from agents that its agents wait for."""
    wait_ids = _find_waits(state, task)
    thread_ids: set[ThreadId] = {step.thread_id for step in state.steps.values() if step.answers in wait_ids}
    for approval in state.approvals.values():
        if approval.state == "pending":
            step = state.steps[approval.step_id]
            if step.task_id == task.task_id or step.thread_id in thread_ids:
                yield approval.question
    message_ids = {state.waits[wait_id].message_id for wait_id in wait_ids}
    for message in state.mail.values():
        if message.task_id == task.task_id or message.message_id in message_ids:
            yield message.message


def _find_waits(state: TeamState, task: Task) -> set[WaitingId]:
    """Return the waits that block the task's next step, of its agents and of those they wait for."""
    wait_ids: set[WaitingId] = set()
    todo = [agent for agent in task.group if agent in state.agents and _has_work(state, agent, task)]
    while todo:
        new_ids = [wait_id for wait_id in state.agents[todo.pop()].step_lock if wait_id not in wait_ids]
        wait_ids.update(new_ids)
        todo += [state.waits[wait_id].on for wait_id in new_ids]
    return wait_ids


def _has_work(state: TeamState, agent: AgentId, task: Task) -> bool:
    """Whether the agent has a step, a question or a subtask in the task."""
    if any(step.task_id == task.task_id for step in state.steps_of(agent)):
        return True
    for wait in (state.waits[entry] for entry in state.agents[agent].step_lock):
        home_thread = state.threads.get(wait.thread_id) if wait.thread_id is not None else None
        if task.task_id in (wait.task_id, home_thread.task_id if home_thread is not None else None):
            return True
    stage = state.find_active_stage(task.task_id)
    return stage is not None and any(entry.agent == agent and entry.state == "running" for entry in stage.subtasks)


@dataclass(slots=True)
class RunFigures:
    """What a team spent on each subtask, and when, from its events in order. In `stops`, from and until, no process ran
    it. Times are in milliseconds."""

    spent_on: dict[tuple[AgentId, SubtaskId | None], Amounts] = field(default_factory=dict)
    began_at: int = 0
    at: int = 0
    stops: list[tuple[int, int]] = field(default_factory=list)

    @property
    def millis(self) -> int:
        """How long processes ran it."""
        return self.at - self.began_at - sum(until - since for since, until in self.stops)

    def count(self, event: Event, find_subtask: Callable[[StepId], SubtaskId | None]) -> None:
        """Add the next event. `find_subtask` returns that of a step."""
        match event:
            case StepEnded() | StepInterrupted():
                part = (agent_of(event.step_id), find_subtask(event.step_id))
                self.spent_on[part] = self.spent_on.get(part, NOTHING).plus(event.spent)
            case OwnerChanged() if self.at:
                self.stops.append((self.at, event.at))
            case _:
                pass
        self.began_at, self.at = self.began_at or event.at, event.at


def format_duration(millis: int) -> str:
    """Format a duration."""
    if millis < 60_000:
        return f"{millis / 1000:.1f}s"
    minutes, rest = divmod(millis // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s"
