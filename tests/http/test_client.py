"""A program with the typed client, and a real server that is killed in the middle of a run."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from greenroom.core.base.errors import RefusedError, WorldFault
from greenroom.http.client import Client
from tests.e2e.jobs import Desk, Turns, call, done, founded
from tests.e2e.provider import PRICED, Beside, provider, reached, settings
from tests.e2e.terminal import GREENROOM, environment

TEST = "from export import export\n\n\ndef test_it_is_there():\n    assert export is not None\n"


@asynccontextmanager
async def served(desk: Desk, fake: Beside) -> AsyncIterator[tuple[Client, Process]]:
    """Start `greenroom serve` in a process of its own, and connect to it."""
    words = (*GREENROOM, "serve", "--no-open", "--port", "0", "--output-format", "stream-json")
    env = environment(desk.home, **{**desk.own, **reached(fake)})
    process = await asyncio.create_subprocess_exec(*words, cwd=desk.repo, env=env, stdout=PIPE)
    assert process.stdout is not None
    try:
        begun = json.loads(await process.stdout.readline())
        token = json.loads((desk.home / "server" / "access.json").read_text())["token"]
        async with Client(f"http://127.0.0.1:{begun['port']}", token) as client:
            yield client, process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a person whose check runs without a question."""
    home, repo = tmp_path / "home", founded(tmp_path / "repo")
    settings(home, f'{PRICED}[checks.quick]\nrun = "true"\n')
    return Desk(home, repo)


async def settle(client: Client, run: str) -> list[str]:
    """Approve what a run asks, until it ends; return the types of its events."""
    types = list[str]()
    async for row in client.follow(run):
        types.append(row.type)
        if row.type == "ApprovalRequested":
            for item in await client.list_inbox():
                await client.answer(item, scope="once")
    return types


async def reach_model_call(client: Client, run: str, number: int) -> None:
    """Follow a run until a model call starts."""
    async for row in client.follow(run):
        terms = row.data.get("terms")
        number -= row.type == "StepStarted" and isinstance(terms, dict) and terms.get("effect") == "model"
        if not number:
            return


async def test_a_server_that_was_killed_goes_on_with_its_runs(desk: Desk) -> None:
    replies = (call("rewrite", 1, file="test_there.py", content=TEST), done("It adds a test."))
    turns = Turns(replies, held=(1,))
    with provider(turns) as fake:
        async with served(desk, fake) as (client, process):
            run = await client.start("add a test", allow_unverified=True)
            await reach_model_call(client, run.id, 2)
            process.kill()
            await process.wait()
        turns.let(1)
        async with served(desk, fake) as (client, _):
            async with asyncio.timeout(60):
                types = await settle(client, run.id)
            detail = await client.read(run.id)
            assert detail.state in ("finished", "failed")
            assert types.count("OwnerChanged") >= 1
            change = await client.read_change(run.id)
            assert [file.path for file in change.files] == ["test_there.py"]
            with pytest.raises(RefusedError, match="The run is over"):
                await client.use(run.id, "pause")
            applied = await client.use(run.id, "apply")
            assert applied.done, applied
            assert (desk.repo / "test_there.py").exists()


async def test_a_program_that_is_not_let_in_hears_why_instead_of_waiting(desk: Desk) -> None:
    with provider(Turns(())) as fake:
        async with (
            served(desk, fake) as (client, process),
            Client(client._url.removesuffix("/api"), "wrong") as stranger,
            asyncio.timeout(30),
        ):
            with pytest.raises(RefusedError, match="log"):
                await anext(stranger._read_stream("x", 0))
            process.kill()
            await process.wait()
            with pytest.raises(WorldFault, match="greenroom serve"):
                await stranger.list_inbox()
            assert [rows async for rows in stranger._read_stream("x", 0)] == []
