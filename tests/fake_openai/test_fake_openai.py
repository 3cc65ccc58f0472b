"""The fake server: what it answers, how it decides, what it remembers."""

import asyncio
import subprocess
import sys

import aiohttp
import pytest
from msgspec.json import decode

from greenroom.core.base.errors import WorldFault
from tests.fake_openai import Answer, Call, FakeOpenAI, Script, fault, run_in_process
from tests.fake_openai.answers import Asked, cut
from tests.fake_openai.asking import SHORT, ask, asked
from tests.fake_openai.process import main
from tests.fake_openai.scripts import Heard, teller
from tests.fake_openai.server import ROOT
from tests.fake_openai.speech import KEPT, Speech

FULL = Answer(
    text="Two words.",
    reasoning="Let me think.",
    calls=(
        Call(name="add", arguments={"a": 1}),
        Call(name="raw", arguments="{not json", id="x", extra={"signature": "s"}),
    ),
)


# ------------------------------------------------------------------------------------------------- answers


async def test_an_answer_comes_as_one_object() -> None:
    got = await asked(FULL, streaming=False)
    assert got.headers["Content-Type"] == "application/json"
    assert got.json["object"] == "chat.completion"
    (choice,) = got.choices
    assert choice["finish_reason"] == "tool_calls"
    message = choice["message"]
    assert (message["content"], message["reasoning_content"]) == ("Two words.", "Let me think.")
    first, second = got.calls
    assert first == {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    assert (second["id"], second["function"]["arguments"], second["signature"]) == ("x", "{not json", "s")


async def test_an_answer_comes_as_events() -> None:
    got = await asked(FULL)
    assert got.headers["Content-Type"].startswith("text/event-stream")
    assert got.data[-1] == "[DONE]"
    assert got.text == "Two words."
    assert "".join(delta.get("reasoning_content", "") for delta in got.deltas) == "Let me think."
    assert [call["function"]["name"] for call in got.calls if "id" in call] == ["add", "raw"]
    arguments = dict.fromkeys((0, 1), "")
    for call in got.calls:
        arguments[call["index"]] += call["function"]["arguments"]
    assert arguments == {0: '{"a":1}', 1: "{not json"}
    assert [choice["finish_reason"] for choice in got.choices][-1] == "tool_calls"


async def test_an_empty_answer_has_no_content() -> None:
    got = await asked(Answer(finish="length"), streaming=False)
    assert got.choices == [
        {"index": 0, "message": {"role": "assistant", "content": None}, "logprobs": None, "finish_reason": "length"}
    ]


async def test_reasoning_can_have_another_name() -> None:
    got = await asked(Answer(reasoning="Hm.", reasoning_name="reasoning"), streaming=False)
    assert got.choices[0]["message"]["reasoning"] == "Hm."


@pytest.mark.parametrize(("size", "pieces"), [(0, ["a ", "bc  ", "d"]), (2, ["a ", "bc", "  ", "d"]), (9, ["a bc  d"])])
def test_text_is_cut_by_words_or_by_size(size: int, pieces: list[str]) -> None:
    assert cut("a bc  d", size) == pieces


async def test_the_answer_says_how_its_text_is_cut_or_else_the_server_does() -> None:
    async with FakeOpenAI([Answer(text="abcdef", chunk=2), Answer(text="abcdef")], chunks=3) as server:
        assert [delta["content"] for delta in (await ask(server)).deltas[1:-1]] == ["ab", "cd", "ef"]
        assert [delta["content"] for delta in (await ask(server)).deltas[1:-1]] == ["abc", "def"]


async def test_paced_pieces_come_one_by_one() -> None:
    got = await asked(Answer(text="one two three", pace=0.005))
    assert got.text == "one two three"
    assert got.pieces >= 5


async def test_a_torn_body_comes_in_small_pieces() -> None:
    async with FakeOpenAI(Answer(text="äöü"), tear=7) as server:
        got = await ask(server)
        assert got.text == "äöü"
        assert got.pieces >= len(got.body) // 7
        assert (await ask(server, streaming=False)).text == "äöü"


# ------------------------------------------------------------------------------------------------- usage


async def test_usage_fits_the_size_of_the_request() -> None:
    got = await asked(Answer(text="x" * 40), streaming=False, padding="y" * 4000)
    used = got.json["usage"]
    assert isinstance(used, dict)
    assert 1000 < used["prompt_tokens"] < 1100
    assert used["completion_tokens"] == 10
    assert used["total_tokens"] == used["prompt_tokens"] + 10


async def test_usage_is_streamed_only_to_those_who_ask_for_it() -> None:
    assert not any("usage" in chunk for chunk in (await asked(FULL)).chunks)
    got = await asked(FULL, stream_options={"include_usage": True})
    assert got.chunks[-1]["choices"] == []
    assert "prompt_tokens" in str(got.chunks[-1]["usage"])


async def test_usage_can_be_given() -> None:
    used = {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}}
    assert (await asked(Answer(usage=used), streaming=False)).json["usage"] == used


# ------------------------------------------------------------------------------------------------- scripts


async def test_a_list_is_served_in_order_and_then_says_that_it_is_at_its_end() -> None:
    async with FakeOpenAI([Answer(text="1"), fault("rate_bare"), lambda _, n: Answer(text=str(n))]) as server:
        assert (await ask(server)).text == "1"
        assert (await ask(server)).status == 429
        assert (await ask(server)).text == "3"
        got = await ask(server)
        assert got.status == 500
        assert "at its end: it has 3 answers, and this is request number 4" in got.body.decode()


async def test_a_function_sees_the_request() -> None:
    def echo(request: dict[str, object], number: int) -> Answer:
        return Answer(text=f"{number} {request['model']}")

    async with FakeOpenAI(echo) as server:
        assert (await ask(server, model="a")).text == "1 a"
        assert (await ask(server, model="b")).text == "2 b"


async def test_each_model_has_its_own_script() -> None:
    async with FakeOpenAI({"a": Answer(text="A"), "b": [Answer(text="B")]}) as server:
        assert (await ask(server, model="a")).text == "A"
        assert (await ask(server, model="b")).text == "B"
        assert (await ask(server, model="b")).status == 500
        got = await ask(server, model="c")
        assert (got.status, "The model `c` does not exist" in got.body.decode()) == (404, True)


async def test_rounds_count_the_results_in_the_request() -> None:
    result = {"role": "tool", "tool_call_id": "call_1", "content": 'no "role": "tool" here'}
    async with FakeOpenAI("rounds:2") as server:
        for count, call in ((0, "call_1"), (1, "call_2")):
            got = await ask(server, streaming=False, messages=[result] * count)
            assert [one["id"] for one in got.calls] == [call]
        for count in (2, 3):
            assert (await ask(server, messages=[result] * count)).text == "done"


async def test_a_tool_round_is_one_round() -> None:
    async with FakeOpenAI("tool_round") as server:
        assert len((await ask(server, streaming=False)).calls) == 1
        assert (await ask(server, messages=[{"role": "tool"}])).text == "done"


@pytest.mark.parametrize("name", ["nonsense", "rounds:x", "rounds:"])
def test_an_unknown_built_in_script_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"no built-in script '{name}'. There are: hello"):
        teller(name)


def test_a_request_is_parsed_only_for_those_who_look() -> None:
    heard = Heard(b"no json", "m", 1)
    assert teller("hello")(heard) is teller("hello")(heard)
    with pytest.raises(ValueError, match="malformed"):
        teller(lambda request, _: Answer(text=str(request)))(heard)


# ------------------------------------------------------------------------------------------------- the server


async def test_models_are_listed() -> None:
    assert await models({"a": Answer(), "b": Answer()}) == ["a", "b"]
    assert await models("hello") == ["fake"]


async def models(script: Script) -> list[str]:
    async with (
        FakeOpenAI(script) as server,
        aiohttp.ClientSession() as session,
        session.get(f"{server.base_url}/models") as response,
    ):
        return [one["id"] for one in (await response.json())["data"]]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/chat/completions", 405), ("POST", "/models", 405), ("POST", "/completions", 404), ("GET", "", 404)],
)
async def test_other_addresses_are_refused(method: str, path: str, status: int) -> None:
    async with (
        FakeOpenAI("hello") as server,
        aiohttp.ClientSession() as session,
        session.request(method, server.base_url + path) as response,
    ):
        assert response.status == status
        assert (await response.json())["error"]["type"] == "invalid_request_error"


async def test_a_body_that_is_no_json_is_refused() -> None:
    async with FakeOpenAI("hello") as server, aiohttp.ClientSession() as session:
        async with session.post(f"{server.base_url}/chat/completions", data=b"{") as response:
            assert response.status == 400
            assert "could not parse the JSON body" in await response.text()
        assert server.requests[0].body == {}
        assert server.asked == 0


@pytest.mark.parametrize(("given", "status"), [("", 401), ("Bearer wrong", 401), ("Bearer se-cret", 200)])
async def test_a_key_is_checked_and_never_shown(given: str, status: int) -> None:
    async with FakeOpenAI("hello", api_key="se-cret") as server:
        async with aiohttp.ClientSession(headers={"Authorization": given, "X-Other": "seen"}) as session:
            got = await ask(server, session=session)
        assert got.status == status
        (seen,) = server.requests
        assert seen.headers["x-other"] == "seen"
        assert "se-cret" not in str(seen.headers)
        assert seen.headers["authorization"] == "***"


async def test_what_came_is_remembered() -> None:
    async with FakeOpenAI("hello") as server:
        before = asyncio.get_running_loop().time()
        await ask(server, temperature=0.5)
        (seen,) = server.requests
        assert (seen.method, seen.path, seen.body["temperature"]) == ("POST", f"{ROOT}/chat/completions", 0.5)
        assert before <= seen.at <= asyncio.get_running_loop().time()


async def test_nothing_is_remembered_when_told_so() -> None:
    async with FakeOpenAI("hello", keep=False) as server:
        await ask(server)
        assert (server.asked, server.requests) == (1, [])


async def test_a_connection_serves_many_requests() -> None:
    async with FakeOpenAI("hello") as server, aiohttp.ClientSession(timeout=SHORT) as session:
        for streaming in (True, False, True):
            await ask(server, streaming=streaming, session=session)
        assert (server.connections, server.asked) == (1, 3)


async def test_a_client_that_wants_to_close_is_let_go() -> None:
    async with FakeOpenAI("hello") as server:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
            for _ in range(2):
                await ask(server, session=session)
        assert server.connections == 2


async def test_many_are_served_at_once_after_the_latency() -> None:
    async with FakeOpenAI("hello", latency=0.3) as server:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            start = asyncio.get_running_loop().time()
            got = await asyncio.gather(*(ask(server, session=session) for _ in range(200)))
            assert asyncio.get_running_loop().time() - start >= 0.3
        assert {one.text for one in got} == {"Hello from the fake server."}
        assert server.in_flight_peak == 200
        assert server.in_flight == 0


async def test_a_client_that_leaves_during_the_latency_leaves_nothing_behind() -> None:
    async with FakeOpenAI("hello", latency=60) as server:
        asking = asyncio.create_task(ask(server))
        async with asyncio.timeout(10):
            await server.until(in_flight=1)
            asking.cancel()
            await server.until(in_flight=0)


async def test_a_large_request_is_read() -> None:
    async with FakeOpenAI("hello") as server:
        await ask(server, padding="x" * 1_000_000, more="y" * 40_000)
        assert len(server.requests[0].raw) > 1_040_000


def test_encoded_answers_are_kept_but_not_for_ever() -> None:
    speech = Speech()
    answer = Answer(text="a")
    first = speech.wire(answer, Asked())
    assert speech.wire(answer, Asked()).pieces[0] is first.pieces[0]
    others = [Answer(text=str(n)) for n in range(KEPT)]
    for other in others:
        speech.wire(other, Asked())
    assert speech.wire(answer, Asked()) == first
    assert speech.wire(answer, Asked()).pieces[0] is not first.pieces[0]


# ------------------------------------------------------------------------------------------------- its own process


async def test_a_server_runs_in_its_own_process() -> None:
    with run_in_process("tool_round", chunks=2) as base_url:
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{base_url}/chat/completions", json={"model": "m"}) as response:
                assert (await response.json())["choices"][0]["finish_reason"] == "tool_calls"
            async with session.get(base_url.replace(ROOT, "/stats")) as response:
                assert decode(await response.read()) == {"asked": 1, "connections": 1, "in_flight_peak": 1}


def test_a_process_that_does_not_start_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WorldFault, match="did not start with 'nonsense'"), run_in_process("nonsense"):
        pytest.fail("it started")
    assert "There is no built-in script 'nonsense'" in capfd.readouterr().err


def test_the_process_ends_with_its_standard_input() -> None:
    command = [sys.executable, "-m", "tests.fake_openai", "hello"]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("http://127.0.0.1:")


def test_the_program_wants_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "script" in capsys.readouterr().err
