"""Ids. Each id derives from its owner and a counter in the state, so the same run makes the same ids.

Only `app` makes team ids: at random, or for an organisation from its name and folder. Every other id is unique inside
its team. A fork keeps them.
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
"""The agents on whose behalf an agent works. Their restrictions apply to it too."""

NO_RELATIVE: Final = "no_relative"
"""MAS's value for a message or step that belongs to no stage."""

TEAM_BUDGET: Final = BudgetId("team")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_INVISIBLE: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Characters that Unicode counts as printable but that are invisible."""

_LOOKALIKE_SCRIPTS: Final = frozenset({"LATIN", "CYRILLIC", "GREEK"})
"""Scripts with letters that look the same."""


def _normalise_name(name: str) -> str:
    """Return a name in one width, form and case, without invisible characters."""
    if name.isascii():
        return name.lower()
    shown = _INVISIBLE.sub("", unicodedata.normalize("NFKC", name))
    return unicodedata.normalize("NFKC", shown.casefold())


def is_lookalike(name: str, other: str) -> bool:
    """Return whether two names differ only in case, width or form. Agents and people need distinct names."""
    return _normalise_name(name) == _normalise_name(other)


def has_mixed_scripts(name: str) -> bool:
    """Return whether a name mixes scripts whose letters look alike, so that it can imitate another name."""
    letters = filter(str.isalpha, unicodedata.normalize("NFKC", name))
    scripts = {unicodedata.name(sign, "").partition(" ")[0] for sign in letters}
    return len(scripts & _LOOKALIKE_SCRIPTS) > 1


def task_id(ordinal: int) -> TaskId:
    """Return the id of the team's n-th task."""
    return TaskId(f"t{ordinal}")


def stage_id(task: TaskId, ordinal: int) -> StageId:
    """Return the id of the task's n-th stage."""
    return StageId(f"{task}.s{ordinal}")


def task_of(stage: StageId) -> TaskId:
    """Return the task that a stage belongs to."""
    return TaskId(stage.partition(".")[0])


def subtask_id(stage: StageId, ordinal: int) -> SubtaskId:
    """Return the id of the stage's n-th subtask."""
    return SubtaskId(f"{stage}.{ordinal}")


def step_id(agent: AgentId, ordinal: int) -> StepId:
    """Return the id of the agent's n-th step."""
    return StepId(f"{agent}#{ordinal}")


def agent_of(step: StepId) -> AgentId:
    """Return the agent that a step belongs to."""
    return AgentId(step.rpartition("#")[0])


def thread_id(agent: AgentId, place: str) -> ThreadId:
    """Return the id of the agent's conversation in a task, a subtask or a call."""
    return ThreadId(f"{agent}@{place}")


def message_id(sender: AgentId, ordinal: int) -> MessageId:
    """Return the id of the sender's n-th message."""
    return MessageId(f"{sender}>{ordinal}")


def sender_of(message: MessageId) -> AgentId:
    return AgentId(message.partition(">")[0])


def waiting_id(message: MessageId, receiver: AgentId) -> WaitingId:
    """Return the id that the receiver must return before the sender continues."""
    return WaitingId(f"{message}:{receiver}")


def waiter_of(waiting: WaitingId) -> AgentId:
    return AgentId(waiting.partition(">")[0])


def awaited_of(waiting: WaitingId) -> AgentId:
    """Return the agent that has to answer."""
    return AgentId(waiting.rpartition(":")[2])


def note_id(task: TaskId, ordinal: int) -> NoteId:
    """Return the id of the n-th note on the task board."""
    return NoteId(f"{task}/n{ordinal}")


def task_budget(task: TaskId) -> BudgetId:
    """Return the id of a task's budget."""
    return BudgetId(f"task:{task}")


def agent_budget(agent: AgentId) -> BudgetId:
    """Return the id of an agent's budget."""
    return BudgetId(f"agent:{agent}")


def approval_id(step: StepId, ordinal: int) -> ApprovalId:
    """Return the id of the n-th approval request about a step."""
    return ApprovalId(f"{step}?{ordinal}")


def timer_id(owner: str, purpose: str) -> TimerId:
    """Return the id of a timer. An owner has one timer per purpose."""
    return TimerId(f"{owner}!{purpose}")


def memory_id(now: int, last: str) -> MemoryId:
    """Return the save time to the microsecond, as in `20251101_072947_388226`. It is always later than `last`."""
    moment = EPOCH + timedelta(milliseconds=now)
    if last:
        day, time, fraction = last.split("_")
        before = datetime.fromisoformat(f"{day}T{time}.{fraction}+00:00")
        moment = max(moment, before + timedelta(microseconds=1))
    return MemoryId(moment.strftime("%Y%m%d_%H%M%S_%f"))
