"""A person's side of an organisation in this process: what is read for it, and whom it says that it waits for."""

import asyncio
import io
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import ClassVar, cast

import pytest

from greenroom.adapters.storage.memory import MemoryLog, MemoryStore
from greenroom.app.context import AppContext
from greenroom.app.conversation.chat_input import EndOfInput, NoPersonInput
from greenroom.app.organisation.charter import NewCharter, write_charter
from greenroom.app.organisation.creation import create_organisation
from greenroom.app.organisation.input import ViewCommand
from greenroom.app.organisation.people import HumanAgent
from greenroom.app.organisation.phrases import BASE_TASK, ORGANISATION_KIT
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import TaskStatus
from greenroom.app.words import ResumeHelp
from greenroom.cli.commands import chat
from greenroom.cli.context import Invocation, SignalStop
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive import editor, lines
from greenroom.cli.interactive import organisation as listening
from greenroom.cli.interactive.inbox import InboxScreen
from greenroom.cli.interactive.organisation import OrganisationListener, build_wait_result, keep_running
from greenroom.cli.render.output import Console, Output
from greenroom.cli.render.progress import Progress
from greenroom.cli.setup import CommandSetup
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.log import LeaseHolder
from greenroom.core.rules.intents import AddParticipants, AddTask, RemoveAgent, SendMessage
from greenroom.core.state.team_state import TeamState
from tests.app.organisation.office import ANN, BEN, MANAGER, WU, founders, office
from tests.cli.conftest import Type

KITS = {ORGANISATION_KIT: lambda _: Capabilities(())}


def door_of(runtime: Runtime, home: Path) -> Invocation:
    quiet = Progress(Console(file=io.StringIO()))
    out = Output("text", io.StringIO())
    return Invocation(
        setup=CommandSetup(), home=home, out=out, progress=quiet, app=AppContext(), stop=SignalStop(), opened=runtime
    )


async def test_it_waits_only_for_people() -> None:
    async with office() as house:
        asked = SendMessage(task_id=BASE_TASK, receiver=(ANN, WU), message="Tea?", need_reply=True, sender=MANAGER)
        await house.runtime.ask(house.team, AddParticipants(task_id=BASE_TASK, agents=(WU,)), asked)
        await house.writes(BEN, "Tea?", need_reply=True)
        way = ResumeHelp(name="tea", start="start", keys={})
        fate = build_wait_result(await house.state(), TaskStatus(state="waiting", reason=""), (), "en", way)
        assert fate.reasons == ("It waits for answers from: ann (1), ben (1).",)


async def test_nothing_that_is_typed_is_done_for_who_was_let_go(tmp_path: Path) -> None:
    async with office() as house:
        ear = OrganisationListener(door_of(house.runtime, tmp_path), house.ben)
        await ear.open()
        room = InboxScreen(door_of(house.runtime, tmp_path), house.ben, ear, NoPersonInput())
        await house.runtime.ask(house.team, RemoveAgent(agent_id=BEN))
        assert await room.do(ViewCommand(what="notices")) == Exit.USAGE, "it was not heard yet"
        await ear.catch_up()
        for line in ("/who", "/tell ann: Hi"):
            assert await room.do(line) == Exit.USAGE
        assert [one.split(".")[0] for one in room.errors] == ["You have left tea"] * 3
        await ear.close()


async def test_tasks_that_are_stuck_are_named_in_the_order_in_which_they_were_made() -> None:
    async with office() as house:
        tea = AddTask(name="Tea", intention="Tea.", manager=MANAGER, group=(WU,), driver="manager")
        await house.runtime.ask(house.team, *[tea] * 10)
        way = ResumeHelp(name="tea", start="start", keys={})
        fate = build_wait_result(await house.state(), TaskStatus(state="idle", reason=""), (), "en", way)
        assert [one.split()[1] for one in fate.reasons] == [f"t{number}" for number in range(2, 12)]


class Watched(MemoryLog):
    """A log that knows how often somebody looked who runs a team."""

    def __init__(self, shared: MemoryStore) -> None:
        super().__init__(shared)
        self.looks: asyncio.Queue[None] = asyncio.Queue()

    async def holder(self, stream: str) -> LeaseHolder | None:
        """Count it."""
        self.looks.put_nowait(None)
        return await super().holder(stream)


async def test_a_room_in_which_nothing_happens_replays_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = MemoryStore()
    log = Watched(shared)
    there, here = Runtime(MemoryLog(shared), capability_factories=KITS), Runtime(log, capability_factories=KITS)
    replayed, state = list[TeamId](), Runtime.state

    async def counted(runtime: Runtime, team: TeamId, at: int | None = None) -> TeamState:
        replayed.append(team)
        return await state(runtime, team, at)

    monkeypatch.setattr(listening, "POLL_INTERVAL_S", 0.01)
    try:
        team = await create_organisation(there, founders())
        await there.start(team)
        cli = door_of(here, tmp_path)
        ear = OrganisationListener(cli, HumanAgent(here, team, ANN))
        await ear.open()
        monkeypatch.setattr(Runtime, "state", counted)
        async with keep_running(cli, ear):
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
    write_charter(tmp_path, NewCharter(name="tea", people=("ann",), language="en"))

    async def begun() -> None:
        runtime = await Runtime.open(tmp_path / "home", capability_factories=KITS)
        try:
            team = await create_organisation(runtime, evolve(founders(), workspace=str(tmp_path)))
            asked = SendMessage(task_id=BASE_TASK, receiver=(ANN,), message="Green?", need_reply=True, sender=MANAGER)
            await runtime.ask(team, asked)
        finally:
            await runtime.close()

    asyncio.run(begun())
    whole = json.loads(greenroom("inbox", "tea", "--as", "ann", "--list", "--output-format", "json").out)
    assert "Green?" in str(whole["conversation_pool"])
    monkeypatch.setattr(HumanAgent, "pool", None)
    looked = greenroom("inbox", "tea", "--as", "ann", "--list")
    assert (looked.code, "Green?" in looked.out) == (0, True)


class Typist:
    """Somebody at a terminal who looks at what they typed before, and leaves."""

    is_attended = True
    can_choose = True
    remembered: ClassVar[list[str]] = []

    def __init__(self, *given: object) -> None:
        self._before = cast("Callable[[], AsyncIterator[str]] | None", given[3])

    async def read_text(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> EndOfInput:
        """Look, and leave."""
        if self._before is not None:
            self.remembered.extend([line async for line in self._before()])
        return EndOfInput()

    def interrupt(self) -> None:
        """Nothing to stop."""


def test_what_was_typed_in_a_chat_stays_there(tmp_path: Path, greenroom: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    async def typed(*_: object, **__: object) -> AsyncIterator[str]:
        yield "Nobody is to know."

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setattr(chat, "list_typed_texts", typed)
    monkeypatch.setattr(lines, "_find_terminal", lambda *_: sys.stdin)
    monkeypatch.setattr(lines, "_find_screen", lambda *_: sys.stderr)
    monkeypatch.setattr(editor, "TerminalPrompt", Typist)
    write_charter(tmp_path, NewCharter(name="tea", people=("ann",), language="en"))
    Typist.remembered.clear()
    ended = greenroom("inbox", "tea")
    assert (ended.code, Typist.remembered) == (0, []), ended.err
