"""A server made with the SDK, over stdio: one server for all tests of this file."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from typing import cast

import pytest
import pytest_asyncio

from greenroom.adapters.mcp.client import McpClient
from greenroom.adapters.mcp.configuration import parse_servers
from greenroom.core.ports.tool import ToolExecutor
from tests.adapters.mcp.running import ORDINARY, asked, client_of, output, ran, tool_of, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "OPENAI_API_KEY": "sk-planted", "MY_TOKEN": "planted-token"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[McpClient]:
    table = {"command": sys.executable, "args": [ORDINARY], "env": {"TOKEN": "${MY_TOKEN}", "MODE": "${MODE:-quiet}"}}
    (server,) = parse_servers({"mcpServers": {"ordinary": table}})
    async with client_of(server, environ=ENVIRON) as client:
        yield client


async def test_a_tool_of_a_server_is_called(client: McpClient) -> None:
    tool = await tool_of(client, "add")
    assert (await ran(tool, a=2, b=40)).result == {"output": "42"}
    assert tool.name == "mcp__ordinary__add"
    assert tool.description == "Add two numbers."
    assert tool.card.spec.parameters["required"] == ["a", "b"]
    assert (tool.card.group, tool.card.effect, tool.card.source) == ("mcp", "effectful", "mcp:ordinary")
    executor: ToolExecutor = tool
    assert [(one.kind, one.value) for one in executor.targets({"a": None})] == [("tool", tool.name)]


async def test_it_speaks_the_newest_protocol_and_is_well(client: McpClient) -> None:
    health = await client.check()
    assert (health.works, health.version) == (True, "2026-07-28")


async def test_arguments_that_it_does_not_take_are_its_own_failure(client: McpClient) -> None:
    outcome = await asked(client, "add", a="many")
    assert outcome.state == "failed"
    assert "int" in outcome.error


async def test_a_structure_is_told_once(client: McpClient) -> None:
    assert json.loads(output(await asked(client, "weather", city="Ulm"))) == {"city": "Ulm", "degrees": 21.5}


async def test_an_image_is_told_in_words_and_kept(client: McpClient) -> None:
    outcome = await asked(client, "picture")
    assert output(outcome) == "[image image/png, 70 bytes: it cannot be shown here]"
    (part,) = cast("list[dict[str, object]]", (outcome.result or {})["parts"])
    assert part["bytes"] == 70
    assert len(str(part["data"])) == 96


async def test_texts_are_joined_and_files_and_links_described(client: McpClient) -> None:
    assert output(await asked(client, "mixed")).splitlines() == [
        "first",
        "[file file:///a.txt]",
        "second",
        "[file file:///a.bin, application/octet-stream, 5 bytes: it cannot be shown here]",
        "[link to https://example.org/x: third, not fetched]",
    ]


async def test_what_it_calls_an_error_is_a_failure_with_its_words(client: McpClient) -> None:
    outcome = await asked(client, "boom")
    assert outcome.state == "failed"
    assert "the boiler is cold" in outcome.error


async def test_it_gets_what_its_settings_name_and_nothing_else(client: McpClient) -> None:
    given: Mapping[str, str] = json.loads(output(await asked(client, "environment")))
    assert given["MODE"] == "quiet"
    assert given["TOKEN"] == "****", "what it says again is covered"
    assert {name for name in given if name != "LC_CTYPE"} == {"PATH", "HOME", "TOKEN", "MODE"}


async def test_twenty_megabytes_are_cut_to_their_ends(client: McpClient) -> None:
    said = output(await asked(client, "big", size=20_000_000))
    assert said.startswith("begin aaa")
    assert said.endswith("aaa end")
    assert len(said) < 16_000_100
    assert "[… 4000010 characters are left out …]" in said


async def test_a_cancelled_call_is_cancelled_there_and_the_server_stays(client: McpClient) -> None:
    tool = await tool_of(client, "slow")
    call = asyncio.create_task(ran(tool))
    await asyncio.wait({call}, timeout=0.3)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert "slow" in output(await asked(client, "was_cancelled"))


async def test_a_tool_that_appears_is_offered(client: McpClient) -> None:
    before = await client.get_catalogue()
    assert "mcp__ordinary__sprout" not in before.offered
    await asked(client, "grow", name="sprout")
    await until(lambda: client._catalogue is None)
    assert "mcp__ordinary__sprout" in (await client.get_catalogue()).offered
    assert output(await asked(client, "sprout")) == "sprout"
