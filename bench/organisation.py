"""The cost of an organisation: 100 planning agents send each other 2,000 messages in 20 concurrent tasks.

The model answers immediately and the log is real, so the figures are Greenroom's own cost of prompts, rules and
commits. A second figure is the cost of a long-running organisation: a person and a manager exchange 2,000 messages in
its base task.
"""

import tempfile
import time
from pathlib import Path

from greenroom.abilities.skills.conversation.transcript import BYTES_PER_TOKEN
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.core.state.step import Step
from tests.organisation.crowd import FULL_STORM, LONG_LIFE, lasting, storm

GOALS = {
    "of the processor per step (ms)": ("<=", 3.0),
    "a manager's longest prompt (share of the window)": ("<=", 1.0),
    "of the processor per step, late to early": ("<=", 1.5),
}


async def run() -> dict[str, float]:
    """Run one storm of messages."""
    with tempfile.TemporaryDirectory(prefix="greenroom-bench-") as name:
        async with storm(await SqliteLog.open(Path(name)), FULL_STORM) as weather:
            began, busy = time.perf_counter(), time.process_time()
            words = await weather.blow()
            took, used = time.perf_counter() - began, time.process_time() - busy
            assert set(words) == {"finished"}
            steps = [one async for one in weather.runtime.archive(weather.team, "step") if isinstance(one, Step)]
            sent = await weather.sent()
    life = await lasting(LONG_LIFE)
    return {
        "agents": FULL_STORM.agents,
        "tasks": FULL_STORM.tasks,
        "messages": float(sum(sent.values())),
        "steps": float(len(steps)),
        "seconds": took,
        "steps per second": len(steps) / took,
        "of the processor per step (ms)": 1000 * used / len(steps),
        "messages to and from a manager": float(life.messages),
        "a manager's longest prompt (share of the window)": max(life.prompts) / BYTES_PER_TOKEN / life.window,
        "of the processor per step, late to early": life.growth,
    }
