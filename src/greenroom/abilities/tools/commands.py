"""execute_script, command_output and stop_command: run scripts to their end or in the background."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from greenroom.abilities.tools.command_output import (
    LiveLines,
    OutputBuffer,
    build_cancelled_outcome,
    build_outcome,
    collect_output,
    describe_end,
)
from greenroom.abilities.tools.read_output import (
    DEFAULT_LINES,
    FromLine,
    Lines,
    OutputPage,
    Pattern,
    count_lines,
    read_page,
)
from greenroom.abilities.tools.tool import (
    Arguments,
    CardedTool,
    build_schema,
    convert_arguments,
    make_card,
    read_arguments,
)
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.commands import (
    Command,
    CommandEnded,
    CommandEvent,
    CommandPrinted,
    CommandRunner,
    CommandStarted,
)
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.tool import MAX_RESULT_BYTES, Target, ToolExecutor

NAME: Final = "execute_script"
DEFAULT_TIMEOUT_S: Final = 120
MAX_TIMEOUT_S: Final = 3600
MAX_HOSTS: Final = 8
MAX_REASON_CHARS: Final = 1_000

Interpreter: TypeAlias = Literal["bash", "sh", "python3", "node"]
SCRIPT_FLAGS: Final[Mapping[Interpreter, str]] = {"bash": "-c", "sh": "-c", "python3": "-c", "node": "-e"}


class ScriptArguments(Arguments, frozen=True):
    script: Annotated[str, Meta(min_length=1, description="What to run: a script of any length of lines.")]
    interpreter: Annotated[Interpreter, Meta(description="What runs it; bash if left out.")] = "bash"
    cwd: Annotated[str, Meta(description="Folder inside the workspace to start in; its root if left out.")] = "."
    timeout_seconds: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MAX_TIMEOUT_S,
                description=f"When it is ended; {DEFAULT_TIMEOUT_S} if left out, {MAX_TIMEOUT_S} in the background.",
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
            max_length=MAX_HOSTS,
            description="Hosts it has to reach over the network; a person may be asked. Names only, no addresses "
            "of pages, no patterns.",
        ),
    ] = ()
    why: Annotated[str, Meta(max_length=MAX_REASON_CHARS, description="With hosts: what for, in one sentence.")] = ""

    @property
    def seconds(self) -> int:
        """The timeout in seconds."""
        return self.timeout_seconds or (MAX_TIMEOUT_S if self.background else DEFAULT_TIMEOUT_S)

    @property
    def command(self) -> Command:
        """The command to run."""
        words = (self.interpreter, SCRIPT_FLAGS[self.interpreter], self.script)
        return Command(words=words, folder=self.cwd, seconds=self.seconds, hosts=self.hosts)

    @property
    def line(self) -> str:
        """The command line that permission rules match. Only a shell script is a command line itself."""
        line = self.script if self.interpreter in ("bash", "sh") else shlex.join(self.command.words)
        return line if self.cwd in ("", ".") else f"cd {shlex.quote(self.cwd)} && {line}"


DESCRIPTION: Final = """\
Run a script in the workspace: tests, linters, type checks, builds, version control.
It cannot ask anything: stdin is empty, there is no pager and no editor, so pass flags like --yes. When it ends, every \
process that it began ends too.
Keep what it prints short: filter it (rg, grep, tail, -q); of long output you see the first and last 30 lines and a \
handle for read_output.
Run static checks once, after all edits of a change, not after each of them.
Not for reading, searching or editing files, which have tools of their own, and not to wait (sleep).
Without the network, unless you name the hosts: {"script": "pip install x", "hosts": ["pypi.org", \
"files.pythonhosted.org"], "why": "The tests need it."}
A program that goes on running (a server, a watcher) needs background=true.
Example: {"script": "pytest -q tests/parser 2>&1 | tail -n 40", "timeout_seconds": 300}"""


MAX_BACKGROUND_COMMANDS: Final = 16
MAX_REMEMBERED_COMMANDS: Final = 64
MAX_BACKGROUND_HEAD_CHARS: Final = 3 * 1024 * 1024
"""Characters that are kept of the first output of a background command."""


@dataclass(slots=True, eq=False)
class BackgroundCommand:
    """A background command, running or ended."""

    script: ScriptArguments
    handle: str
    buffer: OutputBuffer
    ended: CommandEnded | None = None
    task: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """Stop it and wait until it is dead."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait((self.task,))


class BackgroundCommands:
    """All background commands, by team and handle."""

    def __init__(self, commands: CommandRunner) -> None:
        self._commands = commands
        self._by_handle: dict[tuple[str, str], BackgroundCommand] = {}

    async def begin(self, context: StepContext, script: ScriptArguments) -> Outcome:
        """Start a command. Its handle is the id of the step that started it."""
        alive = [command.handle for command in self._by_handle.values() if command.ended is None]
        if len(alive) >= MAX_BACKGROUND_COMMANDS:
            raise WorldFault(f"{len(alive)} commands run in the background. Stop one first: {', '.join(alive)}.")
        running = BackgroundCommand(script, context.step.step_id, OutputBuffer(MAX_BACKGROUND_HEAD_CHARS))
        events = self._commands.run(script.command)
        try:
            begun = await anext(events)
            if isinstance(begun, CommandStarted) and begun.mark is not None:
                await context.prepare(begun.mark)
        except BaseException:
            await events.aclose()
            raise
        running.task = asyncio.create_task(_collect_events(running, events), name=f"background {running.handle}")
        over = [key for key, command in self._by_handle.items() if command.ended is not None]
        for key in over[: max(0, len(self._by_handle) - MAX_REMEMBERED_COMMANDS)]:
            del self._by_handle[key]
        self._by_handle[context.state.team.team_id, running.handle] = running
        told = (
            f'It runs in the background. command_output(handle="{running.handle}") shows what it prints, '
            f'stop_command(handle="{running.handle}") ends it. It ends after {script.seconds} s, or with this run.'
        )
        return Outcome(result={"output": told, "handle": running.handle})

    async def find(self, context: StepContext, handle: str) -> BackgroundCommand | None:
        """Return the command with this handle. Return None if it was started before a restart and is gone. Raise
        `ModelFault` if this team has no such handle."""
        found = self._by_handle.get((context.state.team.team_id, handle))
        if found is None and not any(
            step.step_id == handle and "handle" in (step.result or {}) and step.work.executor == NAME
            for step in await context.history()
        ):
            raise ModelFault(
                f"No command {handle!r} was begun in the background here. execute_script with background=true gives a "
                "handle: copy it from there."
            )
        return found

    async def stop_all(self) -> list[str]:
        """Stop all running commands, wait until they are dead, and return their handles."""
        alive = [command for command in self._by_handle.values() if command.ended is None]
        await asyncio.gather(*(command.stop() for command in alive))
        return [command.handle for command in alive]


async def _collect_events(running: BackgroundCommand, events: AsyncGenerator[CommandEvent, None]) -> None:
    """Collect the output until the command ends or is stopped."""
    try:
        async for event in events:
            if isinstance(event, CommandPrinted):
                running.buffer.add(event.text, event.missing)
            elif isinstance(event, CommandEnded):
                running.ended = event
    finally:
        await events.aclose()
        running.buffer.end()
        running.ended = running.ended or CommandEnded(how="cancelled")


class ExecuteScriptTool(CardedTool):
    """Runs a script. Effectful: the effects of a script are unknown, so it runs at most once."""

    # A script has its own timeout, so the card has none.
    card = make_card(NAME, DESCRIPTION, build_schema(ScriptArguments), group="command", effect="effectful")

    def __init__(self, commands: CommandRunner, background: BackgroundCommands) -> None:
        self._commands = commands
        self._background = background

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """Return the command line, and the hosts that it asks for."""
        try:
            script = convert_arguments(ScriptArguments, arguments, self.name)
        except ModelFault:
            return (Target(kind="tool", value=self.name),)
        hosts = dict.fromkeys(host.lower() for host in script.hosts)
        return (Target(kind="command", value=script.line), *(Target(kind="host", value=host) for host in hosts))

    async def run(self, context: StepContext) -> Outcome:
        """Run the script to its end, or start it in the background."""
        script = read_arguments(ScriptArguments, context.step)
        if script.background:
            return await self._background.begin(context, script)
        buffer, handle = OutputBuffer(), context.step.step_id
        context.set_partial_outcome(lambda: build_cancelled_outcome(buffer, handle))
        ended = await collect_output(
            self._commands.run(script.command), context.prepare, buffer, LiveLines(context.show)
        )
        return build_outcome(ended, buffer, seconds=script.seconds, handle=handle)


MAX_WAIT_S: Final = 60
DEFAULT_LAST_LINES: Final = 60
"""Number of last lines that are shown by default."""

GONE_MESSAGE: Final = (
    "The command {handle!r} is gone: it ended when Greenroom was stopped, with all its processes, and what it printed "
    "was not kept. Begin it again if you need it."
)


class CommandOutputArguments(Arguments, frozen=True):
    handle: Annotated[str, Meta(description="As execute_script gave it.")]
    wait_seconds: Annotated[
        float, Meta(ge=0, le=MAX_WAIT_S, description="Wait so long for its end; 0 if left out.")
    ] = 0
    from_line: FromLine | None = None
    lines: Lines = DEFAULT_LINES
    pattern: Pattern = ""


class StopCommandArguments(Arguments, frozen=True):
    handle: Annotated[str, Meta(description="As execute_script gave it.")]


class CommandOutputTool(CardedTool):
    """Shows the output of a background command. Pure."""

    card = make_card(
        "command_output",
        "See what a command in the background has printed, and whether it still runs: its last lines, or those "
        "you ask for. Wait with wait_seconds instead of asking again and again. Not for results that were too "
        'long: that is read_output. Example: {"handle": "coder#12", "wait_seconds": 10}',
        build_schema(CommandOutputArguments),
        group="read",
        pure=True,
    )

    def __init__(self, background: BackgroundCommands) -> None:
        self._background = background

    async def run(self, context: StepContext) -> Outcome:
        """Return the output so far."""
        asked = read_arguments(CommandOutputArguments, context.step)
        running = await self._background.find(context, asked.handle)
        if running is None:
            return Outcome(result={"output": GONE_MESSAGE.format(handle=asked.handle)})
        if running.task is not None and asked.wait_seconds > 0:
            await asyncio.wait((running.task,), timeout=asked.wait_seconds)
        return Outcome(result={"output": await asyncio.to_thread(_render_output, running, asked)})


class StopCommandTool(CardedTool):
    """Stops a background command of this team. Keyed: stopping it again only reports that it is stopped."""

    card = make_card(
        "stop_command",
        "End a command in the background with all its processes, and read what it printed. Not needed at the "
        'end of your work: it ends with the run. Example: {"handle": "coder#12"}',
        build_schema(StopCommandArguments),
        group="command",
        effect="keyed",
        ends_own=True,
    )

    def __init__(self, background: BackgroundCommands) -> None:
        self._background = background

    async def run(self, context: StepContext) -> Outcome:
        """Stop the command and return its output."""
        asked = read_arguments(StopCommandArguments, context.step)
        running = await self._background.find(context, asked.handle)
        if running is None:
            return Outcome(result={"output": GONE_MESSAGE.format(handle=asked.handle)})
        await running.stop()
        ended = running.ended or CommandEnded(how="lost")
        return build_outcome(ended, running.buffer, seconds=running.script.seconds, handle=context.step.step_id)


def _render_output(running: BackgroundCommand, asked: CommandOutputArguments) -> str:
    text, ended = running.buffer.text, running.ended
    first = asked.from_line or (1 if asked.pattern else max(1, count_lines(text) - DEFAULT_LAST_LINES + 1))
    state = "It still runs." if ended is None else f"It has ended: {describe_end(ended, running.script.seconds)}"
    if not text:
        return f"{state}\nIt has printed nothing."
    page = OutputPage(from_line=first, lines=asked.lines, pattern=asked.pattern)
    return f"{state}\n{read_page(text, page, MAX_RESULT_BYTES)}"


def build_command_tools(
    commands: CommandRunner, background: BackgroundCommands | None = None
) -> tuple[ToolExecutor, ...]:
    """Build `execute_script`, `command_output` and `stop_command`.

    The caller closes `commands` when the run ends. Pass `background` to stop background commands before that.
    """
    shared = background or BackgroundCommands(commands)
    return (ExecuteScriptTool(commands, shared), CommandOutputTool(shared), StopCommandTool(shared))
