"""Timers: deadlines in the state, so they stay correct after a restart."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, Principals, TaskId, TimerId
from greenroom.core.base.records import record
from greenroom.core.state.origin import Labels

TimerPurpose = Literal["wait", "wake", "work", "answer"]


@record
class Timer:
    """A deadline. At `due` a wait ends, an agent wakes with `text`, a step's working time ends, or an approval request
    expires.

    `origins` labels what the agent had read when it wrote the text, `on_behalf` for whom it worked then.
    """

    timer_id: TimerId
    purpose: TimerPurpose
    subject: str
    due: int
    task_id: TaskId
    agent_id: AgentId
    text: str = ""
    origins: Labels = ()
    on_behalf: Principals = ()


@record
class TimerSet:
    """A timer was set."""

    at: int
    timer: Timer


@record
class TimerFired:
    """A timer reached its deadline."""

    at: int
    timer_id: TimerId


@record
class TimerCancelled:
    """A timer was cancelled because it is not needed any more."""

    at: int
    timer_id: TimerId


TimerEvent = TimerSet | TimerFired | TimerCancelled
