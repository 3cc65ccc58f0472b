"""What an organisation costs: 100 agents who plan write 2,000 messages to each other in 20 tasks at once.

Their model answers at once, and the log is real: so this is what the house itself takes for prompts, rules and commits.
"""

import tempfile
import time
from pathlib import Path

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.core.state.step import Step
from tests.organisation.storm import FULL, storm

GOALS = {"of the processor per step (ms)": ("<=", 3.0)}


async def run() -> dict[str, float]:
    """One storm."""
    with tempfile.TemporaryDirectory(prefix="greenroom-bench-") as name:
        async with storm(await SqliteLog.open(Path(name)), FULL) as weather:
            began, busy = time.perf_counter(), time.process_time()
            words = await weather.blow()
            took, used = time.perf_counter() - began, time.process_time() - busy
            assert set(words) == {"finished"}
            steps = [one async for one in weather.runtime.archive(weather.team, "step") if isinstance(one, Step)]
            sent = await weather.sent()
    return {
        "agents": FULL.agents,
        "tasks": FULL.tasks,
        "messages": float(sum(sent.values())),
        "steps": float(len(steps)),
        "seconds": took,
        "steps per second": len(steps) / took,
        "of the processor per step (ms)": 1000 * used / len(steps),
    }
