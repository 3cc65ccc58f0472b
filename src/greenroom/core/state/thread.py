"""Threads: an agent's conversation in a task, a subtask or a call."""

from __future__ import annotations

from greenroom.core.base.ids import AgentId, Principals, StageId, StepId, SubtaskId, TaskId, ThreadId
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.state.origin import Labels, filter_disclosable, filter_private, filter_untrusted, merge_labels


@record
class Thread:
    """A conversation: its window, its workspace, and the notices the agent reads next.

    `window_from` is the version at which the window begins: it holds the steps that ended then or later. Clearing moves
    it; the log keeps everything. `last` is the version at which the last step ended: from there the log leads back,
    step by step. `size` is the conversation's length in characters, by which budgets reserve.

    `open_calls` counts the open steps that are native calls: nothing else starts here before they end. `spoilt` is the
    step whose reply made a call with side effects that failed. `origins` labels everything it has read, even outside
    the window. `untrusted_at` and `private_at` are when it first read untrusted and private content.
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
    origins: Labels = ()
    untrusted_at: int | None = None
    private_at: int | None = None
    on_behalf: Principals = ()

    @property
    def exposed_at(self) -> int | None:
        """Since when it holds both untrusted and private content and could be made to leak; None if it does not."""
        if self.untrusted_at is None or self.private_at is None:
            return None
        return max(self.untrusted_at, self.private_at)

    def exposed_by(self, reads: Labels) -> int | None:
        """Return `exposed_at`, counting the private content that the call itself `reads`."""
        return self.untrusted_at if filter_disclosable(reads) else self.exposed_at


@record
class ThreadOpened:
    """An agent began a conversation. Its first text comes from these `origins`."""

    at: int
    thread_id: ThreadId
    agent_id: AgentId
    task_id: TaskId
    stage_id: StageId | None = None
    subtask_id: SubtaskId | None = None
    call: str | None = None
    origins: Labels = ()
    on_behalf: Principals = ()


@record
class ThreadClosed:
    """A conversation was closed."""

    at: int
    thread_id: ThreadId


@record
class WindowMoved:
    """A conversation's window moved forward; older steps stay in the log. `size` is what the window still holds."""

    at: int
    thread_id: ThreadId
    window_from: int
    size: int = 0


@record
class WorkspaceSet:
    """A conversation got its workspace."""

    at: int
    thread_id: ThreadId
    workspace: Data


@record
class Noticed:
    """The agent got a notice to read next: a consequence of its step was refused, or an effect is uncertain.

    `about` names the refused intent; `code` is for programs.
    """

    at: int
    thread_id: ThreadId
    step_id: StepId
    about: str
    code: str
    text: str


ThreadEvent = ThreadOpened | ThreadClosed | WindowMoved | WorkspaceSet | Noticed


def create_thread(event: ThreadOpened) -> Thread:
    """Create the thread from its event."""
    thread = Thread(
        thread_id=event.thread_id,
        agent_id=event.agent_id,
        task_id=event.task_id,
        stage_id=event.stage_id,
        subtask_id=event.subtask_id,
        call=event.call,
        on_behalf=event.on_behalf,
    )
    return add_origins(thread, event.origins, event.at)


def add_origins(thread: Thread, origins: Labels, at: int) -> Thread:
    """Return the thread after it read from these origins. Labels are only ever added, up to a small maximum."""
    labels = merge_labels(thread.origins, origins) if origins else thread.origins
    if labels is thread.origins:
        return thread
    return evolve(
        thread,
        origins=labels,
        untrusted_at=_since(thread.untrusted_at, filter_untrusted(labels), at),
        private_at=_since(thread.private_at, filter_private(labels), at),
    )


def add_principals(thread: Thread, on_behalf: Principals) -> Thread:
    """Add the agents on whose behalf the thread now works."""
    added = tuple(
        principal for principal in on_behalf if principal not in thread.on_behalf and principal != thread.agent_id
    )
    return evolve(thread, on_behalf=(*thread.on_behalf, *added)) if added else thread


def _since(known: int | None, labels: Labels, at: int) -> int | None:
    return at if known is None and labels else known
