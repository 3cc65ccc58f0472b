"""The fake server: what it answers, how its script decides, what it remembers.

Each of its faults is tried in `tests/adapters/models/openai/test_faults.py`.
"""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from msgspec.json import decode

from greenroom.core.base.errors import WorldFault
from tests.fake_openai import Answer, Call, FakeOpenAI, fault, run_in_process
from tests.fake_openai.scripts import Part
from tests.fake_openai.server import ROOT
from tests.fake_openai.strict import broken

FULL = Answer(
    text="Two words.",
    reasoning="Let me think.",
    calls=(
        Call(name="add", arguments={"a": 1}),
        Call(name="raw", arguments="{not json", id="x", extra={"signature": "s"}),
    ),
)
ASKS = {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]}
A, B = {"role": "tool", "tool_call_id": "a"}, {"role": "tool", "tool_call_id": "b"}
USER = {"role": "user", "content": "Well?"}


async def ask(server: FakeOpenAI, *, streaming: bool = False, key: str = "", **more: Any) -> tuple[int, Any]:
    """The status and the object that it answers; of a stream all objects."""
    body = {"model": "fake", "messages": [USER], "stream": streaming, **more}
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session,
        session.post(f"{server.base_url}/chat/completions", json=body) as response,
    ):
        text = await response.text()
        if not streaming:
            return response.status, decode(text)
        *events, last = [event.removeprefix("data: ") for event in text.split("\n\n")][:-1]
        assert last == "[DONE]"
        return response.status, [decode(event) for event in events]


async def said(server: FakeOpenAI, **more: Any) -> str:
    """The text that it answers."""
    _, found = await ask(server, **more)
    return str(found["choices"][0]["message"]["content"])


async def test_an_answer_is_the_same_whole_and_streamed() -> None:
    async with FakeOpenAI(FULL, chunks=2) as server:
        _, whole = await ask(server)
        _, events = await ask(server, streaming=True, stream_options={"include_usage": True})
    (choice,) = whole["choices"]
    message = choice["message"]
    assert (message["content"], message["reasoning_content"]) == ("Two words.", "Let me think.")
    assert choice["finish_reason"] == events[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == ['{"a":1}', "{not json"]
    deltas = [event["choices"][0]["delta"] for event in events[:-1]]
    assert "".join(delta.get("content", "") for delta in deltas) == "Two words."
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert [call["id"] for call in calls if "id" in call] == ["call_1", "x"]
    assert "".join(call["function"]["arguments"] for call in calls) == '{"a":1}{not json'
    assert whole["usage"].keys() == events[-1]["usage"].keys()


async def test_a_script_is_a_list_a_function_or_one_per_model_and_says_when_it_is_at_its_end() -> None:
    def counts(_: dict[str, object], number: int) -> Answer:
        return Answer(text=str(number))

    script: list[Part] = [Answer(text="1"), fault("rate_bare"), counts]
    async with FakeOpenAI({"a": script, "b": Answer(text="B")}) as server:
        assert await said(server, model="a") == "1"
        assert (await ask(server, model="a"))[0] == 429
        assert await said(server, model="b") == "B"
        assert await said(server, model="a") == "4"
        status, found = await ask(server, model="a")
        assert (status, "at its end: it has 3 answers" in str(found)) == (500, True)
        assert (await ask(server, model="c"))[0] == 404
        assert server.asked == 6


async def test_rounds_count_the_results_in_the_request() -> None:
    async with FakeOpenAI("rounds:2") as server:
        for count, name in ((0, "call_1"), (1, "call_2")):
            _, found = await ask(server, messages=[A] * count)
            assert [call["id"] for call in found["choices"][0]["message"]["tool_calls"]] == [name]
        assert await said(server, messages=[A, A]) == "done"


async def test_a_key_is_checked_and_never_shown() -> None:
    async with FakeOpenAI("hello", api_key="se-cret") as server:
        assert [(await ask(server, key=key))[0] for key in ("wrong", "se-cret")] == [401, 200]
        assert "se-cret" not in json.dumps([seen.headers for seen in server.requests])
        assert server.requests[-1].body["messages"] == [USER]


async def test_a_client_that_leaves_leaves_nothing_behind() -> None:
    async with FakeOpenAI("hello", latency=60) as server:
        asking = asyncio.create_task(ask(server))
        async with asyncio.timeout(10):
            await server.until(in_flight=1)
            asking.cancel()
            await server.until(in_flight=0)


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([USER, ASKS, B, A, USER], ""),
        ([USER, ASKS, A, USER], "did not have response messages: b"),
        ([USER, ASKS, A, A, B], "must be a response to a preceeding message"),
    ],
)
def test_a_strict_one_wants_exactly_one_result_of_each_call(messages: list[object], why: str) -> None:
    found = broken({"messages": messages})
    assert (why in found, bool(found)) == (True, bool(why))


async def test_a_server_runs_in_its_own_process() -> None:
    with run_in_process("tool_round") as base_url:
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{base_url}/chat/completions", json={"model": "m"}) as response:
                assert (await response.json())["choices"][0]["finish_reason"] == "tool_calls"
            async with session.get(base_url.replace(ROOT, "/stats")) as response:
                assert decode(await response.read()) == {"asked": 1, "connections": 1, "in_flight_peak": 1}
    with pytest.raises(WorldFault, match="did not start with 'nonsense'"), run_in_process("nonsense"):
        pytest.fail("it started")
