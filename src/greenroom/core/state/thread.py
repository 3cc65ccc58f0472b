"""Threads: an agent's conversation in one place (a task, a subtask or a call)."""

from __future__ import annotations

from greenroom.core.base.ids import AgentId, StageId, StepId, SubtaskId, TaskId, ThreadId
from greenroom.core.base.records import Data, record


@record
class Thread:
    """Owns the conversation window, the workspace and the notices the agent reads next.

    `window_from` is the version with which the window begins (a step is in it that ended then or later): clearing moves
    it, the log keeps all. `spoilt` is the step whose reply made a call with side effects that did not work.
    `last` is the version at which its last step ended: from there the log leads back, step by step.
    `size` is how many characters its conversation has, which is what a budget reserves by.
    `open_calls` are those of its open steps that are native calls: until they are over nothing else begins here.
    """

    thread_id: ThreadId
    agent_id: AgentId
    task_id: TaskId
    stage_id: StageId | None = None
    subtask_id: SubtaskId | None = None
    call: str | None = None
    open_steps: int = 0
    open_calls: int = 0
    spoilt: StepId | None = None
    last: int = 0
    size: int = 0
    window_from: int = 0
    notices: tuple[str, ...] = ()
    workspace: Data | None = None


@record
class ThreadOpened:
    """The agent begins a conversation here."""

    at: int
    thread_id: ThreadId
    agent_id: AgentId
    task_id: TaskId
    stage_id: StageId | None = None
    subtask_id: SubtaskId | None = None
    call: str | None = None


@record
class ThreadClosed:
    """Nothing more happens in this conversation."""

    at: int
    thread_id: ThreadId


@record
class WindowMoved:
    """The window begins later; what was before stays in the log. `size` is how much is left in it."""

    at: int
    thread_id: ThreadId
    window_from: int
    size: int = 0


@record
class WorkspaceSet:
    """Where this thread's files are."""

    at: int
    thread_id: ThreadId
    workspace: Data


@record
class Noticed:
    """Something the agent reads next: a consequence of its step was refused, an effect is uncertain.

    `about` names the refused intent; `code` is for programs.
    """

    at: int
    thread_id: ThreadId
    step_id: StepId
    about: str
    code: str
    text: str


ThreadEvent = ThreadOpened | ThreadClosed | WindowMoved | WorkspaceSet | Noticed


def opened(event: ThreadOpened) -> Thread:
    """The thread as it begins."""
    return Thread(
        thread_id=event.thread_id,
        agent_id=event.agent_id,
        task_id=event.task_id,
        stage_id=event.stage_id,
        subtask_id=event.subtask_id,
        call=event.call,
    )
