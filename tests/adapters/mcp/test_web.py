"""Servers over HTTP: the SDK's own, and one that leads away, breaks off, packs, never ends or hangs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from greenroom.adapters.mcp import connection, transports
from greenroom.adapters.mcp.catalogue import SkippedTool
from greenroom.adapters.mcp.client import McpClient
from greenroom.adapters.mcp.configuration import parse_servers
from tests.adapters.mcp.running import asked, client_of, output, ran, tool_of, until
from tests.adapters.mcp.servers.ordinary import made
from tests.adapters.mcp.servers.web import Odd, many, served

SECRET = "planted-secret-value"


@asynccontextmanager
async def client_at(url: str, **more: object) -> AsyncIterator[McpClient]:
    """A client of a server at this address, which is given a secret."""
    headers = {"Authorization": "Bearer ${MY_SECRET}"}
    (server,) = parse_servers({"web": {"type": "http", "url": url, "headers": headers, **more}})
    async with client_of(server, environ={"MY_SECRET": SECRET}) as client:
        yield client


async def test_a_server_of_the_sdk_is_used_over_http() -> None:
    async with served(made().streamable_http_app()) as url, client_at(f"{url}/mcp") as client:
        assert output(await asked(client, "add", a=2, b=40)) == "42"
        assert (await client.check()).version == "2026-07-28"
        await asked(client, "grow", name="sprout")
        await until(lambda: client._catalogue is None)
        assert output(await asked(client, "sprout")) == "sprout"
        call = asyncio.create_task(ran(await tool_of(client, "slow")))
        await asyncio.wait({call}, timeout=0.3)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert output(await asked(client, "was_cancelled")) == "slow"


async def test_a_long_answer_comes_over_http_too() -> None:
    async with served(made().streamable_http_app()) as url, client_at(f"{url}/mcp") as client:
        said = output(await asked(client, "big", size=20_000_000))
        assert (said[:6], said[-4:], len(said) < 16_000_100) == ("begin ", " end", True)


async def test_three_hundred_tools_come_in_pages_and_always_in_the_same_order() -> None:
    async with served(many(300).streamable_http_app()) as url, client_at(f"{url}/mcp") as client:
        offered = list((await client.get_catalogue()).offered)
        assert offered == [f"mcp__web__t{number:03}" for number in range(300)]
        assert output(await asked(client, "t299")) == "t299"
        assert "wants to ask a person something" in (await asked(client, "t001")).error


async def test_a_list_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_PAGES", 20)
    async with served(many(0).streamable_http_app()) as url, client_at(f"{url}/mcp") as client:
        assert "more than 20 pages" in (await client.check()).why


async def test_more_tools_than_anybody_wants_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenroom.adapters.mcp.catalogue.MAX_TOOLS", 100)
    monkeypatch.setattr(connection, "MAX_TOOLS", 100)
    async with served(many(300).streamable_http_app()) as url, client_at(f"{url}/mcp") as client:
        catalogue = await client.get_catalogue()
        assert len(catalogue.offered) == 100
        assert catalogue.left_out[0] == SkippedTool(name="t100", why="There are more than 100 tools.")


async def test_nothing_is_sent_to_another_host() -> None:
    canary = Odd()
    async with served(canary) as elsewhere, served(Odd(elsewhere)) as url, client_at(url) as client:
        outcome = await asked(client, "leads_away")
        assert outcome.state == "failed"
        assert f"Redirect to {elsewhere}" in outcome.error
        assert canary.seen == []


async def test_its_headers_go_there_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    odd = Odd()
    async with served(odd) as url, client_at(url) as client:
        await asked(client, "works")
        assert {one["authorization"] for one in odd.seen} == {f"Bearer {SECRET}"}
        assert SECRET not in repr(client.server)
        assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("breaks_off", "peer closed connection"),
        ("is_packed", "sent a compressed body"),
        ("never_ends", "a message of more than 5 MB"),
        ("hangs", "did not answer within 1 s"),
    ],
)
async def test_an_answer_that_never_comes_is_uncertain_and_not_asked_for_again(
    name: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transports, "MAX_MESSAGE_BYTES", 5_000_000)
    odd = Odd()
    async with served(odd) as url, client_at(url, timeout=1) as client:
        outcome = await asked(client, name)
        assert outcome.state == "uncertain"
        assert why in outcome.error
        assert output(await asked(client, "works")) == "a" * 1000
        assert odd.called == [name, "works"]


async def test_a_server_that_is_not_there_is_not_called() -> None:
    async with served(Odd()) as url, client_at(url) as client:
        tool = await tool_of(client, "works")
        await client.get_catalogue()
    async with client_at(url) as client:
        assert f"cannot be reached at {url}" in (await client.check()).why
    assert "the run is over" in (await ran(tool)).error


async def test_a_server_that_goes_away_is_not_called() -> None:
    async with served(Odd()) as url:
        client_there = client_at(url)
        client = await client_there.__aenter__()
        tool = await tool_of(client, "works")
    outcome = await ran(tool)
    await client_there.__aexit__(None, None, None)
    assert (outcome.state, outcome.error[:11]) == ("failed", "Not called.")


async def test_a_server_that_lets_nobody_in_says_why() -> None:
    async with served(Odd()) as url, client_at(f"{url}/closed") as client:
        assert "needs credentials. Add them to its `headers`" in (await client.check()).why
