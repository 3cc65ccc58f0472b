"""Intents about steps, their threads and their budgets."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.ids import AgentId, BudgetId, StageId, StepId, TaskId, ThreadId
from greenroom.core.base.records import Data, record
from greenroom.core.rules.intents.plan import FinishStage, FinishSubtask
from greenroom.core.rules.intents.talk import AnswerApproval, SendMessage
from greenroom.core.state.step import Prepared, Terms, Work


@record
class QueueSteps:
    """Add steps in order (MAS `add_step`), or before the next one (`add_next_step`).

    `origins` are labels of where their words come from, where that is not only who asks.
    """

    agent_id: AgentId
    works: tuple[Work, ...]
    place: Literal["last", "next"] = "last"
    task_id: TaskId | None = None
    stage_id: StageId | None = None
    thread_id: ThreadId | None = None
    origins: tuple[str, ...] = ()


@record
class RecordStep:
    """Write down what a person has done already: people act first, and it is a step afterwards.

    What they say, report, end or decide in it is done first, here: then there is never the one without the other.
    """

    agent_id: AgentId
    work: Work
    task_id: TaskId
    stage_id: StageId | None = None
    state: Literal["finished", "failed"] = "finished"
    result: Data | None = None
    error: str = ""
    says: SendMessage | None = None
    reports: FinishSubtask | None = None
    ends: FinishStage | None = None
    decides: AnswerApproval | None = None


@record
class ModifyStep:
    """Change a step that has not begun; an `instruction_content` makes a pending one runnable."""

    step_id: StepId
    work: Work


@record
class RemoveStep:
    """Take a step that has not begun out of the queue."""

    step_id: StepId


@record
class Interrupt:
    """End whatever goes on in a conversation: somebody wants to say something else. It stays open."""

    thread_id: ThreadId


@record
class StartStep:
    """Begin the next attempt, under these terms. They are for this work: if the step is to do another one, it is no."""

    step_id: StepId
    terms: Terms
    work: Work


@record
class PrepareEffect:
    """Say what the attempt is about to do outside."""

    step_id: StepId
    attempt: int
    prepared: tuple[Prepared, ...]


@record
class ReleaseStep:
    """The attempt ended without a result and its effect is dead. Unless told, what was reserved counts as spent.

    With `pause` its task pauses, because nothing will get better until somebody does something. Without `ran` its
    effect never began, so it is in no doubt.
    """

    step_id: StepId
    attempt: int
    why: str = "interrupted"
    spent: Amounts | None = None
    pause: bool = False
    ran: bool = True


@record
class SetLimits:
    """Give a budget limits."""

    budget_id: BudgetId
    limits: Limits


@record
class MoveWindow:
    """Begin the thread's window with what ended at this version (`Step.ended_in`) or later; `size` is what that has.

    Without a version it begins with the last step that ended: for a step that asks this, with itself.
    """

    thread_id: ThreadId
    window_from: int | None = None
    size: int = 0


@record
class SetWorkspace:
    """Say where a thread's files are."""

    thread_id: ThreadId
    workspace: Data
