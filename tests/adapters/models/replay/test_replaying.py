"""Recordings are played back, and what is not in them is said at once."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greenroom.adapters.models.replay import ModelRecording, Recorder, ReplayModel
from greenroom.adapters.models.replay.recording import find_nearest, render_request
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    Finished,
    ModelCard,
    ModelEvent,
    ModelRequest,
    ModelTextDelta,
)
from greenroom.testing.conformance.models import collect_events, make_request, text_of
from tests.adapters.models.replay.players import Player
from tests.speed import is_soon


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tape.jsonl"


async def record(path: Path, *requests: tuple[ModelRequest, str]) -> None:
    """Record these answers to these requests."""
    with Recorder(path, overwrite=True) as recorder:
        for request, answer in requests:
            player = Player({request.messages[-1].content: [ModelTextDelta(text=answer), Finished()]})
            await collect_events(recorder.wrap(player), request)


def cut_off(path: Path, count: int) -> None:
    """As a crash would leave it."""
    path.write_bytes(path.read_bytes()[:-count])


def multiply(path: Path, word: bytes, *others: bytes) -> None:
    """The last recorded talk so many times, each with another word: as if all had been recorded, but at once."""
    *head, talk = path.read_bytes().splitlines(keepends=True)
    assert talk.count(word) == 1
    path.write_bytes(b"".join([*head, *(talk.replace(word, other) for other in others)]))


async def ask(model: ReplayModel, request: ModelRequest) -> str:
    """The answer's text, or why there is none."""
    events = await collect_events(model, request)
    return events[-1].why if isinstance(events[-1], Failed) else text_of(events)


async def failed(model: ReplayModel, request: ModelRequest) -> Failed:
    (event,) = await collect_events(model, request)
    assert isinstance(event, Failed)
    return event


def again(request: ModelRequest, attempt: int) -> ModelRequest:
    return evolve(request, purpose=evolve(request.purpose, attempt=attempt))


async def test_equal_requests_get_their_answers_in_the_order_of_the_file(path: Path) -> None:
    await record(path, (make_request(), "one"), (make_request("other"), "x"), (make_request(), "two"))
    model = ReplayModel(path)
    assert [await ask(model, make_request(step=f"a#{n}")) for n in (1, 2)] == ["one", "two"]
    assert (
        await ask(model, make_request())
        == "The recording 'tape.jsonl' has this request 2 ×, but it was sent once more."
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)
@given(order=st.permutations(range(12)))
def test_different_requests_may_come_in_any_order(path: Path, order: list[int]) -> None:
    async def play() -> None:
        await record(path, *((make_request(f"q{n}"), f"a{n}") for n in range(12)))
        model = ReplayModel(path)
        assert await asyncio.gather(*(ask(model, make_request(f"q{n}")) for n in order)) == [f"a{n}" for n in order]
        assert model.list_unused() == ()

    asyncio.run(play())


async def test_a_step_that_is_tried_again_gets_its_own_answers_again(path: Path) -> None:
    await record(path, *((make_request(), f"answer {n}") for n in range(4)))
    model = ReplayModel(path)
    mine, other = make_request(step="a#1"), make_request(step="b#1")
    assert [await ask(model, mine), await ask(model, other), await ask(model, mine)] == [
        f"answer {n}" for n in range(3)
    ]
    assert [await ask(model, again(mine, 2)) for _ in range(3)] == ["answer 0", "answer 2", "answer 3"]
    assert await ask(model, again(mine, 3)) == "answer 0"
    assert await ask(model, again(other, 2)) == "answer 1"
    assert "once more" in await ask(model, make_request(step="c#1"))


async def test_what_was_never_asked_for_is_listed(path: Path) -> None:
    await record(path, (make_request("a"), "1"), (make_request("b"), "2"), (make_request("c"), "3"))
    model = ReplayModel(path)
    await ask(model, make_request("b"))
    assert [str(tape.request["messages"])[-10:] for tape in model.list_unused()] == [
        str(tape.request["messages"])[-10:]
        for tape in (ModelRecording(path).list_unused()[0], ModelRecording(path).list_unused()[2])
    ]
    assert len(model.list_unused()) == 2


async def test_a_recording_at_its_end_says_so(path: Path) -> None:
    await record(path, (make_request(), "one"))
    model = ReplayModel(path)
    await ask(model, make_request())
    fault = await failed(model, make_request("other"))
    assert fault.why == "The recording 'tape.jsonl' is exhausted: all of its 1 responses are used."
    assert (fault.kind, fault.action, fault.said) == ("request", "stop", "")


async def test_a_request_that_was_not_recorded_is_compared_with_the_nearest(path: Path) -> None:
    await record(path, *((make_request(f"This is question number {n}"), "") for n in range(9)))
    fault = await failed(ReplayModel(path), make_request("This is question number 3 changed"))
    assert fault.why == "The recording 'tape.jsonl' has no response to this request. Record again, or undo the change."
    assert fault.said.splitlines() == [
        "--- recorded",
        "+++ asked",
        "@@ -6,3 +6,3 @@",
        "   Be brief.",
        " user:",
        "-  This is question number 3",
        "+  This is question number 3 changed",
    ]


async def test_a_conversation_of_the_same_length_is_nearer(path: Path) -> None:
    longer = evolve(
        make_request(), messages=(*make_request("Hello").messages, ChatMessage(role="user", content="more"))
    )
    await record(path, (longer, "1"), (make_request("Something else altogether"), "2"))
    said = (await failed(ReplayModel(path), make_request("Hello"))).said
    assert "-  Something else altogether" in said


async def test_another_model_is_part_of_the_difference(path: Path) -> None:
    await record(path, (make_request(), "1"))
    said = (await failed(ReplayModel(path, name="p:new"), make_request())).said
    assert "-model: test:player\n+model: p:new" in said


async def test_a_miss_in_a_large_recording_is_found_soon(path: Path) -> None:
    history = tuple(ChatMessage(role="user", content=f"line {n}\n" * 20) for n in range(40))
    await record(path, (evolve(make_request(), messages=(*history, ChatMessage(role="user", content="q0"))), "a"))
    multiply(path, b'"q0"', *(b'"q%d"' % number for number in range(1000)))
    model = ReplayModel(path)
    start = time.process_time()
    fault = await failed(model, evolve(make_request(), messages=(*history, ChatMessage(role="user", content="q77!"))))
    assert is_soon(time.process_time() - start, 5)
    assert "-  q77\n+  q77!" in fault.said


def test_all_parts_of_a_request_are_shown() -> None:
    request = {
        "model": "p:m",
        "schema": {"a": 1},
        "settings": {"max_output": 1},
        "tools": [{"name": "add"}],
        "messages": [{"role": "assistant", "content": "a\nb", "reasoning": "hm", "calls": [{"id": "call 1"}]}, 7],
    }
    assert render_request(request) == [
        "model: p:m",
        'settings: {"max_output":1}',
        'schema: {"a":1}',
        'tool: {"name":"add"}',
        "assistant:",
        "  a",
        "  b",
        "  reasoning: hm",
        '  calls: [{"id":"call 1"}]',
        "7",
    ]
    assert find_nearest(request, []) == ""
    assert find_nearest({"model": "x"}, [{"model": "y"}]).endswith("-model: y\n+model: x")


def test_a_long_line_is_cut() -> None:
    assert find_nearest({"model": "x"}, [{"model": "y" * 1000}]).splitlines()[3].endswith("… (1008 characters)")


async def test_it_costs_nothing_and_has_a_card(path: Path) -> None:
    await record(path, (make_request(), "1"))
    assert ReplayModel(path).price(10**6, 10**6) == 0
    assert ReplayModel(path).card == ModelCard()
    assert ReplayModel(path, card=ModelCard(window=5)).card.window == 5
    assert ReplayModel(str(path)).name == "test:player"


async def test_models_share_a_cassette(path: Path) -> None:
    await record(path, (make_request(), "1"), (make_request(), "2"))
    cassette = ModelRecording(path)
    assert cassette.models == ("test:player",)
    assert [await ask(ReplayModel(cassette), make_request(step=f"a#{n}")) for n in (1, 2)] == ["1", "2"]


# ------------------------------------------------------------------------------------------------- files


def test_an_empty_recording_can_be_played(path: Path) -> None:
    path.write_text('{"cassette":1}\n')
    assert ReplayModel(path).name == "replay:empty"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not a recording"),
        ("{}\n", "is not a recording"),
        ('{"cassette":"x"}\n', "is not a recording"),
        ("my thesis\n", "is not a recording: its first line is not {"),
        ('{"cassette":2}\n', "is a recording of version 2; this Greenroom reads 1. Update Greenroom."),
        ('{"cassette":1}\nnonsense\n', "Line 2 of the recording .* cannot be read: JSON is malformed"),
        ('{"cassette":1}\n\n{}\n', "Line 3 .* missing required field `key`"),
        ('{"cassette":1}\n{"key":"k","request":{}}\n', "Line 2 .* has no end"),
        ('{"cassette":1}\n{"key":"k","request":{},"events":[{"t":"song"}]}\n', "event 'song' is unknown"),
        ('{"cassette":1}\n{"key":"k","request":{},"events":[{"t":"text"}]}\n', "missing required field `text`"),
        ('{"cassette":1}\n{"key"\n{"key":"k","request":{},"finish":{}}', "Line 2"),
    ],
)
def test_a_file_that_cannot_be_played_says_why(path: Path, text: str, why: str) -> None:
    path.write_text(text)
    with pytest.raises(WorldFault, match=why):
        ReplayModel(path)


def test_a_file_that_is_not_there_says_so(path: Path) -> None:
    with pytest.raises(WorldFault, match="cannot be read: No such file or directory"):
        ReplayModel(path)


async def test_a_last_line_that_is_cut_off_is_left_out(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await record(path, (make_request("a"), "1"), (make_request("b"), "2"))
    cut_off(path, 20)
    model = ReplayModel(path)
    assert "the last line is incomplete and is skipped" in caplog.text
    assert await ask(model, make_request("a")) == "1"
    assert isinstance((await collect_events(model, make_request("b")))[-1], Failed)


async def test_a_last_line_without_its_end_is_read(path: Path) -> None:
    await record(path, (make_request("a"), "1"))
    cut_off(path, 1)
    events: list[ModelEvent] = await collect_events(ReplayModel(path), make_request("a"))
    assert text_of(events) == "1"


async def test_a_step_whose_answer_broke_off_gets_the_next_one_when_it_is_tried_again(path: Path) -> None:
    broken: list[ModelEvent] = [ModelTextDelta(text="Hal"), Failed(kind="network", why="lost", again=True)]
    whole: list[ModelEvent] = [ModelTextDelta(text="Hello"), Finished()]
    with Recorder(path) as recorder:
        for said in (broken, whole):
            await collect_events(recorder.wrap(Player({"hi": said})), make_request())
    model = ReplayModel(path)
    assert (await collect_events(model, make_request()))[-1] == broken[-1]
    for attempt in (2, 3):
        assert await ask(model, again(make_request(), attempt)) == "Hello", "and that one as often as it is asked"


@pytest.mark.parametrize("use", [ModelRecording, Recorder])
def test_a_device_is_no_recording(use: Callable[[str], object]) -> None:
    with pytest.raises(WorldFault, match="is not a regular file"):
        use("/dev/zero")
