"""A server of last year's protocol that says odd things: one server for all tests of this file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from greenroom.adapters.mcp.client import McpClient
from tests.adapters.mcp.running import asked, client_of, output, raw

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[McpClient]:
    folder: Path = tmp_path_factory.mktemp("older")
    async with client_of(raw(folder)) as client:
        yield client


async def test_an_older_server_is_understood_and_well(client: McpClient) -> None:
    assert output(await asked(client, "echo", text="hello")) == "hello"
    assert (await client.check()).version == "2025-11-25"


async def test_garbage_between_messages_is_passed_over(client: McpClient) -> None:
    assert output(await asked(client, "babble")) == "babble is done"


async def test_an_answer_that_is_no_result_is_uncertain(client: McpClient) -> None:
    outcome = await asked(client, "odd")
    assert outcome.state == "uncertain"
    assert "not the result of a call" in outcome.error


async def test_a_refusal_is_a_failure_in_its_own_words(client: McpClient) -> None:
    outcome = await asked(client, "deny")
    assert (outcome.state, outcome.error) == ("failed", "Not today.")


async def test_endless_complaints_disturb_nobody(client: McpClient) -> None:
    assert output(await asked(client, "shout")) == "shout is done"
    for number in range(20):
        assert output(await asked(client, "echo", text=str(number))) == str(number)
