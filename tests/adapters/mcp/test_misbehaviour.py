"""Servers that misbehave, and how all of them end."""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from greenroom.adapters.mcp import transports
from greenroom.adapters.mcp.client import McpTimeouts
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from tests.adapters.mcp.running import (
    QUICK,
    asked,
    calls,
    client_of,
    marked,
    output,
    ran,
    raw,
    tool_of,
    until,
)

HASTY: McpTimeouts = evolve(QUICK, start=1.0)


async def test_nothing_is_started_before_it_is_needed(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        assert marked(tmp_path.name) == []
        await client.get_catalogue()
        assert marked(tmp_path.name)


async def test_a_server_that_dies_at_its_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    server = raw(tmp_path, "dies", env={"DATABASE_TOKEN": "secret-of-probe"})
    async with client_of(server) as client:
        with pytest.raises(
            WorldFault, match=r"'raw': it has ended: Cannot find the database at .*\(exit code 1\)"
        ) as told:
            await client.get_catalogue()
        assert "secret-of-probe" not in str(told.value)
        assert "\x1b" not in str(told.value)


async def test_a_server_that_hangs_at_its_start_is_given_up_with_all_its_processes(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, "hangs"), patience=HASTY) as client:
        with pytest.raises(WorldFault, match="did not answer within 1 s after it was started"):
            await client.get_catalogue()
        assert (tmp_path / "grandchild").exists(), "or this test shows nothing"
        assert marked(tmp_path.name) == []


async def test_a_program_that_is_none_is_named(tmp_path: Path) -> None:
    async with client_of(evolve(raw(tmp_path), command="no-such-program")) as client:
        assert "no program 'no-such-program'" in (await client.check()).why
    async with client_of(evolve(raw(tmp_path), command="/no/such/program")) as client:
        assert "/no/such/program could not be started: No such file" in (await client.check()).why
    async with client_of(evolve(raw(tmp_path), folder="/no/such/folder")) as client:
        assert "no folder '/no/such/folder'" in (await client.check()).why


async def test_a_program_that_does_not_speak_mcp_is_given_up(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, "prattles")) as client:
        assert "not MCP to its standard output: 'Hello, I am a web server.'" in (await client.check()).why
    assert marked(tmp_path.name) == []


async def test_a_server_that_dies_in_a_call_leaves_it_uncertain_and_it_is_not_repeated(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        outcome = await asked(client, "die")
        assert outcome.state == "uncertain"
        assert "(exit code 1)" in outcome.error
        assert "not known whether mcp__raw__die was done" in outcome.error
        assert output(await asked(client, "echo", text="again")) == "again"
        assert calls(tmp_path) == ["die"]


async def test_a_lost_call_of_what_its_owner_calls_harmless_may_be_made_again(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, read_only=["die"])) as client:
        outcome = await asked(client, "die")
        assert (outcome.state, calls(tmp_path)) == ("failed", ["die"])
        assert "can be called again" in outcome.error


async def test_a_server_that_hangs_in_a_call_is_ended(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, timeout=1)) as client:
        outcome = await asked(client, "hang")
        assert outcome.state == "uncertain"
        assert "did not answer within 1 s and was ended" in outcome.error
        assert marked(tmp_path.name) == []
        assert output(await asked(client, "echo", text="again")) == "again"
        assert calls(tmp_path) == ["hang"]


async def test_a_server_that_only_takes_too_long_is_told_to_stop_and_stays(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, timeout=1)) as client:
        await client.get_catalogue()
        before = marked(tmp_path.name)
        outcome = await asked(client, "nap")
        assert outcome.state == "uncertain"
        assert "was told to stop" in outcome.error
        assert (tmp_path / "cancelled").exists()
        assert marked(tmp_path.name) == before


async def test_a_cancelled_call_of_a_server_that_hangs_ends_it(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        tool = await tool_of(client, "hang")
        call = asyncio.create_task(ran(tool))
        await until(lambda: calls(tmp_path) == ["hang"])
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert marked(tmp_path.name) == []


async def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "MAX_MESSAGE_BYTES", 5_000_000)
    async with client_of(raw(tmp_path)) as client:
        outcome = await asked(client, "pour")
        assert outcome.state == "uncertain"
        assert "sent a message of more than 5 MB" in outcome.error
        await until(lambda: marked(tmp_path.name) == [])
        assert output(await asked(client, "echo", text="again")) == "again"


async def test_a_server_that_reads_no_more_is_ended(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, "stays")) as client:
        assert output(await asked(client, "deafen")) == "deafen is done"
        assert (await asked(client, "echo", text="x" * 1_000_000)).state == "uncertain"
        await until(lambda: marked(tmp_path.name) == [])


async def test_others_are_not_disturbed_by_a_call_that_takes_too_long(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, timeout=1)) as client:
        nap, echo = await tool_of(client, "nap"), await tool_of(client, "echo")
        slow = asyncio.create_task(ran(nap))
        await until(lambda: calls(tmp_path) == ["nap"])
        assert [output(await ran(echo, text=str(number))) for number in range(20)] == [str(n) for n in range(20)]
        assert (await slow).state == "uncertain"


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("leaves", "it has ended: (exit code 4)"),
        ("jumbles", "it returned something that is not MCP"),
        ("refuses", "no tools today"),
        ("is_mute", "it did not list its tools within 1 s"),
    ],
)
async def test_a_server_that_does_not_list_its_tools_offers_none(mode: str, why: str, tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, mode), patience=HASTY) as client:
        assert why in (await client.check()).why


ROOT = Path(__file__).resolve().parents[3]


async def test_a_server_that_is_closed_ends_with_its_whole_family(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        await asked(client, "family")
        await until((tmp_path / "grandchild").exists)
        assert len(marked(tmp_path.name)) >= 3, "or this test shows nothing"
    assert marked(tmp_path.name) == []


async def test_a_server_that_stays_when_nobody_talks_to_it_is_ended(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, "stays")) as client:
        await client.get_catalogue()
    assert marked(tmp_path.name) == []


async def test_a_family_does_not_outlive_a_server_that_dies(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        await asked(client, "family")
        await until((tmp_path / "grandchild").exists)
        assert (await asked(client, "die")).state == "uncertain"
        await until(lambda: marked(tmp_path.name) == [])


async def test_a_client_that_was_closed_starts_nothing(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        await client.close()
        with pytest.raises(WorldFault, match="the run is over"):
            await client.get_catalogue()


def begun(folder: Path) -> subprocess.Popen[bytes]:
    """A house that has been begun."""
    words = [sys.executable, "-m", "tests.adapters.mcp.house", str(folder)]
    return subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL)


async def dead_after(folder: Path) -> float:
    """Kill a house in the middle of a call; returns how many seconds later all processes of its server are dead."""
    house = begun(folder)
    try:
        await until((folder / "grandchild").exists, 60)
        assert len(marked(folder.name)) >= 3, "or this test shows nothing"
    finally:
        house.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        house.wait()
    await until(lambda: marked(folder.name) == [], 5)
    return time.monotonic() - killed


async def test_nothing_outlives_a_house_that_is_killed(tmp_path: Path) -> None:
    await dead_after(tmp_path)


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_nothing_outlives_thirty_houses_that_are_killed(tmp_path: Path) -> None:
    took = []
    for number in range(30):
        folder = tmp_path / f"mcp-house-{number}"
        folder.mkdir()
        took.append(await dead_after(folder))
    print(f"\n30 kills, nothing left; dead after {statistics.median(took):.3f} s (median), {max(took):.3f} s (most)")


async def test_a_client_that_is_closed_while_its_server_starts_leaves_nothing(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        starting = asyncio.create_task(client.get_catalogue())
        await until(lambda: bool(marked(tmp_path.name)))
        await client.close()
        with pytest.raises(WorldFault, match="the run is over"):
            await starting
    assert marked(tmp_path.name) == []


async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, "hangs")) as client:
        starting = asyncio.create_task(client.get_catalogue())
        await until((tmp_path / "grandchild").exists)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert marked(tmp_path.name) == []


async def test_a_server_does_not_outlive_its_keeper(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        await client.get_catalogue()
        keeper = min(marked(tmp_path.name))
        os.kill(keeper, signal.SIGKILL)
        await until(lambda: marked(tmp_path.name) == [])
        await until(lambda: client._connection is not None and bool(client._connection.end_reason))
        assert output(await asked(client, "echo", text="again")) == "again"
