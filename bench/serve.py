"""The cost of the server: 200 watchers of 500 events a second, and the past of a run of 1,000 agents and 50,000 steps.

A real `greenroom serve` runs in its own process. Everything is asked over HTTP; the floor is the smallest request.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import msgspec
import psutil

from bench.kernel import PLENTY, SPEC, spin_agents
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import SetLimits

GOALS: Final = {
    "events missed": ("<=", 0.0),
    "delay of an event p95 (ms)": ("<=", 1000.0),
    "state at a version p95 (ms)": ("<=", 100.0),
    "scrub p95 (ms)": ("<=", 100.0),
    "first paint (s)": ("<=", 2.0),
}
WATCHERS: Final = 200
EVENTS_PER_SECOND: Final = 500
SECONDS: Final = 15
BATCH: Final = 10
FIRST_PAINT: Final = ("", "/plan", "/timeline", "/agents?limit=100", "/gantt", "/events", "/messages")


class _Row(msgspec.Struct):
    version: int
    at: int


_ROWS: Final = msgspec.json.Decoder(list[_Row])


@asynccontextmanager
async def _serve(home: Path) -> AsyncIterator[tuple[aiohttp.ClientSession, psutil.Process]]:
    """Start the server; yield a client that is logged in, and the process."""
    command = (sys.executable, "-m", "greenroom.cli", "serve", "--no-open", "--port", "0", "--quiet")
    process = await asyncio.create_subprocess_exec(
        *(*command, "--home", str(home), "--output-format", "stream-json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=home.parent,
        env={**os.environ, "HOME": str(home.parent)},
    )
    if process.stdout is None:
        raise TypeError("the server has no output")
    port = json.loads(await process.stdout.readline())["port"]
    token = json.loads((home / "server" / "access.json").read_text("utf-8"))["token"]
    session = aiohttp.ClientSession(
        f"http://127.0.0.1:{port}",
        headers={"Authorization": f"Bearer {token}"},
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        read_bufsize=2**22,
    )
    try:
        async with session:
            yield session, psutil.Process(process.pid)
    finally:
        process.terminate()
        await process.wait()


async def _time(session: aiohttp.ClientSession, path: str) -> float:
    """Return the milliseconds of a request."""
    begin = time.perf_counter()
    async with session.get(path) as answer:
        body = await answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:200]!r}")
    return (time.perf_counter() - begin) * 1000


async def _find_run(session: aiohttp.ClientSession) -> tuple[TeamId, int]:
    async with session.get("/api/runs?limit=1") as answer:
        run = (await answer.json())["items"][0]
    return TeamId(run["id"]), int(run["version"])


async def _read_past(home: Path) -> dict[str, float]:
    """Ask a fresh server for a long run, now and at versions all over its past."""
    chosen = random.Random(1)
    async with _serve(home) as (session, process):
        floor = statistics.median([await _time(session, "/api/session") for _ in range(50)])
        run, head = await _find_run(session)
        paint = sum([await _time(session, f"/api/runs/{run}{path}") for path in FIRST_PAINT])
        versions = [chosen.randint(1, head) for _ in range(100)]
        past = sorted([await _time(session, f"/api/runs/{run}/agents?limit=100&at={at}") for at in versions])
        middle = head // 2
        drag = [middle + 40 * step for step in range(100)]
        scrub = sorted([await _time(session, f"/api/runs/{run}?at={at}") for at in drag])
        memory = process.memory_info().rss / 2**20
    return {
        "events of the long run": float(head),
        "smallest request (ms)": floor,
        "first paint (s)": paint / 1000,
        "state at a version p50 (ms)": past[50],
        "state at a version p95 (ms)": past[95],
        "state at a version max (ms)": past[-1],
        "state at a version over the smallest request": past[50] / floor,
        "scrub p95 (ms)": scrub[95],
        "memory after the long run (MB)": memory,
    }


async def _watch(
    session: aiohttp.ClientSession, run: TeamId, after: int, upto: asyncio.Future[int], delays: list[float]
) -> int:
    """Read all events of a run up to a version that is known later. Return how many were missed."""
    seen, expected = after, 0
    async with session.get(f"/api/events?run={run}&after={run}:{after}") as answer:
        is_events = False
        async for line in answer.content:
            if line.startswith(b"event: "):
                is_events = line == b"event: events\n"
            elif is_events and line.startswith(b"data: "):
                rows, now = _ROWS.decode(line[6:]), time.time() * 1000
                delays += [now - row.at for row in rows]
                expected += sum(row.version != seen + 1 + place for place, row in enumerate(rows))
                seen = rows[-1].version
            if upto.done() and seen >= upto.result():
                return expected
    return 1


async def _stream(home: Path) -> dict[str, float]:
    """Write events while watchers follow them."""
    runtime = await Runtime.open(home)
    team = await runtime.create("watched", [(AgentId("first"), SPEC)], limits=PLENTY)
    after = (await runtime.log.head(team)).version
    delays = list[float]()
    async with _serve(home) as (session, process):
        upto = asyncio.get_running_loop().create_future()
        watchers = [asyncio.create_task(_watch(session, team, after, upto, delays)) for _ in range(WATCHERS)]
        await asyncio.sleep(2)  # all are connected
        before, begin, batches = process.cpu_times(), time.perf_counter(), SECONDS * EVENTS_PER_SECOND // BATCH
        for number in range(batches):
            changes = (evolve(PLENTY, hops=number * BATCH + place + 1) for place in range(BATCH))
            await runtime.ask(team, *(SetLimits(budget_id=TEAM_BUDGET, limits=limits) for limits in changes))
            await asyncio.sleep(max(0.0, begin + (number + 1) * BATCH / EVENTS_PER_SECOND - time.perf_counter()))
        took = time.perf_counter() - begin
        used = process.cpu_times()
        upto.set_result((await runtime.log.head(team)).version)
        missed = sum(await asyncio.wait_for(asyncio.gather(*watchers), 120))
        memory = process.memory_info().rss / 2**20
    await runtime.close()
    delays.sort()
    written = upto.result() - after
    return {
        "watchers": float(WATCHERS),
        "events per second": written / took,
        "events missed": float(missed + abs(len(delays) - written * WATCHERS)),
        "delay of an event p50 (ms)": delays[len(delays) // 2],
        "delay of an event p95 (ms)": delays[len(delays) * 95 // 100],
        "delay of an event max (ms)": delays[-1],
        "processor of the server (%)": 100 * (used.user + used.system - before.user - before.system) / took,
        "memory with all watchers (MB)": memory,
    }


async def run(agents: int = 1_000, steps: int = 50) -> dict[str, float]:
    """Measure the past of a long run, then the stream."""
    with tempfile.TemporaryDirectory(prefix="greenroom-bench-") as name:
        await spin_agents(Path(name) / "long", agents, steps)
        return {**await _read_past(Path(name) / "long"), **await _stream(Path(name) / "stream")}
