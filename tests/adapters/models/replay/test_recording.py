"""Recordings are written while a model is asked."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from msgspec.json import decode

from greenroom.adapters.models.replay import Recorder, ReplayModel
from greenroom.adapters.models.replay.recording import MASK, encode_canonical, hash_request
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.model import (
    Failed,
    Finished,
    ModelEvent,
    ModelReasoningDelta,
    ModelRequest,
    ModelTextDelta,
    Opaque,
    Retried,
    ToolCall,
    Usage,
)
from greenroom.testing.conformance.models import as_generator, make_request
from tests.adapters.models.replay.players import Player

KEY = "sk-abcdefghijklmnopqrstuvwxyz"
BUSY = Failed(kind="rate", why="Too many.", retry_after=1.0)
SAID: list[ModelEvent] = [
    Retried(attempt=1, wait=0.5, failed=BUSY),
    ModelReasoningDelta(text="Hm"),
    ModelTextDelta(text="He"),
    ModelTextDelta(text="llo\r\n"),
    Opaque(provider="p", data={"signature": "x"}),
    ToolCall(call_id="c9", name="add", arguments={"a": {"b": 1}}, extra=Opaque(provider="p", data={"e": True})),
    ToolCall(call_id="c8", name="add", arguments={}, unread="{"),
    Usage(input=10, output=5, money=7),
    Finished(reason="calls", said="tool_calls", model="m-1", response_id="r"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tape.jsonl"


async def heard(model: object, words: str = "hi") -> list[ModelEvent]:
    assert hasattr(model, "stream")
    return [event async for event in model.stream(make_request(words))]


def written(path: Path) -> bytes:
    return path.read_bytes()


def lines(path: Path) -> list[dict[str, object]]:
    return [decode(line) for line in written(path).splitlines()]


async def test_events_pass_through_unchanged_and_are_written(path: Path) -> None:
    player = Player({"hi": SAID})
    with Recorder(path) as recorder:
        model = recorder.wrap(player)
        assert await heard(model) == SAID
        assert (model.name, model.card, model.price(1, 1)) == (player.name, player.card, player.price(1, 1))
    first, line = lines(path)
    assert first == {"cassette": 1}
    form = encode_canonical(make_request(), player.name)
    assert (line["key"], line["request"]) == (hash_request(form), decode(form))
    assert line["usage"] == {"input": 10, "output": 5, "money": 7}
    assert line["finish"] == {"reason": "calls", "said": "tool_calls", "model": "m-1", "response_id": "r"}
    assert "error" not in line


async def test_what_is_replayed_is_what_was_said(path: Path) -> None:
    with Recorder(path) as recorder:
        await heard(recorder.wrap(Player({"hi": SAID})))
    again = await heard(ReplayModel(path))
    assert again == [*SAID[:-2], Usage(input=10, output=5, money=0), SAID[-1]]


async def test_a_fault_is_written_too(path: Path) -> None:
    failed = Failed(kind="auth", why="No.", said=f"key {KEY}", status=401)
    with Recorder(path) as recorder:
        await heard(recorder.wrap(Player({"hi": [ModelTextDelta(text="He"), failed]})))
    assert await heard(ReplayModel(path)) == [
        ModelTextDelta(text="He"),
        Failed(kind="auth", why="No.", said=f"key {MASK}", status=401),
    ]
    assert "finish" not in lines(path)[1]


async def test_who_stops_reading_at_the_end_has_a_recording(path: Path) -> None:
    with Recorder(path) as recorder:
        async with aclosing(as_generator(recorder.wrap(Player({"hi": SAID})).stream(make_request()))) as events:
            last = [await anext(events) for _ in SAID][-1]
    assert isinstance(last, Finished)
    assert len(lines(path)) == 2


async def test_a_stream_that_is_closed_or_cancelled_is_not_written(path: Path) -> None:
    player = Player({"hi": SAID})
    with Recorder(path) as recorder:
        model = recorder.wrap(player)
        async with aclosing(as_generator(model.stream(make_request()))) as events:
            await anext(events)
        assert player.closed == 1
        reader = asyncio.create_task(wait_in_the_middle(model))
        await asyncio.sleep(0)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        assert player.closed == 2
    assert len(lines(path)) == 1


async def wait_in_the_middle(model: object) -> None:
    assert hasattr(model, "stream")
    async with aclosing(as_generator(model.stream(make_request()))) as events:
        async for _ in events:
            await asyncio.Event().wait()


async def test_several_models_share_a_recording(path: Path) -> None:
    one, other = Player({"hi": SAID}), Player({"hi": [ModelTextDelta(text="Other."), Finished()]})
    other.name = "test:other"
    with Recorder(path) as recorder:
        await asyncio.gather(*(heard(recorder.wrap(model)) for model in (one, other)))
    assert len(lines(path)) == 3
    with pytest.raises(WorldFault, match="Name the one to replay: test:player, test:other"):
        ReplayModel(path)
    assert await heard(ReplayModel(path, name="test:other")) == [ModelTextDelta(text="Other."), Finished()]


async def test_secrets_are_not_written_wherever_they_are(path: Path) -> None:
    said: list[ModelEvent] = [
        ModelReasoningDelta(text="sk-abcdefghijkl"),
        ModelTextDelta(text="The key is sk-abc"),
        ModelReasoningDelta(text="mnopqrstuvwxyz"),
        ModelTextDelta(text="defghijklmnopqrstuvwxyz."),
        ToolCall(call_id="c", name="put", arguments={"key": KEY, KEY: ["hunter22", 1]}),
        Finished(),
    ]
    question = f'my "key" is {KEY} and hunter22'
    with Recorder(path, secrets=["hunter22"]) as recorder:
        assert await heard(recorder.wrap(Player({question: said})), question) == said
    text = written(path).decode()
    assert "hunter22" not in text
    assert "abcdef" not in text
    assert "wxyz" not in text
    events = await heard(ReplayModel(path, secrets=["hunter22"]), question)
    assert "".join(event.text for event in events if isinstance(event, ModelTextDelta)) == f"The key is {MASK}."


async def test_another_key_in_the_same_place_asks_the_same(path: Path) -> None:
    with Recorder(path) as recorder:
        await heard(recorder.wrap(Player({f"use {KEY}": SAID})), f"use {KEY}")
    assert isinstance((await heard(ReplayModel(path), "use sk-0000000000000000000000"))[-1], Finished)


def test_only_the_owner_can_read_it(path: Path) -> None:
    Recorder(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_no_recording_is_left_as_it_is(path: Path) -> None:
    path.write_text("my thesis\n")
    for overwrite in (False, True):
        with pytest.raises(WorldFault, match="exists and is not a recording, so it is kept"):
            Recorder(path, overwrite=overwrite)
    assert path.read_text() == "my thesis\n"


def test_a_recording_is_overwritten_only_if_told_so(path: Path) -> None:
    path.write_text('{"cassette":1}\n{}\n')
    path.chmod(0o644)
    with pytest.raises(WorldFault, match="already exists"):
        Recorder(path)
    Recorder(path, overwrite=True).close()
    assert path.read_text() == '{"cassette":1}\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_empty_file_may_be_used(path: Path) -> None:
    path.touch()
    Recorder(path).close()
    assert path.read_text() == '{"cassette":1}\n'


def test_a_place_that_cannot_be_written_is_a_clear_fault(tmp_path: Path) -> None:
    with pytest.raises(WorldFault, match="cannot be opened: Is a directory"):
        Recorder(tmp_path)
    with pytest.raises(WorldFault, match="cannot be opened: No such file"):
        Recorder(tmp_path / "no" / "folder")


async def test_a_full_disk_ends_the_recording_and_not_the_run(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Recorder(path) as recorder:

        def full(_: int, __: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        model = recorder.wrap(Player({"hi": SAID}))
        assert await heard(model) == SAID
        assert "can no longer be written: No space left on device." in recorder.problem
        assert await heard(model) == SAID
    assert caplog.text.count("The run continues without it.") == 1


async def test_half_a_line_ends_the_recording(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Recorder(path) as recorder:
        write = os.write
        monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:50]))
        model = recorder.wrap(Player({"hi": SAID}))
        await heard(model)
        monkeypatch.undo()
        await heard(model)
        assert "the disk is full" in recorder.problem
    assert len(written(path).split(b"\n")) == 2
    assert ReplayModel(path).list_unused() == ()


async def test_what_ends_after_the_recording_is_not_written(path: Path) -> None:
    recorder = Recorder(path)
    model = recorder.wrap(Player({"hi": SAID}))
    recorder.close()
    recorder.close()
    assert await heard(model) == SAID
    assert "is closed" in recorder.problem
    assert len(lines(path)) == 1


async def test_a_stream_that_cannot_be_closed_is_recorded_too(path: Path) -> None:
    class Listed(Player):
        def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            return Endless(iter(SAID))

    with Recorder(path) as recorder:
        assert await heard(recorder.wrap(Listed({}))) == SAID
    assert len(lines(path)) == 2


class Endless:
    """Asynchronous, but no generator."""

    def __init__(self, events: Iterator[ModelEvent]) -> None:
        self._events = events

    def __aiter__(self) -> "Endless":
        return self

    async def __anext__(self) -> ModelEvent:
        for event in self._events:
            return event
        raise StopAsyncIteration
