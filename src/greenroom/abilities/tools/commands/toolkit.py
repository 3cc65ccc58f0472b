"""The tools that run commands, all that belong together."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import msgspec

from greenroom.abilities.tools.commands.background import Background, Running
from greenroom.abilities.tools.commands.execute_script import ExecuteScript
from greenroom.abilities.tools.commands.telling import outcome, status
from greenroom.abilities.tools.output.given import given
from greenroom.abilities.tools.output.long import lines_of
from greenroom.abilities.tools.output.paging import LINES, MOST, PARAMETERS, Page, read
from greenroom.core.base.records import Data
from greenroom.core.ports.commands import Commands, Ended
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import SHOWN, Target, ToolCard, ToolExecutor
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World

WAIT: Final = 60
LAST: Final = 60
"""Lines that are shown when none are asked for."""

GONE: Final = (
    "The command {handle!r} is gone: it ended when Greenroom was stopped, with all its processes, and what it printed "
    "was not kept. Begin it again if you need it."
)
HANDLE: Final[Data] = {"type": "string", "description": "As execute_script gave it."}
LOOK: Final = (
    "See what a command in the background has printed, and whether it still runs: its last lines, or those you ask "
    "for. Wait with wait_seconds instead of asking again and again. Not for results that were too long: that is "
    'read_output. Example: {"handle": "coder#12", "wait_seconds": 10}'
)
STOP: Final = (
    "End a command in the background with all its processes, and read what it printed. Not needed at the end of your "
    'work: it ends with the run. Example: {"handle": "coder#12"}'
)


class Look(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which command, what of it, and how long to wait for its end."""

    handle: str
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=WAIT)] = 0
    from_line: Annotated[int, msgspec.Meta(ge=1)] | None = None
    lines: Annotated[int, msgspec.Meta(ge=1, le=MOST)] = LINES
    pattern: str = ""


class Stop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which command."""

    handle: str


class CommandOutput:
    """Pure: looking changes nothing."""

    type: StepType = "tool"
    name: str = "command_output"
    description: str = LOOK

    def __init__(self, background: Background) -> None:
        self._background = background
        wait = {
            "type": "number",
            "minimum": 0,
            "maximum": WAIT,
            "description": "Wait so long for its end; 0 if left out.",
        }
        spec = _spec(self.name, self.description, {"handle": HANDLE, "wait_seconds": wait, **PARAMETERS}, pure=True)
        self.card = ToolCard(spec=spec, group="read", effect="pure")

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing outside."""
        return (Target(kind="tool", value=self.name),)

    def terms(self, _: World, __: Step) -> Terms:
        """Run again freely."""
        return Terms(effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """What it has printed."""
        asked = given(Look, bench.step)
        running = await self._background.find(bench, asked.handle)
        if running is None:
            return Outcome(result={"output": GONE.format(handle=asked.handle)})
        await running.wait(asked.wait_seconds)
        return Outcome(result={"output": await asyncio.to_thread(_told, running, asked)})


class StopCommand:
    """Keyed: what is stopped stays stopped, and whoever stops it again hears that."""

    type: StepType = "tool"
    name: str = "stop_command"
    description: str = STOP

    def __init__(self, background: Background) -> None:
        self._background = background
        spec = _spec(self.name, self.description, {"handle": HANDLE}, pure=False)
        self.card = ToolCard(spec=spec, group="command", effect="keyed", ends_own=True)

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Only what this team has begun."""
        return (Target(kind="tool", value=self.name),)

    def terms(self, _: World, __: Step) -> Terms:
        """May be done again."""
        return Terms(effect="keyed")

    async def run(self, bench: Bench) -> Outcome:
        """End it, and say what it printed."""
        asked = given(Stop, bench.step)
        running = await self._background.find(bench, asked.handle)
        if running is None:
            return Outcome(result={"output": GONE.format(handle=asked.handle)})
        await running.stop()
        ended = running.ended or Ended(how="lost")
        return outcome(ended, running.kept, seconds=running.script.seconds, handle=bench.step.step_id)


def _spec(name: str, description: str, properties: Data, *, pure: bool) -> ToolSpec:
    schema: Data = {
        "type": "object",
        "properties": dict(properties),
        "required": ["handle"],
        "additionalProperties": False,
    }
    return ToolSpec(name=name, description=description, parameters=schema, pure=pure)


def _told(running: Running, asked: Look) -> str:
    text, ended = running.kept.text, running.ended
    first = asked.from_line or (1 if asked.pattern else max(1, lines_of(text) - LAST + 1))
    state = "It still runs." if ended is None else f"It has ended: {status(ended, running.script.seconds)}"
    if not text:
        return f"{state}\nIt has printed nothing."
    page = Page(from_line=first, lines=asked.lines, pattern=asked.pattern)
    return f"{state}\n{read(text, page, SHOWN)}"


def command_tools(commands: Commands, background: Background | None = None) -> tuple[ToolExecutor, ...]:
    """`execute_script`, `command_output` and `stop_command`. Whoever made `commands` closes it when the run ends, and
    who has to end what runs in the `background` before that gives its own."""
    shared = background or Background(commands)
    return (ExecuteScript(commands, shared), CommandOutput(shared), StopCommand(shared))
