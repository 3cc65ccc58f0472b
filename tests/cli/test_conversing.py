"""The loop of a chat with somebody who is no terminal: what is asked, what is decided, when it is left."""

import asyncio
import io
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.context import AppContext
from greenroom.app.conversation.capability_names import CHAT
from greenroom.app.conversation.chat import Chat
from greenroom.app.conversation.chat_input import (
    EndOfInput,
    InputEvent,
    InterruptInput,
    PersonInput,
    TextInput,
    handle_command,
    handle_shell,
)
from greenroom.app.run_plan import RunPlan
from greenroom.app.runtime import Runtime
from greenroom.app.settings.schema import LimitSettings
from greenroom.cli.context import Invocation, SignalStop
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive import chat as conversing
from greenroom.cli.interactive.chat import ChatScreen
from greenroom.cli.render.output import Console, Output
from greenroom.cli.render.progress import Progress
from greenroom.cli.setup import CommandSetup
from greenroom.core.ports.executor import Capabilities, Outcome
from greenroom.core.ports.model import ToolCall, ToolSpec
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import StepTerms
from tests.app.conversation.voice import HELD, Reply, Voice, cast
from tests.app.team import FakeTool

LOOK = ToolSpec(name="look", description="Look.", parameters={"type": "object"})


def looking() -> FakeTool:
    """Return a tool that a person is asked about."""
    asks = StepTerms(effect="effectful", verdict="ask", question="May it look?", digest="look")
    return FakeTool("look", lambda _: Outcome(result={"output": "\n  A tree.\nA house."}), lambda _: asks)


class Held:
    """A conversation, its cli and its voice."""

    def __init__(self, runtime: Runtime, voice: Voice, home: Path) -> None:
        self.voice = voice
        self.out = Output("text", sys.stdout)
        quiet = Progress(Console(file=io.StringIO()))
        self.stop = SignalStop()
        self.team_requests = list[str]()
        self.cli = Invocation(
            setup=CommandSetup(),
            home=home,
            out=self.out,
            progress=quiet,
            app=AppContext(),
            stop=self.stop,
            opened=runtime,
        )

    def with_(self, person: PersonInput) -> ChatScreen:
        """The conversation with this person."""
        who = cast(AgentSpec(name="assistant", tools=("look",)))
        begun = RunPlan(participants=who, caps=LimitSettings(cost=None), language="", is_replayed=False)
        chat = Chat(self.cli.runtime, agent=who.first)
        return ChatScreen(self.cli, chat, person, (handle_command, handle_shell), begun, start_team=self.run_team)

    async def run_team(self, _: Invocation, request: str) -> tuple[Exit, str]:
        """Run a team that never ends."""
        self.team_requests.append(request)
        self.stop.handle_signal(signal.SIGINT)
        await asyncio.Event().wait()
        return Exit.DONE, ""


@asynccontextmanager
async def held(home: Path, *replies: Reply) -> AsyncIterator[Held]:
    voice = Voice(*replies)
    kit = Capabilities([*build_conversation_skills(voice, [LOOK]), looking()])
    runtime = Runtime(MemoryLog(), capability_factories={CHAT: lambda _: kit})
    try:
        yield Held(runtime, voice, home)
    finally:
        await runtime.close()


def typed(*lines: str) -> Callable[[str], str]:
    """Somebody who types these lines and goes."""
    left: Iterator[str] = iter(lines)

    def write(tip: str) -> str:
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    return write


class Callables:
    """A person behind two functions."""

    is_attended = True
    can_choose = False

    def __init__(self, write: Callable[[str], str], confirm: Callable[[str, bool], bool]) -> None:
        self._write, self._confirm = write, confirm

    async def read_text(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> InputEvent:
        try:
            return TextInput(text=await asyncio.to_thread(self._write, tip))
        except EOFError:
            return EndOfInput()

    async def confirm(self, tip: str, *, default: bool) -> bool:
        return await asyncio.to_thread(self._confirm, tip, default)

    async def read_line(self, tip: str) -> str | None:
        return self._write(tip)

    def interrupt(self) -> None:
        """A function cannot be stopped."""


@pytest.mark.req("AG-141", "AG-143")
async def test_functions_take_the_place_of_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with held(tmp_path, "Hello.") as talk:
        person = Callables(typed("Hi.", "", "/cost"), lambda tip, default: default)
        assert await talk.with_(person).run() == Exit.DONE
    told = capsys.readouterr()
    assert told.out == "Hello.\n"
    assert "no limit" in told.err


@pytest.mark.req("AG-174")
@pytest.mark.parametrize(("yes", "answer"), [(True, "A tree."), (False, "denied")])
async def test_what_an_agent_may_do_is_asked_of_whoever_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], yes: bool, answer: str
) -> None:
    asked: list[tuple[str, bool]] = []

    def confirm(tip: str, default: bool) -> bool:
        asked.append((tip, default))
        return yes

    async with held(tmp_path, ToolCall(call_id="c1", name="look", arguments={}), "I see.") as talk:
        assert await talk.with_(Callables(typed("Look."), confirm)).run() == Exit.DONE
        assert asked == [("May it look?", False)]
        assert answer in talk.voice.heard[-1].lower() or answer in talk.voice.heard[-1]
    told = capsys.readouterr()
    assert told.out == "I see.\n"
    assert ("· look → A tree." in told.err) is yes, "a call is one line, with the first line of what came of it"
    assert ("✗ look → " in told.err) is not yes


async def test_nobody_there_leaves_a_question_open_and_says_how_to_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    person = Callables(typed("Look."), lambda tip, default: default)
    person.is_attended = False
    async with held(tmp_path, ToolCall(call_id="c1", name="look", arguments={})) as talk:
        assert await talk.with_(person).run() == Exit.WAITING
    assert "greenroom answer " in capsys.readouterr().err


class Pressing(Callables):
    """A person who says something once and then only presses Ctrl-C."""

    can_choose = True

    def __init__(self, *reads: InputEvent) -> None:
        self._reads = iter(reads)
        self.asked = 0

    async def read_text(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> InputEvent:
        self.asked += 1
        return next(self._reads)


async def pressed(talk: Held, person: PersonInput, times: int) -> Exit:
    """Hold the chat, and press Ctrl-C while the agent speaks."""
    holding = asyncio.create_task(talk.with_(person).run())
    await talk.voice.speaks.wait()
    for _ in range(times):
        talk.stop.handle_signal(signal.SIGINT)
    return await holding


async def test_ctrl_c_twice_while_it_speaks_leaves(tmp_path: Path) -> None:
    async with held(tmp_path, HELD) as talk:
        person = Pressing(TextInput(text="Count."))
        assert await pressed(talk, person, 2) == Exit.INTERRUPTED
        assert person.asked == 1, "no prompt comes in between"


@pytest.mark.parametrize(("soon", "asked"), [(1000.0, 2), (-1.0, 3)])
async def test_ctrl_c_at_the_prompt_leaves_at_once_only_soon_after_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, soon: float, asked: int
) -> None:
    monkeypatch.setattr(conversing, "DOUBLE_INTERRUPT_S", soon)
    async with held(tmp_path, HELD) as talk:
        person = Pressing(TextInput(text="Count."), InterruptInput(), InterruptInput())
        assert await pressed(talk, person, 1) == Exit.INTERRUPTED
        assert person.asked == asked


async def test_ctrl_c_stops_a_team_and_the_chat_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with held(tmp_path, "Hello.") as talk:
        person = Callables(typed("/team add it", "Hi."), lambda tip, default: default)
        assert await talk.with_(person).run() == Exit.DONE
        assert talk.team_requests == ["add it"]
    assert capsys.readouterr().out == "Hello.\n"


async def test_a_chat_that_is_stopped_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with held(tmp_path, HELD) as talk:
        holding = asyncio.create_task(talk.with_(Pressing(TextInput(text="Count."))).run())
        await talk.voice.speaks.wait()
        holding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holding
    assert "Stopped. Continue with: greenroom chat --resume " in capsys.readouterr().err
