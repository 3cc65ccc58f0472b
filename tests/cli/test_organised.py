"""A person's side of an organisation in this process: what is read for it, and whom it says that it waits for."""

import asyncio
import io
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import ClassVar, cast

import pytest

from greenroom.adapters.storage.memory import Memory, MemoryLog
from greenroom.app.context import AppContext
from greenroom.app.conversation.typed import Gone, Nobody
from greenroom.app.kit import Kit
from greenroom.app.organisation.charter import Wish, write_charter
from greenroom.app.organisation.founders import found
from greenroom.app.organisation.input import Looks
from greenroom.app.organisation.people import HumanAgent
from greenroom.app.organisation.words import BASE, KIT
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import Standing
from greenroom.cli.commands import chat
from greenroom.cli.context import Invocation, Stop
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive import editor, lines
from greenroom.cli.interactive import organisation as listening
from greenroom.cli.interactive.inbox import Inbox
from greenroom.cli.interactive.organisation import Listener, running, wait_result
from greenroom.cli.render.output import Console, Output
from greenroom.cli.render.progress import Progress
from greenroom.cli.render.words import Way
from greenroom.cli.setup import Setup
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.log import Held
from greenroom.core.rules.intents import AddParticipants, AddTask, RemoveAgent, SendMessage
from greenroom.core.state.world import World
from tests.app.organisation.office import ANN, BEN, MANAGER, WU, founders, office
from tests.cli.conftest import Type

KITS = {KIT: lambda _: Kit(abilities=Abilities(()))}


def door_of(runtime: Runtime, home: Path) -> Invocation:
    quiet = Progress(Console(file=io.StringIO()))
    out = Output("text", io.StringIO())
    return Invocation(
        setup=Setup(), home=home, out=out, progress=quiet, means=AppContext(), stop=Stop(), opened=runtime
    )


async def test_it_waits_only_for_people() -> None:
    async with office() as house:
        asked = SendMessage(task_id=BASE, receiver=(ANN, WU), message="Tea?", need_reply=True, sender=MANAGER)
        await house.runtime.ask(house.team, AddParticipants(task_id=BASE, agents=(WU,)), asked)
        await house.writes(BEN, "Tea?", need_reply=True)
        way = Way(name="tea", start="start", keys={})
        fate = wait_result(await house.world(), Standing(word="waiting", why=""), (), "en", way)
        assert fate.reasons == ("It waits for answers of: ann (1), ben (1).",)


async def test_nothing_that_is_typed_is_done_for_who_was_let_go(tmp_path: Path) -> None:
    async with office() as house:
        ear = Listener(door_of(house.runtime, tmp_path), house.ben)
        await ear.open()
        room = Inbox(door_of(house.runtime, tmp_path), house.ben, ear, Nobody())
        await house.runtime.ask(house.team, RemoveAgent(agent_id=BEN))
        assert await room.do(Looks(what="notices")) == Exit.USAGE, "it was not heard yet"
        await ear.catch_up()
        for line in ("/who", "/tell ann: Hi"):
            assert await room.do(line) == Exit.USAGE
        assert [one.split(".")[0] for one in room.wrong] == ["You have left tea"] * 3
        await ear.close()


async def test_tasks_that_are_stuck_are_named_in_the_order_in_which_they_were_made() -> None:
    async with office() as house:
        tea = AddTask(name="Tea", intention="Tea.", manager=MANAGER, group=(WU,), driver="manager")
        await house.runtime.ask(house.team, *[tea] * 10)
        way = Way(name="tea", start="start", keys={})
        fate = wait_result(await house.world(), Standing(word="idle", why=""), (), "en", way)
        assert [one.split()[1] for one in fate.reasons] == [f"t{number}" for number in range(2, 12)]


class Watched(MemoryLog):
    """A log that knows how often somebody looked who runs a team."""

    def __init__(self, shared: Memory) -> None:
        super().__init__(shared)
        self.looks: asyncio.Queue[None] = asyncio.Queue()

    async def holder(self, stream: str) -> Held | None:
        """Count it."""
        self.looks.put_nowait(None)
        return await super().holder(stream)


async def test_a_room_in_which_nothing_happens_replays_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Memory()
    log = Watched(shared)
    there, here = Runtime(MemoryLog(shared), kits=KITS), Runtime(log, kits=KITS)
    replayed, world = list[TeamId](), Runtime.world

    async def counted(runtime: Runtime, team: TeamId, at: int | None = None) -> World:
        replayed.append(team)
        return await world(runtime, team, at)

    monkeypatch.setattr(listening, "LOOK", 0.01)
    try:
        team = await found(there, founders())
        await there.start(team)
        cli = door_of(here, tmp_path)
        ear = Listener(cli, HumanAgent(here, team, ANN))
        await ear.open()
        monkeypatch.setattr(Runtime, "world", counted)
        async with running(cli, ear):
            for _ in range(5):
                await asyncio.wait_for(log.looks.get(), 10)
        await ear.close()
        assert replayed == []
    finally:
        await here.close()
        await there.close()


def test_only_a_program_is_given_all_that_was_ever_said(
    tmp_path: Path, greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_charter(tmp_path, Wish(name="tea", people=("ann",), language="en"))

    async def begun() -> None:
        runtime = await Runtime.open(tmp_path / "home", kits=KITS)
        try:
            team = await found(runtime, evolve(founders(), workspace=str(tmp_path)))
            asked = SendMessage(task_id=BASE, receiver=(ANN,), message="Green?", need_reply=True, sender=MANAGER)
            await runtime.ask(team, asked)
        finally:
            await runtime.close()

    asyncio.run(begun())
    whole = json.loads(greenroom("talk", "tea", "--as", "ann", "--inbox", "--output-format", "json").out)
    assert "Green?" in str(whole["conversation_pool"])
    monkeypatch.setattr(HumanAgent, "pool", None)
    looked = greenroom("talk", "tea", "--as", "ann", "--inbox")
    assert (looked.code, "Green?" in looked.out) == (0, True)


class Typist:
    """Somebody at a terminal who looks at what they typed before, and leaves."""

    attended = True
    chooses = True
    remembered: ClassVar[list[str]] = []

    def __init__(self, *given: object) -> None:
        self._before = cast("Callable[[], AsyncIterator[str]] | None", given[3])

    async def write(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> Gone:
        """Look, and leave."""
        if self._before is not None:
            self.remembered.extend([line async for line in self._before()])
        return Gone()

    def stop(self) -> None:
        """Nothing to stop."""


def test_what_was_typed_in_a_chat_stays_there(tmp_path: Path, greenroom: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    async def typed(*_: object, **__: object) -> AsyncIterator[str]:
        yield "Nobody is to know."

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setattr(chat, "typed_before", typed)
    monkeypatch.setattr(lines, "_terminal", lambda *_: sys.stdin)
    monkeypatch.setattr(lines, "_screen", lambda *_: sys.stderr)
    monkeypatch.setattr(editor, "Prompt", Typist)
    write_charter(tmp_path, Wish(name="tea", people=("ann",), language="en"))
    Typist.remembered.clear()
    ended = greenroom("talk", "tea")
    assert (ended.code, Typist.remembered) == (0, []), ended.err
