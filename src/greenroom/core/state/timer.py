"""Timers: deadlines in the state, so they are right after a restart too."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, Principals, TaskId, TimerId
from greenroom.core.base.records import record
from greenroom.core.state.origin import Labels

Purpose = Literal["wait", "wake", "work", "answer"]


@record
class Timer:
    """At `due` something happens to `subject`: a wait ends, an agent is woken with `text`, a step has worked enough,
    or nobody has answered the question about it.

    `origins` is what its agent had read when it wrote the text, `on_behalf` for whom it worked then.
    """

    timer_id: TimerId
    purpose: Purpose
    subject: str
    due: int
    task_id: TaskId
    agent_id: AgentId
    text: str = ""
    origins: Labels = ()
    on_behalf: Principals = ()


@record
class TimerSet:
    """The clock runs."""

    at: int
    timer: Timer


@record
class TimerFired:
    """Its time has come."""

    at: int
    timer_id: TimerId


@record
class TimerCancelled:
    """It is not needed any more."""

    at: int
    timer_id: TimerId


TimerEvent = TimerSet | TimerFired | TimerCancelled
