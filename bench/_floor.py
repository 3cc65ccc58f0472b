"""Shared parts of the model and library benchmarks: the same requests in bare aiohttp, and common measurements.

The floor is a program with aiohttp and Python's own `json`, as its `post(json=…)` uses it. It encodes the whole
conversation for each request.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import aiohttp

from greenroom.core.base.records import Data

PROMPT: Final = "What is 1 + 1? Use the tool."
SCHEMA: Final = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
TOOL: Final = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": SCHEMA}}
SYSTEM: Final[Data] = {"role": "system", "content": "You add."}


@asynccontextmanager
async def open_session() -> AsyncIterator[aiohttp.ClientSession]:
    """Open a client without a connection limit."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield session


async def call(
    session: aiohttp.ClientSession, url: str, messages: Sequence[Data], tools: bool = True
) -> dict[str, Any]:
    """Make one streamed model call and return the assistant's message."""
    told = {"tools": [TOOL]} if tools else {}
    body = {"model": "fake", "messages": messages, **told, "stream": True, "max_tokens": 4096}
    async with session.post(f"{url}/chat/completions", json=body) as response:
        chunks = [json.loads(line[6:]) async for line in response.content if line.startswith(b"data: {")]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls") or ()]
    if not calls:
        return {"role": "assistant", "content": "".join(delta.get("content") or "" for delta in deltas)}
    function = {"name": "add", "arguments": "".join(each["function"].get("arguments", "") for each in calls)}
    return {"role": "assistant", "tool_calls": [{"id": calls[0]["id"], "type": "function", "function": function}]}


async def converse(session: aiohttp.ClientSession, url: str, marks: list[float] | None = None) -> None:
    """Ask, execute the requested addition, and repeat until the model answers. `marks` gets the CPU time of rounds."""
    messages: list[Data] = [SYSTEM, {"role": "user", "content": PROMPT}]
    while True:
        said = await call(session, url, messages)
        if marks is not None:
            marks.append(time.process_time())
        messages.append(said)
        if "tool_calls" not in said:
            return
        asked = said["tool_calls"][0]
        numbers = json.loads(asked["function"]["arguments"])
        messages.append({"role": "tool", "tool_call_id": asked["id"], "content": str(sum(numbers.values()))})


def late_round(marks: Sequence[float], rounds: int) -> float:
    """Return the milliseconds of a round near the end of a conversation, from the CPU times at which rounds ended."""
    gaps = [(after - before) * 1000 for before, after in pairwise(marks)]
    return median(gaps[rounds - 20 : rounds - 1])


def written_bytes() -> int:
    """Return the bytes that this process has written to files, or 0 if the system does not count them."""
    counted = Path("/proc/self/io")
    if not counted.exists():
        return 0
    return int(counted.read_text(encoding="ascii").split("wchar: ")[1].split()[0])


def import_seconds(code: str) -> float:
    """Return the seconds that `code` takes in a new process, without Python's own startup."""

    def measure(code: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begin

    bare = min(measure("pass") for _ in range(5))
    return min(measure(code) for _ in range(5)) - bare
