"""Ids. Each derives from its owner and an ordinal in the state, so the same run makes the same ids.

Only a team's id is made by `app`, at random or for an organisation of its name and place: every other id is unique
inside its team, and a fork keeps them.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Final, NewType, TypeAlias

TeamId = NewType("TeamId", str)
AgentId = NewType("AgentId", str)
TaskId = NewType("TaskId", str)
StageId = NewType("StageId", str)
SubtaskId = NewType("SubtaskId", str)
ThreadId = NewType("ThreadId", str)
StepId = NewType("StepId", str)
MessageId = NewType("MessageId", str)
WaitingId = NewType("WaitingId", str)
NoteId = NewType("NoteId", str)
BudgetId = NewType("BudgetId", str)
ApprovalId = NewType("ApprovalId", str)
TimerId = NewType("TimerId", str)
MemoryId = NewType("MemoryId", str)
ArtifactId = NewType("ArtifactId", str)
GroupId = NewType("GroupId", str)

Principals: TypeAlias = tuple[AgentId, ...]
"""Those on whose behalf an agent works: what they may not do, it may not do for them."""

NO_RELATIVE: Final = "no_relative"
"""MAS's word for a message or step that belongs to no stage."""

TEAM_BUDGET: Final = BudgetId("team")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_UNSEEN: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Signs that count as printable and that nobody sees."""

_ALIKE: Final = frozenset({"LATIN", "CYRILLIC", "GREEK"})
"""Scripts with letters that look the same."""


def _folded(name: str) -> str:
    """A name in one width, form and case, without what nobody sees."""
    if name.isascii():
        return name.lower()
    shown = _UNSEEN.sub("", unicodedata.normalize("NFKC", name))
    return unicodedata.normalize("NFKC", shown.casefold())


def looks_like(one: str, other: str) -> bool:
    """Whether two names differ in case, width or form only. Agents and people are kept apart by this."""
    return _folded(one) == _folded(other)


def mixed(name: str) -> bool:
    """Whether letters of several scripts that look alike stand in one name: nobody can tell it from another."""
    letters = filter(str.isalpha, unicodedata.normalize("NFKC", name))
    scripts = {unicodedata.name(sign, "").partition(" ")[0] for sign in letters}
    return len(scripts & _ALIKE) > 1


def task_id(ordinal: int) -> TaskId:
    """The team's n-th task."""
    return TaskId(f"t{ordinal}")


def stage_id(task: TaskId, ordinal: int) -> StageId:
    """The task's n-th stage."""
    return StageId(f"{task}.s{ordinal}")


def task_of(stage: StageId) -> TaskId:
    """Whose stage it is."""
    return TaskId(stage.partition(".")[0])


def subtask_id(stage: StageId, ordinal: int) -> SubtaskId:
    """The stage's n-th subtask."""
    return SubtaskId(f"{stage}.{ordinal}")


def step_id(agent: AgentId, ordinal: int) -> StepId:
    """The agent's n-th step."""
    return StepId(f"{agent}#{ordinal}")


def agent_of(step: StepId) -> AgentId:
    """Whose step it is."""
    return AgentId(step.rpartition("#")[0])


def thread_id(agent: AgentId, place: str) -> ThreadId:
    """The agent's conversation in one place: a task, a subtask or a call."""
    return ThreadId(f"{agent}@{place}")


def message_id(sender: AgentId, ordinal: int) -> MessageId:
    """The sender's n-th message."""
    return MessageId(f"{sender}>{ordinal}")


def sender_of(message: MessageId) -> AgentId:
    """Whose message it is."""
    return AgentId(message.partition(">")[0])


def waiting_id(message: MessageId, receiver: AgentId) -> WaitingId:
    """What the receiver must return so that the sender goes on."""
    return WaitingId(f"{message}:{receiver}")


def waiter_of(waiting: WaitingId) -> AgentId:
    """Who waits for it."""
    return AgentId(waiting.partition(">")[0])


def awaited_of(waiting: WaitingId) -> AgentId:
    """Who is to answer it."""
    return AgentId(waiting.rpartition(":")[2])


def note_id(task: TaskId, ordinal: int) -> NoteId:
    """The n-th note on the task's board."""
    return NoteId(f"{task}/n{ordinal}")


def task_budget(task: TaskId) -> BudgetId:
    """The budget of one task."""
    return BudgetId(f"task:{task}")


def agent_budget(agent: AgentId) -> BudgetId:
    """The budget of one agent."""
    return BudgetId(f"agent:{agent}")


def approval_id(step: StepId, ordinal: int) -> ApprovalId:
    """The n-th time that somebody is asked about this step."""
    return ApprovalId(f"{step}?{ordinal}")


def timer_id(owner: str, purpose: str) -> TimerId:
    """One timer per owner and purpose."""
    return TimerId(f"{owner}!{purpose}")


def memory_id(now: int, last: str) -> MemoryId:
    """When it was saved, to the microsecond, as in `20251101_072947_388226`: later than the `last` one, if any."""
    moment = EPOCH + timedelta(milliseconds=now)
    if last:
        day, time, fraction = last.split("_")
        before = datetime.fromisoformat(f"{day}T{time}.{fraction}+00:00")
        moment = max(moment, before + timedelta(microseconds=1))
    return MemoryId(moment.strftime("%Y%m%d_%H%M%S_%f"))
