"""The stream of events: nothing is missed, not even by a watcher of a server that was killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import aiohttp
import pytest

from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TeamId
from greenroom.core.rules.intents import AddAgent, SetLimits
from greenroom.core.state.spec import AgentSpec

Frame = tuple[str, str, object]
ANN = AgentId("ann")


class ServerProcess:
    """A real `greenroom serve`, with a login of its own."""

    def __init__(self, home: Path, port: int, process: asyncio.subprocess.Process) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.port = port
        self.process = process
        self.headers = {"Authorization": f"Bearer {json.loads((home / 'server/access.json').read_text())['token']}"}


@asynccontextmanager
async def serve(home: Path, port: int = 0) -> AsyncIterator[ServerProcess]:
    """Start `greenroom serve` and wait until it prints its link."""
    command = (sys.executable, "-m", "greenroom.cli", "serve", "--no-open", "--port", str(port), "--quiet")
    process = await asyncio.create_subprocess_exec(
        *(*command, "--home", str(home), "--output-format", "stream-json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=home.parent,
        env={**os.environ, "HOME": str(home.parent)},
    )
    assert process.stdout is not None
    try:
        begun = json.loads(await process.stdout.readline())
        yield ServerProcess(home, int(begun["port"]), process)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        await process.wait()


async def read_frames(response: aiohttp.ClientResponse) -> AsyncIterator[Frame]:
    """Yield the frames of a stream: kind, id, data."""
    frame = {"event": "", "id": "", "data": ""}
    async for line in response.content:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name in frame:
            frame[name] = value
        elif not name and frame["event"]:
            yield frame["event"], frame["id"], json.loads(frame["data"])
            frame = {"event": "", "id": "", "data": ""}


async def read_events(response: aiohttp.ClientResponse, upto: int) -> tuple[list[int], str]:
    """Return the versions of all events up to one, and the last id."""
    versions, name = list[int](), ""
    async for kind, id_, data in read_frames(response):
        if kind == "events":
            versions += [cast("int", row["version"]) for row in cast("list[dict[str, object]]", data)]
            name = id_
            if versions[-1] >= upto:
                break
    return versions, name


async def write_events(runtime: Runtime, team: TeamId, count: int) -> None:
    for number in range(count):
        await runtime.ask(team, SetLimits(budget_id=TEAM_BUDGET, limits=Limits(tokens=1_000_000 + number)))


@pytest.mark.req("MAS-37", "MAS-261", "MAS-262")
async def test_a_watcher_misses_nothing_when_the_server_is_killed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    runtime = await Runtime.open(home)
    team = await runtime.create("watched", [(ANN, AgentSpec(name="ann", role="worker"))])
    await runtime.stop(team)
    await write_events(runtime, team, 5)
    async with aiohttp.ClientSession() as session:
        async with serve(home) as first:
            url = f"{first.url}/api/events?run={team}"
            start = (await runtime.log.head(team)).version
            async with session.get(f"{url}&after={team}:0", headers=first.headers) as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                before, name = await read_events(response, start)
                assert before == list(range(1, start + 1))
                await write_events(runtime, team, 20)
                live, name = await read_events(response, start + 3)
                first.process.kill()  # in the middle: a part of the events was not sent yet
                await first.process.wait()
        await write_events(runtime, team, 20)
        head = (await runtime.log.head(team)).version
        async with serve(home, first.port) as second:
            headers = {**second.headers, "Last-Event-ID": name}
            async with session.get(url, headers=headers) as response:
                rest, _ = await read_events(response, head)
            assert before + live + rest == list(range(1, head + 1))
            async with session.get(
                f"{url}&type=AgentAdded&after={team}:0", headers=headers | {"Last-Event-ID": ""}
            ) as response:
                only, _ = await read_events(response, 1)
            assert len(only) == 1
            async with session.get(url) as refused:
                assert refused.status == 401
            async with session.get(f"{url}&after=x", headers=second.headers) as refused:
                assert refused.status == 422
    await runtime.close()


async def test_a_run_that_another_process_changes_is_announced(tmp_path: Path) -> None:
    home = tmp_path / "home"
    runtime = await Runtime.open(home)
    team = await runtime.create("watched", [(ANN, AgentSpec(name="ann", role="worker"))])
    await runtime.stop(team)
    async with (
        serve(home) as server,
        aiohttp.ClientSession(server.url, headers=server.headers) as session,
        session.get("/api/events") as response,
    ):
        frames = read_frames(response)
        assert (await anext(frames))[:2] == ("inbox", "")
        await runtime.ask(team, AddAgent(agent_id=AgentId("bob"), spec=AgentSpec(name="bob", role="worker")))
        kind, _, rows = await anext(frames)
        (row,) = cast("list[dict[str, object]]", rows)
        assert (kind, row["id"], row["agents"]) == ("runs", team, 2)
    await runtime.close()
