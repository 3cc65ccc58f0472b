"""The event stream: each event once and in order, from where a watcher was, and live text in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from greenroom.core.base.errors import StoreFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.model import ModelTextDelta
from greenroom.core.rules.intents import AddTask, PauseTeam, ResumeTeam
from greenroom.core.state.spec import AgentSpec
from greenroom.http.event_hub import EventHub, Subscription
from greenroom.testing.scripted import Cue
from tests.app.organisation.office import ANN, office
from tests.app.teams.play import Gate, GatedModel
from tests.http.conftest import Site, open_site
from tests.http.desk import enter_shop, open_desk

Row = dict[str, Any]
COMMITS = 40


def parse(chunk: bytes) -> Iterator[tuple[str, str, Any]]:
    """Yield the id, the kind and the data of each event of a chunk."""
    for block in chunk.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            yield fields.get("id", ""), fields["event"], json.loads(fields["data"])


async def read_rows(stream: AsyncIterator[bytes], last: int) -> list[Row]:
    """Return the rows of a stream of one run up to a version."""
    rows: list[Row] = []
    async with asyncio.timeout(30):
        async for chunk in stream:
            for id_, kind, data in parse(chunk):
                rows += data if kind == "events" else []
                assert kind != "events" or int(id_.rpartition(":")[2]) >= data[-1]["version"]
            if rows and rows[-1]["version"] >= last:
                return rows
    raise AssertionError("the stream ended")


async def make_run(site: Site) -> TeamId:
    return await site.runtime.create("r", [(AgentId("ann"), AgentSpec(name="ann", role="r"))])


async def act(site: Site, run: TeamId, times: int = COMMITS) -> int:
    """Commit so often, and return the newest version."""
    for _ in range(times // 2):
        await site.runtime.ask(run, PauseTeam())
        await site.runtime.ask(run, ResumeTeam())
    return (await site.runtime.log.head(run)).version


def hub_of(site: Site) -> EventHub:
    hub = site.app.state.context.hub
    assert isinstance(hub, EventHub)
    return hub


@pytest.mark.req("MAS-262")
async def test_every_watcher_gets_each_event_once_wherever_it_begins(site: Site) -> None:
    run, hub = await make_run(site), hub_of(site)
    head = await act(site, run)
    starts = [0, 1, head // 2, head]
    async with asyncio.TaskGroup() as group:
        streams = [hub.watch(Subscription(runs={run: start})) for start in starts]
        for stream in streams:
            await anext(stream)
        newest = head + COMMITS
        reading = [group.create_task(read_rows(stream, newest)) for stream in streams]
        assert await act(site, run) == newest
    for start, task in zip(starts, reading, strict=True):
        assert [row["version"] for row in task.result()] == list(range(start + 1, newest + 1))
    for stream in streams:
        await stream.aclose()
    assert not hub._tails


async def test_a_watcher_that_is_far_behind_reads_the_log(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenroom.http.event_hub.MAX_ROWS", 3)
    monkeypatch.setattr("greenroom.http.event_hub.BACKLOG_PAGE", 7)
    run, hub = await make_run(site), hub_of(site)
    async with (
        aclosing(hub.watch(Subscription(runs={run: 1}))) as slow,
        aclosing(hub.watch(Subscription(runs={run: 1}))) as quick,
    ):
        await anext(slow)
        await anext(quick)
        head = await act(site, run)
        await read_rows(quick, head)
        rows = await read_rows(slow, head)
    assert [row["version"] for row in rows] == list(range(2, head + 1))


async def test_a_filter_lets_only_its_types_and_agent_through(site: Site) -> None:
    run, hub = await make_run(site), hub_of(site)
    async with aclosing(hub.watch(Subscription(runs={run: 0}, types={"TeamResumed"}, language="zh"))) as stream:
        rows = await read_rows(stream, await act(site, run))
    assert [row["type"] for row in rows] == ["TeamResumed"] * (COMMITS // 2)
    async with aclosing(hub.watch(Subscription(runs={run: 0}, agent="ann"))) as stream:
        rows = await read_rows(stream, 1)
    assert {row["agent"] for row in rows} == {"ann"}


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("tail", StoreFault("ports.unknown_event_type", version=2, type="x")),
        ("tail", KeyError("a mistake")),
        ("streams", KeyError("a mistake")),
    ],
)
async def test_watchers_of_a_log_that_cannot_be_read_are_sent_away(
    site: Site, monkeypatch: pytest.MonkeyPatch, name: str, error: Exception
) -> None:
    run, hub = await make_run(site), hub_of(site)

    def fail(*_: object) -> AsyncIterator[object]:
        raise error

    async with aclosing(hub.watch(Subscription(runs={run: 0}))) as stream, asyncio.timeout(30):
        await anext(stream)
        monkeypatch.setattr(site.runtime.log, name, fail)
        chunks = [chunk async for chunk in stream]
    assert chunks[-1] == b"event: error\ndata: {}\n\n"
    monkeypatch.undo()
    async with aclosing(hub.watch(Subscription(runs={run: 0}))) as stream:
        assert await read_rows(stream, await act(site, run))


async def wait_for_count(stream: AsyncIterator[bytes], count: int) -> None:
    async for chunk in stream:
        if any(kind == "inbox" and data["count"] == count for _, kind, data in parse(chunk)):
            return


async def test_the_inbox_counts_requests_and_messages_to_people(tmp_path: Path) -> None:
    async with office() as house, open_site(tmp_path, house.runtime) as site:
        await house.runtime.start(house.team)
        async with aclosing(hub_of(site).watch(Subscription(runs={}))) as stream, asyncio.timeout(30):
            await anext(stream)
            for text in ("Green or black?", "With milk?"):
                await house.writes(ANN, text, need_reply=True)
            await wait_for_count(stream, 2)
        items = (await site.client.get("/api/inbox", headers=site.token)).json()["items"]
    assert [item["question"] for item in items] == ["Green or black?", "With milk?"]


async def read_turn(stream: AsyncIterator[bytes]) -> list[Row]:
    """Return the pieces of live text up to the end of the agent's turn."""
    pieces = list[Row]()
    async for chunk in stream:
        pieces += [piece for _, kind, data in parse(chunk) if kind == "live" for piece in data]
        if pieces and pieces[-1]["type"] == "agent_complete":
            break
    return pieces


@pytest.mark.req("AF-27", "AF-34", "AF-37", "AF-38", "AF-39", "AF-41", "AF-42", "AF-43", "AF-44")
async def test_a_reply_is_streamed_as_a_turn_with_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_shop(tmp_path, monkeypatch)
    async with open_desk([Cue(reply="It is in shop/cart.py.")], monkeypatch) as desk:
        gate = Gate()
        assert isinstance(desk.model, GatedModel)
        desk.model.gates = {("assistant", 1): gate}
        run = await desk.start(request="Where is the cart?", question=True)
        async with aclosing(desk.context.hub.watch(Subscription(runs={run: 0}))) as stream, asyncio.timeout(60):
            await anext(stream)
            gate.is_open.set()
            pieces = await read_turn(stream)
    chunks = [piece for piece in pieces if piece["type"] == "llm_chunk"]
    assert {piece["chunk"] for piece in chunks} == {"content"}
    assert "".join(piece["text"] for piece in chunks) == "It is in shop/cart.py."
    assert {piece["agent"] for piece in pieces} == {"assistant"}
    assert [piece["type"] for piece in pieces] == [
        "agent_start",
        *("llm_chunk" for _ in chunks),
        "llm_complete",
        "agent_complete",
    ]


async def test_a_key_in_pieces_is_never_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-proj-" + "abcd1234" * 5
    monkeypatch.setenv("OPENAI_API_KEY", key)
    enter_shop(tmp_path, monkeypatch)
    async with open_desk([Cue(reply="Done.")], monkeypatch) as desk:
        gate, hub = Gate(), desk.context.hub
        assert isinstance(desk.model, GatedModel)
        desk.model.gates = {("assistant", 1): gate}
        run = await desk.start(request="Which key?", question=True)
        await gate.is_reached.wait()
        (step,) = (step for step in (await desk.runtime.state(run)).steps.values() if step.state == "running")
        async with aclosing(hub.watch(Subscription(runs={run: 0}))) as stream, asyncio.timeout(60):
            await anext(stream)
            hub.show_live(run, step, ModelTextDelta(text=f"中文 It is {key[:20]}"))
            texts = [piece["text"] for piece in await read_live(stream)]
            hub.show_live(run, step, ModelTextDelta(text=f"{key[20:]} or {'x' * 600}{key[:9]}"))
            texts += [piece["text"] for piece in await read_live(stream)]
            hub.show_live(run, step, ModelTextDelta(text=f"{key[9:]} end"))
            texts += [piece["text"] for piece in await read_live(stream)]
            gate.is_open.set()
            texts += [piece["text"] for piece in await read_turn(stream)]
    shown = "".join(texts)
    assert texts[1] == "中文 It is "
    assert key[:12] not in shown
    assert key[-12:] not in shown
    assert f" or {'x' * 600}" in shown
    assert shown.endswith(" endDone.")


async def read_live(stream: AsyncIterator[bytes]) -> list[Row]:
    """Return the pieces of the next frame of live text."""
    async for chunk in stream:
        for _, kind, data in parse(chunk):
            if kind == "live":
                return list(data)
    raise AssertionError("the stream ended")


async def test_large_frames_are_cut_and_watchers_share_what_is_read(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.http.event_hub.MAX_FRAME", 1_000)
    monkeypatch.setattr("greenroom.http.event_hub.BACKLOG_PAGE", 10)
    run, hub, reader = await make_run(site), hub_of(site), site.app.state.context.reader
    head, describe, reads = await act(site, run), reader.describe, list[int]()

    async def count(run: TeamId, versions: range, language: str) -> object:
        reads.append(versions[0])
        return await describe(run, versions, language)

    monkeypatch.setattr(reader, "describe", count)

    async def watch(start: int) -> tuple[list[bytes], list[int]]:
        chunks, versions = list[bytes](), list[int]()
        async with aclosing(hub.watch(Subscription(runs={run: start}))) as stream, asyncio.timeout(30):
            async for chunk in stream:
                rows = [row for _, kind, data in parse(chunk) if kind == "events" for row in data]
                versions += [row["version"] for row in rows]
                chunks += [chunk] if len(rows) > 1 else []
                if versions[-1:] == [head]:
                    break
        return chunks, versions

    async with aclosing(hub.watch(Subscription(runs={run: None}))) as stream:  # keeps the tail of the run
        await anext(stream)
        found = await asyncio.gather(*(watch(start % 20) for start in range(40)))
    for start, (chunks, versions) in enumerate(found):
        assert versions == list(range(start % 20 + 1, head + 1))
        assert all(len(chunk) < 1_500 for chunk in chunks)
    assert sorted(reads) == list(range(1, head + 1, 10))
    rare = hub.watch(Subscription(runs={run: 0}, types={"TeamResumed"}))
    async with aclosing(rare) as stream:
        rows = await read_rows(stream, head)
    assert {row["type"] for row in rows} == {"TeamResumed"}


async def test_every_watcher_reads_the_rows_of_runs_in_its_language(site: Site) -> None:
    run, hub = await make_run(site), hub_of(site)
    task = AddTask(name="tea", intention="Make tea.", manager=AgentId("ann"), group=(AgentId("ann"),))
    await site.runtime.ask(run, task)
    streams = {code: hub.watch(Subscription(runs={}, language=code)) for code in ("zh", "en", "zh-CN")}
    for stream in streams.values():
        await anext(stream)
    await asyncio.sleep(0)  # what is there is known
    await site.runtime.ask(run, PauseTeam())
    reasons = {}
    for code, stream in streams.items():
        rows = [data for _, kind, data in parse(await anext(stream)) if kind == "runs"]
        reasons[code] = rows[0][0]["reason"]
        assert len(rows) == 1
        await stream.aclose()
    assert reasons == {"zh": "已被人暂停", "en": "paused by a person", "zh-CN": "已被人暂停"}


async def test_watchers_come_back_at_different_times(site: Site) -> None:
    hub = hub_of(site)
    streams = [hub.watch(Subscription(runs={})) for _ in range(20)]
    times = {(await anext(stream)).split(b"\n")[0] for stream in streams}
    for stream in streams:
        await stream.aclose()
    assert len(times) == 20
    assert all(500 <= int(time.removeprefix(b"retry: ")) < 2_500 for time in times)
