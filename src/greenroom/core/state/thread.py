"""Threads: an agent's conversation in one place (a task, a subtask or a call)."""

from __future__ import annotations

from greenroom.core.base.ids import AgentId, Principals, StageId, StepId, SubtaskId, TaskId, ThreadId
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.state.origin import Labels, carried, merged, private, untrusted


@record
class Thread:
    """Owns the conversation window, the workspace and the notices the agent reads next.

    `window_from` is the version with which the window begins (a step is in it that ended then or later): clearing moves
    it, the log keeps all. `spoilt` is the step whose reply made a call with side effects that did not work.
    `last` is the version at which its last step ended: from there the log leads back, step by step.
    `size` is how many characters its conversation has, which is what a budget reserves by.
    `open_calls` are those of its open steps that are native calls: until they are over nothing else begins here.
    `origins` are the labels of all that it has read, also of what its window no longer shows; `untrusted_at` and
    `private_at` say since when there is something of that sort among it.
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
        """Since when it has both: somebody may tell it to give away what it holds. None: it has not."""
        if self.untrusted_at is None or self.private_at is None:
            return None
        return max(self.untrusted_at, self.private_at)

    def exposed_by(self, reads: Labels) -> int | None:
        """The same for a call that `reads` something itself: what is private need not have been read before."""
        return self.untrusted_at if carried(reads) else self.exposed_at


@record
class ThreadOpened:
    """The agent begins a conversation here. What it is told comes from these `origins`."""

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
    thread = Thread(
        thread_id=event.thread_id,
        agent_id=event.agent_id,
        task_id=event.task_id,
        stage_id=event.stage_id,
        subtask_id=event.subtask_id,
        call=event.call,
        on_behalf=event.on_behalf,
    )
    return absorbed(thread, event.origins, event.at)


def absorbed(thread: Thread, origins: Labels, at: int) -> Thread:
    """The thread after it has read something from there. It only ever grows, and never beyond a few labels."""
    labels = merged(thread.origins, origins) if origins else thread.origins
    if labels is thread.origins:
        return thread
    return evolve(
        thread,
        origins=labels,
        untrusted_at=_since(thread.untrusted_at, untrusted(labels), at),
        private_at=_since(thread.private_at, private(labels), at),
    )


def bound(thread: Thread, on_behalf: Principals) -> Thread:
    """The thread after its agent took along what it does for these."""
    more = tuple(one for one in on_behalf if one not in thread.on_behalf and one != thread.agent_id)
    return evolve(thread, on_behalf=(*thread.on_behalf, *more)) if more else thread


def _since(known: int | None, labels: Labels, at: int) -> int | None:
    return at if known is None and labels else known
