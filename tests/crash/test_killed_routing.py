"""A routing team killed with -9 around every commit: each message is sent once, together with its hand-over."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from greenroom.core.ports.codec import decode_event
from greenroom.core.state.agent import AgentAdded
from greenroom.core.state.message import MessageSent
from greenroom.core.state.step import StepQueued
from greenroom.core.state.task import TaskEnded, TaskHandedOver
from tests.crash.lives import Moment, events_of
from tests.crash.routing import live
from tests.sampling import sampled

KILLED = -9
HAND_OVERS = (4, 5, 6)
"""The appends around the first hand-over: the summary begins, the message is sent, the receiver has read it."""


def judge(home: Path) -> None:
    """Look at all that a run has left behind."""
    _, stored = asyncio.run(events_of(home))
    events = [decode_event(one) for one in stored]
    sent = [event.message for event in events if isinstance(event, MessageSent) and event.message.kind == "handoff"]
    assert [(one.sender_id, one.receiver, one.message) for one in sent] == [
        ("lead", ("coder",), "Paint it"),
        ("coder", ("lead",), "It is red"),
    ]
    assert [one.handoff_summary for one in sent] == ["A summary.", "A summary."]
    assert [event.agent_id for event in events if isinstance(event, TaskHandedOver)] == ["coder", "lead"]
    assert Counter(event.agent_id for event in events if isinstance(event, AgentAdded)) == {"lead": 1, "coder": 1}
    read = Counter(event.message_id for event in events if isinstance(event, StepQueued) and event.message_id)
    assert [read[one.message_id] for one in sent] == [1, 1]
    (end,) = (event for event in events if isinstance(event, TaskEnded))
    assert (end.state, end.summary) == ("finished", "It is red and dry.")


@pytest.mark.req("MA-44", "MA-48")
@pytest.mark.parametrize("moment", get_args(Moment))
@pytest.mark.parametrize("at", sampled(range(3, 9), HAND_OVERS))
def test_a_team_that_is_killed_around_a_hand_over_sends_each_message_once(
    tmp_path: Path, at: int, moment: Moment
) -> None:
    assert live(tmp_path, at, moment) == KILLED
    assert live(tmp_path) == 0
    judge(tmp_path)
