"""What the demo costs: its whole time, and what of it is neither a check nor a scripted reply."""

import asyncio
import json
import os
import resource
import sys
import tempfile
from pathlib import Path

GOALS = {"whole (s)": ("<=", 15.0), "outside model and checks (s)": ("<=", 5.0)}


async def run() -> dict[str, float]:
    """Once, without pauses: every command of the story is a new process."""
    with tempfile.TemporaryDirectory(prefix="greenroom-bench-") as name:
        used = _used()
        began = asyncio.get_running_loop().time()
        millis = await _played(Path(name) / "demo")
        around = asyncio.get_running_loop().time() - began - millis["whole"] / 1000
    return {
        "start of the demo itself (s)": around,
        "whole (s)": millis["whole"] / 1000,
        "in steps that run checks (s)": millis["checks"] / 1000,
        "scripted replies (s)": millis["waits"] / 1000,
        "outside model and checks (s)": millis["rest"] / 1000,
        "CPU of everything, checks too (s)": _used() - used,
    }


def _used() -> float:
    """CPU time of all processes that have ended: on a busy machine it says more than the clock."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


async def _played(folder: Path) -> dict[str, int]:
    words = ("demo", "--pace", "0", "--in", str(folder), "--quiet", "--output-format", "json")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "greenroom.interfaces.cli", *words, stdout=asyncio.subprocess.PIPE, env=os.environ
    )
    told, _ = await process.communicate()
    found = json.loads(told)
    if found["status"] != "finished":
        raise SystemExit(found["error"])
    return {name: int(value) for name, value in found["millis"].items()}
