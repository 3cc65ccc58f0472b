"""Servers that die, hang, babble or never end: one outcome that says so, nothing repeated, no process left."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from greenroom.adapters.mcp.client import Patience
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

HASTY: Patience = evolve(QUICK, start=1.0)


async def test_nothing_is_started_before_it_is_needed(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        assert marked(tmp_path.name) == []
        await client.catalogue()
        assert marked(tmp_path.name)


async def test_a_server_that_dies_at_its_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    server = raw(tmp_path, "dies", env={"DATABASE_TOKEN": "secret-of-probe"})
    async with client_of(server) as client:
        with pytest.raises(
            WorldFault, match=r"'raw': it has ended: Cannot find the database at .*\(exit code 1\)"
        ) as told:
            await client.catalogue()
        assert "secret-of-probe" not in str(told.value)
        assert "\x1b" not in str(told.value)


async def test_a_server_that_hangs_at_its_start_is_given_up_with_all_its_processes(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, "hangs"), patience=HASTY) as client:
        with pytest.raises(WorldFault, match="did not answer within 1 s after it was started"):
            await client.catalogue()
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
        assert "no MCP to its standard output: 'Hello, I am a web server.'" in (await client.check()).why
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
        await client.catalogue()
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
        ("jumbles", "it answered with what is no MCP"),
        ("refuses", "no tools today"),
        ("is_mute", "it did not list its tools within 1 s"),
    ],
)
async def test_a_server_that_does_not_list_its_tools_offers_none(mode: str, why: str, tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, mode), patience=HASTY) as client:
        assert why in (await client.check()).why
