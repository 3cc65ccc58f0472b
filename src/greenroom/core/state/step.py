"""Steps: the smallest unit of work, run in attempts. Each runs exactly one skill or tool."""

from __future__ import annotations

from typing import Final, Literal

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.ids import (
    AgentId,
    ApprovalId,
    BudgetId,
    MessageId,
    Principals,
    StageId,
    StepId,
    SubtaskId,
    TaskId,
    ThreadId,
    WaitingId,
)
from greenroom.core.base.records import Data, count_bytes, evolve, record
from greenroom.core.state.origin import Labels

StepType = Literal["skill", "tool"]
Effect = Literal["pure", "model", "keyed", "effectful"]
StepState = Literal[
    "init",
    "pending",
    "awaiting_approval",
    "awaiting_budget",
    "running",
    "cancelling",
    "finished",
    "failed",
    "cancelled",
    "skipped",
    "uncertain",
]
SIDE_EFFECTS: Final = frozenset({"keyed", "effectful"})
"""The effect classes that change something outside the team."""

StepEnd = Literal["finished", "failed", "cancelled", "skipped", "uncertain"]
AfterCancel = Literal["cancelled", "requeue", "out_of_time"]

MAX_FENCE_BYTES: Final = 200
"""Maximum bytes that a fence and its introduction add to a text."""

PROCESS_KIND: Final = "process"
"""The kind of a prepared effect that is a process group."""


@record
class StoredMedia:
    """An image or file of a message, stored as a blob. `tokens` is the most that it adds to a request."""

    blob: str
    media_type: str
    name: str = ""
    tokens: int = 0


@record
class Work:
    """The work of a step: a skill with its goal, or a tool with its goal and, once filled in, its instruction. `media`
    goes to the model with the text."""

    type: StepType
    executor: str
    intention: str = ""
    text_content: str = ""
    instruction_content: Data | None = None
    call_id: str | None = None
    media: tuple[StoredMedia, ...] = ()

    @property
    def media_tokens(self) -> int:
        """The most tokens that the media add to a request."""
        return sum(item.tokens for item in self.media) if self.media else 0


@record
class PreparedEffect:
    """A keyed effect, recorded before it happens so that it can be found again: file hashes, a process group."""

    kind: str
    key: str
    before: str = ""
    after: str = ""


@record
class StepTerms:
    """The terms of a step: effect class, maximum cost, policy verdict, versions of spec, prompt and model.

    With `words` the person gives a text answer instead of a decision, and the step receives it.

    `origins` labels what the thread will have read after the step. `outward` lists where the call would send data. If
    it is set, `exposed_at` is the thread's value, including what this call reads, at the time of the policy decision.
    `release` lists the destinations, one per line, that approval for the run would allow.
    """

    effect: Effect
    needs: Amounts = NOTHING
    priced: bool = True
    verdict: Literal["allow", "notify", "ask", "deny"] = "allow"
    rule: str = ""
    question: str = ""
    digest: str = ""
    grant: str = ""
    words: bool = False
    spec: str = ""
    prompt: str = ""
    model: str = ""
    origins: Labels = ()
    outward: tuple[str, ...] = ()
    exposed_at: int | None = None
    release: str = ""


@record
class Step:
    """An open step. `answers` is a waiting id to which it owes a reply; `after` are waiting ids that it waits for.

    `message_id` is the message that it delivers, if any. `goes_on` means that the step brings no new request: it
    reports on work that the agent itself requested, or repeats the agent's step.

    `approval` is a person's decision; it is valid until the step ends. `until` is when the running attempt has used its
    reserved working time. `ended_in` is the version at which it ended; a window may begin there. `origins` labels the
    sources of its text and result. `partial` is the text of its last answer, which has no end.
    """

    step_id: StepId
    agent_id: AgentId
    thread_id: ThreadId
    task_id: TaskId
    stage_id: StageId | None
    subtask_id: SubtaskId | None
    work: Work
    queued_at: int
    version: int = 0
    changed: bool = False
    cause: StepId | None = None
    message_id: MessageId | None = None
    answers: WaitingId | None = None
    after: tuple[WaitingId, ...] = ()
    jumped: bool = False
    goes_on: bool = False
    retry: int = 0
    state: StepState = "init"
    attempt: int = 0
    terms: StepTerms | None = None
    reserved: Amounts = NOTHING
    prepared: tuple[PreparedEffect, ...] = ()
    approval: ApprovalId | None = None
    asked: int = 0
    notices_seen: int = 0
    started_at: int | None = None
    until: int | None = None
    then: AfterCancel = "cancelled"
    ended_at: int | None = None
    ended_in: int = 0
    result: Data | None = None
    error: str = ""
    spent: Amounts = NOTHING
    blobs: tuple[str, ...] = ()
    origins: Labels = ()
    partial: str = ""

    @property
    def ordinal(self) -> int:
        """The step's number among its agent's steps."""
        return int(self.step_id.rpartition("#")[2])


@record
class StepQueued:
    """A step was put into its agent's queue at index `place`."""

    at: int
    step_id: StepId
    agent_id: AgentId
    thread_id: ThreadId
    task_id: TaskId
    stage_id: StageId | None = None
    subtask_id: SubtaskId | None = None
    work: Work
    place: int
    pending: bool = False
    cause: StepId | None = None
    message_id: MessageId | None = None
    answers: WaitingId | None = None
    after: tuple[WaitingId, ...] = ()
    jumped: bool = False
    retry: int = 0
    goes_on: bool = False
    origins: Labels = ()
    on_behalf: Principals = ()


@record
class StepChanged:
    """A waiting step got other work, or its instruction was filled in."""

    at: int
    step_id: StepId
    work: Work
    pending: bool = False
    origins: Labels = ()


@record
class StepBlocked:
    """A step cannot start yet: it needs a person's decision, or its budget has no room."""

    at: int
    step_id: StepId
    state: Literal["awaiting_approval", "awaiting_budget"]
    terms: StepTerms
    approval: ApprovalId | None = None
    budget: BudgetId | None = None


@record
class StepUnblocked:
    """A person decided; the step can be started again."""

    at: int
    step_id: StepId


@record
class StepStarted:
    """An attempt started, with these terms and reservations. `until` is set if working time is limited."""

    at: int
    step_id: StepId
    attempt: int
    terms: StepTerms
    reserved: Amounts
    notices_seen: int = 0
    until: int | None = None


@record
class EffectPrepared:
    """The running attempt recorded external effects that it is about to make."""

    at: int
    step_id: StepId
    attempt: int
    prepared: tuple[PreparedEffect, ...]


@record
class StepCancelling:
    """A running step is being stopped. `then` says whether it is cancelled, runs again, or ran out of time."""

    at: int
    step_id: StepId
    attempt: int
    then: AfterCancel


@record
class StepInterrupted:
    """An attempt ended without a result and the step was queued again. Its reservation counts as spent. `partial` is
    the text of an answer that has no end."""

    at: int
    step_id: StepId
    attempt: int
    why: str
    spent: Amounts
    partial: str = ""


@record
class StepEnded:
    """A step ended.

    The log is the archive of steps. `queued` is the version at which this step was queued. `previous` is the version at
    which the thread's step before it ended. `work` is set if it changed in between. `spoils` marks a failed call with
    side effects: later calls of the same reply do not run.
    """

    at: int
    step_id: StepId
    thread_id: ThreadId
    attempt: int
    state: StepEnd
    result: Data | None = None
    error: str = ""
    spent: Amounts = NOTHING
    blobs: tuple[str, ...] = ()
    queued: int = 0
    previous: int = 0
    work: Work | None = None
    spoils: bool = False
    origins: Labels = ()


StepEvent = (
    StepQueued
    | StepChanged
    | StepBlocked
    | StepUnblocked
    | StepStarted
    | EffectPrepared
    | StepCancelling
    | StepInterrupted
    | StepEnded
)


def count_bytes_added(work: Work, result: Data | None, error: str, origins: Labels = ()) -> int:
    """Return the bytes that a step adds to its conversation: its text, and its result as encoded.

    A reply counts in full, even if the log holds only its beginning and its `bytes`. Text with origins is shown in a
    fence, which counts too.
    """
    result_bytes = 0 if result is None else count_bytes(result)
    whole = result.get("bytes") if result is not None and work.type == "skill" and "blob" in result else None
    fence_bytes = MAX_FENCE_BYTES + sum(len(label.encode()) for label in origins) if origins else 0
    text_bytes = len(work.text_content.encode()) + len(error.encode()) + work.media_tokens
    return text_bytes + fence_bytes + max(result_bytes, whole if isinstance(whole, int) else 0)


def list_blobs(event: object) -> tuple[str, ...]:
    """Return the blobs that an event names."""
    if isinstance(event, StepQueued):
        return tuple(item.blob for item in event.work.media)
    return event.blobs if isinstance(event, StepEnded) else ()


def needs_instruction(work: Work) -> bool:
    """Return whether the instruction still has to be filled in. A native call brings its arguments, even if empty."""
    return work.type == "tool" and work.instruction_content is None and work.call_id is None


def create_step(event: StepQueued, version: int) -> Step:
    """Create the step from its event. `version` is the event's version."""
    return Step(
        version=version,
        step_id=event.step_id,
        agent_id=event.agent_id,
        thread_id=event.thread_id,
        task_id=event.task_id,
        stage_id=event.stage_id,
        subtask_id=event.subtask_id,
        work=event.work,
        queued_at=event.at,
        cause=event.cause,
        message_id=event.message_id,
        answers=event.answers,
        after=event.after,
        jumped=event.jumped,
        retry=event.retry,
        goes_on=event.goes_on,
        origins=event.origins,
        state="pending" if event.pending else "init",
    )


def apply_start(step: Step, event: StepStarted) -> Step:
    """Return the step with a new running attempt."""
    return evolve(
        step,
        state="running",
        attempt=event.attempt,
        terms=event.terms,
        reserved=event.reserved,
        notices_seen=event.notices_seen,
        started_at=event.at,
        until=event.until,
    )


def apply_block(step: Step, event: StepBlocked) -> Step:
    """Return the step waiting for a person or a budget. An approval stays valid while it waits for a budget."""
    if event.state == "awaiting_budget":
        return evolve(step, state=event.state, terms=event.terms)
    return evolve(step, state=event.state, terms=event.terms, approval=event.approval, asked=step.asked + 1)


def apply_interruption(step: Step, partial: str = "") -> Step:
    """Return the step ready to run again. Its prepared effects stay recorded."""
    return evolve(step, state="init", reserved=NOTHING, started_at=None, until=None, partial=partial)


def apply_fork(step: Step) -> Step:
    """Return the step for a forked team, without the processes that it started in the original team."""
    return evolve(step, prepared=tuple(effect for effect in step.prepared if effect.kind != PROCESS_KIND))


def apply_end(step: Step, event: StepEnded, version: int) -> Step:
    """Return the step in its archived form. `version` is the event's version."""
    return evolve(
        step,
        ended_in=version,
        state=event.state,
        result=event.result,
        error=event.error,
        spent=event.spent,
        blobs=event.blobs,
        origins=event.origins,
        reserved=NOTHING,
        ended_at=event.at,
    )


def rebuild_step(begin: StepQueued, end: StepEnded, version: int) -> Step:
    """Rebuild an ended step from its two events in the log."""
    step = create_step(begin, end.queued)
    return apply_end(evolve(step, attempt=end.attempt, work=end.work or begin.work), end, version)
