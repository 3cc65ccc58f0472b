"""execute_script, command_output and stop_command: scripts that are run to their end or in the background."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from greenroom.abilities.tools.command_output import Kept, LiveLines, cancelled, heard, outcome, status
from greenroom.abilities.tools.read_output import LINES, FromLine, Lines, Page, Pattern, lines_of, read
from greenroom.abilities.tools.tool import Arguments, CardedTool, fitted, given, make_card, schema_of
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.commands import Begun, Command, CommandEvent, Commands, Ended, Printed
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import SHOWN, Target, ToolExecutor

NAME: Final = "execute_script"
SECONDS: Final = 120
LONGEST: Final = 3600
HOSTS: Final = 8
REASON: Final = 1_000

Interpreter: TypeAlias = Literal["bash", "sh", "python3", "node"]
FLAGS: Final[Mapping[Interpreter, str]] = {"bash": "-c", "sh": "-c", "python3": "-c", "node": "-e"}


class Script(Arguments, frozen=True):
    """What to run, and how."""

    script: Annotated[str, Meta(min_length=1, description="What to run: a script of any length of lines.")]
    interpreter: Annotated[Interpreter, Meta(description="What runs it; bash if left out.")] = "bash"
    cwd: Annotated[str, Meta(description="Folder inside the workspace to start in; its root if left out.")] = "."
    timeout_seconds: (
        Annotated[
            int,
            Meta(
                ge=1, le=LONGEST, description=f"When it is ended; {SECONDS} if left out, {LONGEST} in the background."
            ),
        ]
        | None
    ) = None
    background: Annotated[
        bool,
        Meta(description="Do not wait for its end: for servers and watchers. You get a handle for command_output."),
    ] = False
    hosts: Annotated[
        tuple[str, ...],
        Meta(
            max_length=HOSTS,
            description="Hosts it has to reach over the network; a person may be asked. Names only, no addresses "
            "of pages, no patterns.",
        ),
    ] = ()
    why: Annotated[str, Meta(max_length=REASON, description="With hosts: what for, in one sentence.")] = ""

    @property
    def seconds(self) -> int:
        """How long it may take."""
        return self.timeout_seconds or (LONGEST if self.background else SECONDS)

    @property
    def command(self) -> Command:
        """The command that it is."""
        words = (self.interpreter, FLAGS[self.interpreter], self.script)
        return Command(words=words, folder=self.cwd, seconds=self.seconds, hosts=self.hosts)

    @property
    def line(self) -> str:
        """What a rule about commands is asked about. Only a shell's script is a command line by itself."""
        line = self.script if self.interpreter in ("bash", "sh") else shlex.join(self.command.words)
        return line if self.cwd in ("", ".") else f"cd {shlex.quote(self.cwd)} && {line}"


DESCRIPTION: Final = """\
Run a script in the workspace: tests, linters, type checks, builds, version control.
Nobody can answer it: stdin is empty, there is no pager and no editor, so pass flags like --yes. When it ends, every \
process that it began ends too.
Keep what it prints short: filter it (rg, grep, tail, -q); of long output you see the first and last 30 lines and a \
handle for read_output.
Run static checks once, after all edits of a change, not after each of them.
Not for reading, searching or editing files, which have tools of their own, and not to wait (sleep).
Without the network, unless you name the hosts: {"script": "pip install x", "hosts": ["pypi.org", \
"files.pythonhosted.org"], "why": "The tests need it."}
A program that goes on running (a server, a watcher) needs background=true.
Example: {"script": "pytest -q tests/parser 2>&1 | tail -n 40", "timeout_seconds": 300}"""


AT_ONCE: Final = 16
REMEMBERED: Final = 64
BEGINNING: Final = 3 * 1024 * 1024
"""Characters that are kept of what a command in the background prints first."""


@dataclass(slots=True, eq=False)
class Running:
    """One of them, also after its end."""

    script: Script
    handle: str
    kept: Kept
    ended: Ended | None = None
    task: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """End it, and see it dead."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait((self.task,))


class Background:
    """All of them, by team and handle."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._known: dict[tuple[str, str], Running] = {}

    async def begin(self, bench: Bench, script: Script) -> Outcome:
        """Begin one; its handle is the id of the step that began it."""
        alive = [one.handle for one in self._known.values() if one.ended is None]
        if len(alive) >= AT_ONCE:
            raise WorldFault(f"{len(alive)} commands run in the background. Stop one first: {', '.join(alive)}.")
        running = Running(script, bench.step.step_id, Kept(BEGINNING))
        events = self._commands.run(script.command)
        try:
            begun = await anext(events)
            if isinstance(begun, Begun) and begun.mark is not None:
                await bench.prepare(begun.mark)
        except BaseException:
            await events.aclose()
            raise
        running.task = asyncio.create_task(_read(running, events), name=f"background {running.handle}")
        over = [key for key, one in self._known.items() if one.ended is not None]
        for key in over[: max(0, len(self._known) - REMEMBERED)]:
            del self._known[key]
        self._known[bench.world.team.team_id, running.handle] = running
        told = (
            f'It runs in the background. command_output(handle="{running.handle}") shows what it prints, '
            f'stop_command(handle="{running.handle}") ends it. It ends after {script.seconds} s, or with this run.'
        )
        return Outcome(result={"output": told, "handle": running.handle})

    async def find(self, bench: Bench, handle: str) -> Running | None:
        """The one with this handle; None when it was begun in an earlier life and is gone. A handle is a team's own."""
        found = self._known.get((bench.world.team.team_id, handle))
        if found is None and not any(
            step.step_id == handle and "handle" in (step.result or {}) and step.work.executor == NAME
            for step in await bench.history()
        ):
            raise ModelFault(
                f"No command {handle!r} was begun in the background here. execute_script with background=true gives a "
                "handle: copy it from there."
            )
        return found

    async def quiet(self) -> list[str]:
        """End all that still run, and see them dead; returns their handles."""
        alive = [one for one in self._known.values() if one.ended is None]
        await asyncio.gather(*(one.stop() for one in alive))
        return [one.handle for one in alive]


async def _read(running: Running, events: AsyncGenerator[CommandEvent, None]) -> None:
    """Take what it prints, until it ends or is stopped."""
    try:
        async for event in events:
            if isinstance(event, Printed):
                running.kept.add(event.text, event.missing)
            elif isinstance(event, Ended):
                running.ended = event
    finally:
        await events.aclose()
        running.kept.end()
        running.ended = running.ended or Ended(how="cancelled")


class ExecuteScript(CardedTool):
    """Effectful: nobody knows what a script does, so it is run at most once."""

    # It has its own limit of time, so the card has none.
    card = make_card(NAME, DESCRIPTION, schema_of(Script), group="command", effect="effectful")

    def __init__(self, commands: Commands, background: Background) -> None:
        self._commands = commands
        self._background = background

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """The command line, and the hosts that it wants to reach."""
        try:
            script = fitted(Script, arguments, self.name)
        except ModelFault:
            return (Target(kind="tool", value=self.name),)
        hosts = dict.fromkeys(one.lower() for one in script.hosts)
        return (Target(kind="command", value=script.line), *(Target(kind="host", value=one) for one in hosts))

    async def run(self, bench: Bench) -> Outcome:
        """Run it to its end, or begin it in the background."""
        script = given(Script, bench.step)
        if script.background:
            return await self._background.begin(bench, script)
        kept, handle = Kept(), bench.step.step_id
        bench.leave(lambda: cancelled(kept, handle))
        ended = await heard(self._commands.run(script.command), bench.prepare, kept, LiveLines(bench.show))
        return outcome(ended, kept, seconds=script.seconds, handle=handle)


WAIT: Final = 60
LAST: Final = 60
"""Lines that are shown when none are asked for."""

GONE: Final = (
    "The command {handle!r} is gone: it ended when Greenroom was stopped, with all its processes, and what it printed "
    "was not kept. Begin it again if you need it."
)


class Look(Arguments, frozen=True):
    """Which command, what of it, and how long to wait for its end."""

    handle: Annotated[str, Meta(description="As execute_script gave it.")]
    wait_seconds: Annotated[float, Meta(ge=0, le=WAIT, description="Wait so long for its end; 0 if left out.")] = 0
    from_line: FromLine | None = None
    lines: Lines = LINES
    pattern: Pattern = ""


class Stop(Arguments, frozen=True):
    """Which command."""

    handle: Annotated[str, Meta(description="As execute_script gave it.")]


class CommandOutput(CardedTool):
    """Pure: looking changes nothing."""

    card = make_card(
        "command_output",
        "See what a command in the background has printed, and whether it still runs: its last lines, or those "
        "you ask for. Wait with wait_seconds instead of asking again and again. Not for results that were too "
        'long: that is read_output. Example: {"handle": "coder#12", "wait_seconds": 10}',
        schema_of(Look),
        group="read",
        pure=True,
    )

    def __init__(self, background: Background) -> None:
        self._background = background

    async def run(self, bench: Bench) -> Outcome:
        """What it has printed."""
        asked = given(Look, bench.step)
        running = await self._background.find(bench, asked.handle)
        if running is None:
            return Outcome(result={"output": GONE.format(handle=asked.handle)})
        if running.task is not None and asked.wait_seconds > 0:
            await asyncio.wait((running.task,), timeout=asked.wait_seconds)
        return Outcome(result={"output": await asyncio.to_thread(_told, running, asked)})


class StopCommand(CardedTool):
    """Keyed: what is stopped stays stopped, and whoever stops it again hears that. Only what this team has begun."""

    card = make_card(
        "stop_command",
        "End a command in the background with all its processes, and read what it printed. Not needed at the "
        'end of your work: it ends with the run. Example: {"handle": "coder#12"}',
        schema_of(Stop),
        group="command",
        effect="keyed",
        ends_own=True,
    )

    def __init__(self, background: Background) -> None:
        self._background = background

    async def run(self, bench: Bench) -> Outcome:
        """End it, and say what it printed."""
        asked = given(Stop, bench.step)
        running = await self._background.find(bench, asked.handle)
        if running is None:
            return Outcome(result={"output": GONE.format(handle=asked.handle)})
        await running.stop()
        ended = running.ended or Ended(how="lost")
        return outcome(ended, running.kept, seconds=running.script.seconds, handle=bench.step.step_id)


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
