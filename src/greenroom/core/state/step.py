"""Steps: the smallest unit of work, with attempts. Exactly one skill or tool each."""

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
from greenroom.core.base.records import Data, evolve, record, written
from greenroom.core.state.origin import Labels

StepType = Literal["skill", "tool"]
Effect = Literal["pure", "model", "keyed", "effectful"]
StepWord = Literal[
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
"""The classes of effects that change something outside."""

StepEnd = Literal["finished", "failed", "cancelled", "skipped", "uncertain"]
CancelThen = Literal["cancelled", "requeue", "out_of_time"]

FENCE: Final = 200
"""Bytes that a fence and the words before it take at most, beside what is in it."""

PROCESS: Final = "process"
"""The kind of a prepared effect that is a process group."""


@record
class Work:
    """What a step is to do: a skill with its goal, or a tool with its goal and (once filled) its instruction."""

    type: StepType
    executor: str
    intention: str = ""
    text_content: str = ""
    instruction_content: Data | None = None
    call_id: str | None = None


@record
class Prepared:
    """A keyed effect, said before it is done, so that it is found again: a file's hashes, a process group."""

    kind: str
    key: str
    before: str = ""
    after: str = ""


@record
class Terms:
    """Under what a step ran: effect class, what it may cost, the policy's verdict, which versions.

    With `words` the person who is asked is not to say yes or no, but to answer: the step gets their words.

    `origins` is what its thread will have read when it is over, `outward` where the call would carry something; then
    `exposed_at` is the thread's for what this reads, as it was known when this was decided. `release` is what a yes for
    the run lets through, a place a line.
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
    """An open step. `answers` is a waiting id it owes a reply; `after` are ids it waits for itself.

    `message_id` is the message that it delivers, if it delivers one. With `goes_on` nobody wants anything new with it:
    it brings word of what the agent has asked for or begun itself, or is what it was to do, once more.

    `approval` is a person's word about it: it holds until the step ends. `until` is when the attempt that runs has used
    up the working time reserved for it. `ended_in` is the version at which it ended: what a window begins with.
    `origins` are where its text and its result come from.
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
    state: StepWord = "init"
    attempt: int = 0
    terms: Terms | None = None
    reserved: Amounts = NOTHING
    prepared: tuple[Prepared, ...] = ()
    approval: ApprovalId | None = None
    asked: int = 0
    notices_seen: int = 0
    started_at: int | None = None
    until: int | None = None
    then: CancelThen = "cancelled"
    ended_at: int | None = None
    ended_in: int = 0
    result: Data | None = None
    error: str = ""
    spent: Amounts = NOTHING
    blobs: tuple[str, ...] = ()
    origins: Labels = ()

    @property
    def ordinal(self) -> int:
        """Its number among its agent's steps."""
        return int(self.step_id.rpartition("#")[2])


@record
class StepQueued:
    """A step stands in its agent's queue, at `place` (an index counted from the front)."""

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
    """A waiting step is to do something else, or its instruction is filled in."""

    at: int
    step_id: StepId
    work: Work
    pending: bool = False
    origins: Labels = ()


@record
class StepBlocked:
    """The step may not start yet: a person is asked, or a budget has no room now."""

    at: int
    step_id: StepId
    state: Literal["awaiting_approval", "awaiting_budget"]
    terms: Terms
    approval: ApprovalId | None = None
    budget: BudgetId | None = None


@record
class StepUnblocked:
    """The person has answered: it may ask to start again."""

    at: int
    step_id: StepId


@record
class StepStarted:
    """An attempt runs, under these terms, with this much reserved; `until` when working time has a limit."""

    at: int
    step_id: StepId
    attempt: int
    terms: Terms
    reserved: Amounts
    notices_seen: int = 0
    until: int | None = None


@record
class EffectPrepared:
    """What the running attempt is about to do outside."""

    at: int
    step_id: StepId
    attempt: int
    prepared: tuple[Prepared, ...]


@record
class StepCancelling:
    """The running effect is being ended; `then` says whether the step is over, runs again, or had time enough."""

    at: int
    step_id: StepId
    attempt: int
    then: CancelThen


@record
class StepInterrupted:
    """The attempt ended without a result and the step is queued again; what it reserved counts as spent."""

    at: int
    step_id: StepId
    attempt: int
    why: str
    spent: Amounts


@record
class StepEnded:
    """The step is over.

    The log is the archive of steps: `queued` is the version at which this one was queued, `previous` that at which the
    thread's step before it ended. `work` is there when it was changed in between. `spoils` says that it was a call with
    side effects and did not work: those of the same reply that come after it are not run.
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


def length(work: Work, result: Data | None, error: str, origins: Labels = ()) -> int:
    """The bytes that a step adds to its conversation: what it was told, and what came of it as it is written.

    What was said is told whole, also where the log has only the beginning of it and its `bytes`. What comes from
    somewhere is told with that, in a fence.
    """
    came = 0 if result is None else written(result)
    whole = result.get("bytes") if result is not None and work.type == "skill" and "blob" in result else None
    told = FENCE + sum(len(one.encode()) for one in origins) if origins else 0
    said = len(work.text_content.encode()) + len(error.encode())
    return said + told + max(came, whole if isinstance(whole, int) else 0)


def lacks_instruction(work: Work) -> bool:
    """Whether it waits for its instruction to be filled in. A native call has brought its arguments, if only none."""
    return work.type == "tool" and work.instruction_content is None and work.call_id is None


def queued(event: StepQueued, version: int) -> Step:
    """The step as it begins. `version` is the event's own."""
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


def started(step: Step, event: StepStarted) -> Step:
    """A new attempt runs."""
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


def blocked(step: Step, event: StepBlocked) -> Step:
    """It waits for a person or for room. What a person has allowed stays allowed while it waits for room."""
    if event.state == "awaiting_budget":
        return evolve(step, state=event.state, terms=event.terms)
    return evolve(step, state=event.state, terms=event.terms, approval=event.approval, asked=step.asked + 1)


def interrupted(step: Step) -> Step:
    """It is runnable again; what it had prepared stays known."""
    return evolve(step, state="init", reserved=NOTHING, started_at=None, until=None)


def forked(step: Step) -> Step:
    """It goes on in another team, which has no hand in the processes that it started in the first one."""
    return evolve(step, prepared=tuple(one for one in step.prepared if one.kind != PROCESS))


def ended(step: Step, event: StepEnded, version: int) -> Step:
    """The step as it is remembered. `version` is the event's own."""
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


def remembered(begin: StepQueued, end: StepEnded, version: int) -> Step:
    """An ended step, made from the two events that the log keeps of it."""
    step = queued(begin, end.queued)
    return ended(evolve(step, attempt=end.attempt, work=end.work or begin.work), end, version)
