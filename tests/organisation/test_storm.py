"""Many agents, tasks and messages at once, at zero latency: none is lost, none comes twice, nobody waits for ever."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from greenroom.adapters.storage.sqlite import SqliteLog
from tests.organisation.crowd import FULL_STORM, SMALL_STORM, Size, storm


async def blown(home: Path, size: Size) -> float:
    """A storm of this size, and what must hold after it; how many seconds it took."""
    async with storm(await SqliteLog.open(home), size) as weather:
        began = time.monotonic()
        words = await asyncio.wait_for(weather.blow(), 300)
        took = time.monotonic() - began
        sent, read = await weather.sent(), await weather.read()
        state = await weather.runtime.state(weather.team)
    assert words == ["finished"] * size.tasks
    assert len(sent) == sum(sent.values()) == size.sent + size.asked, "every message is one of its own"
    assert read == sent, "each was taken in once, by the one it was for"
    assert (len(state.steps), len(state.waits), len(state.mail), len(state.timers)) == (0, 0, 0, 0)
    assert not [name for name, one in state.agents.items() if one.step_lock]
    return took


@pytest.mark.req("MAS-5", "MAS-6", "MAS-30", "MAS-100", "MAS-225", "MAS-227")
async def test_in_a_storm_no_message_is_lost_or_read_twice(tmp_path: Path) -> None:
    await blown(tmp_path, SMALL_STORM)


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_a_hundred_agents_in_twenty_tasks_send_two_thousand_messages(tmp_path: Path) -> None:
    took = await blown(tmp_path, FULL_STORM)
    size = FULL_STORM
    figures = f"{size.agents} agents, {size.tasks} tasks, {size.sent} messages, {size.asked} of them waited for"
    print(f"\n{figures}: all read once, in {took:.1f} s")
