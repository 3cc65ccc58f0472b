"""Progress on stderr: live rows on a terminal, plain lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, ParamSpec, TextIO

from rich.console import RenderableType
from rich.live import Live as LiveArea
from rich.text import Text

from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.app.messages import translate
from greenroom.cli.exit_codes import Exit
from greenroom.cli.render.output import Console, Output
from greenroom.cli.render.team import EventLine, TeamHistory, colour, is_organisation, render_team
from greenroom.cli.setup import CommandSetup
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import LiveEvent
from greenroom.core.ports.model import Failed, Retried
from greenroom.core.state.step import Step

FRAMES_PER_SECOND: Final = 8  # frames per second
AGENT_WIDTH: Final = 15  # columns of an agent's name in the lines of a team run


class LiveDisplay:
    """A live area drawn in the thread that prints lines: two threads would overwrite each other."""

    def __init__(self, console: Console, idle_s: float = 0.0) -> None:
        """`idle_s` is how much longer a frame stays if nothing changes."""
        self._console = console
        self._idle_s = idle_s
        self._changed = asyncio.Event()
        self._live: LiveArea | None = None
        self._ticker: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._live is not None

    def begin(self, picture: Callable[[], RenderableType]) -> None:
        # Tool output is printed above the live area, like every other line.
        self._live = LiveArea(console=self._console, get_renderable=picture, auto_refresh=False, transient=True)
        self._live.start()
        self._ticker = asyncio.get_running_loop().create_task(self._tick(self._live))

    def end(self) -> None:
        if self._live is not None and self._ticker is not None:
            self._ticker.cancel()
            self._live.stop()
            self._live = None

    def refresh_soon(self) -> None:
        """Draw a change before the idle time is over. Changes that follow each other closely are drawn together."""
        self._changed.set()

    async def _tick(self, live: LiveArea) -> None:
        while True:
            self._changed.clear()
            live.refresh()
            await asyncio.sleep(1 / FRAMES_PER_SECOND)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self._idle_s)


P = ParamSpec("P")
MARK_STYLES: Final = {
    "✓": "green",
    "✗": "red",
    "?": "yellow",
    "!": "yellow",
    "→": "cyan",
    "◆": "bold blue",
    "✎": "magenta",
}
HIDDEN_EVENTS: Final = ("NotePosted", "OwnerChanged")
"""Events of an organisation that are not shown: notes between agents, and which process runs it."""


class Progress:
    """Progress on stderr. This base class prints only trouble, as with `--quiet`.

    `is_listening` says that a person can type.
    """

    def __init__(self, console: Console) -> None:
        self.is_listening = False
        self._console = console
        self._trouble: str | None = None

    def begin(self, history: TeamHistory) -> None:
        """Start showing a run; `history` has its state."""

    def line(self, history: TeamHistory, line: EventLine) -> None:
        """Show one more event."""

    def piece(self, step: Step, event: LiveEvent) -> None:
        """Show a piece of a reply or of tool output. A missing recording is reported only here."""
        if isinstance(event, Failed) and event.said and event.said not in event.why:
            self._console.print(Text(event.said), soft_wrap=True)

    def begin_step(self, step: Step) -> None:
        """Show that a step started here."""

    def end_step(self, step: Step) -> None:
        """Show that a step ended here."""

    def note(self, text: str, *, style: str = "") -> None:
        """Print a message of the command line."""

    def trouble(self, text: str | None) -> None:
        """Show an outside problem, or with None that it is over. Trouble is never hidden."""
        if text and text != self._trouble:
            self._console.print(Text(text, style="bold red"), soft_wrap=True)
        self._trouble = text

    def end(self) -> None:
        """Stop showing the run."""


class LineProgress(Progress):
    """A line per event worth telling; with `everything` a line per event."""

    def __init__(self, console: Console, *, everything: bool = False) -> None:
        super().__init__(console)
        self._shows_everything = everything

    def line(self, history: TeamHistory, line: EventLine) -> None:
        is_hidden = line.type in HIDDEN_EVENTS and is_organisation(history.state)
        if self._shows_everything or (line.summary.story and not is_hidden):
            when = time.strftime("%H:%M:%S  ", time.localtime(line.at / 1000))
            self._print_line(event_text(when, history, line))

    def _print_line(self, text: Text) -> None:
        """Print a line. A terminal cuts it."""
        cut = self._console.is_terminal
        self._console.print(text, no_wrap=cut or None, overflow="ellipsis" if cut else None, soft_wrap=not cut)

    def piece(self, step: Step, event: LiveEvent) -> None:
        """Show a piece, and that a model is called again."""
        super().piece(step, event)
        if isinstance(event, Retried):
            self.note(describe_retry(event), style="yellow")

    def note(self, text: str, *, style: str = "") -> None:
        """Print a message without wrapping: it may be a command to copy."""
        self._console.print(Text(text, style=style), soft_wrap=True)

    def trouble(self, text: str | None) -> None:
        """Print that the trouble started or is over."""
        if self._trouble and not text:
            self.note(translate("conversation.resolved"), style="green")
        super().trouble(text)


class RowProgress(LineProgress):
    """Lines above a live table with a row per agent, which is removed at the end of the run."""

    def __init__(self, console: Console, *, everything: bool = False) -> None:
        super().__init__(console, everything=everything)
        self._live_display = LiveDisplay(self._console)

    def begin(self, history: TeamHistory) -> None:
        self._live_display.begin(lambda: render_team(history, self._trouble))

    def end(self) -> None:
        self._live_display.end()


def describe_retry(event: Retried) -> str:
    """Describe why and when a model is called again."""
    why = event.failed.why.rstrip(".")
    if event.model:
        return translate("conversation.asking_other", why=why, model=event.model)
    if event.wait < 1:
        return translate("conversation.retrying", why=why)
    return translate("conversation.retrying_later", why=why, seconds=event.wait)


def event_text(before: str, history: TeamHistory, line: EventLine, *, with_type: bool = False) -> Text:
    """Render an event as a line: `before`, its agent, and its text.

    With `with_type`, or if the event has no text, its type is named. Minor events are dim.
    """
    summary, text = line.summary, Text(before, style="dim")
    if with_type:
        text.append(f"{line.type:<18} ", style="not dim" if summary.story else "")
    width = AGENT_WIDTH if history.state.team.kit == TEAM_RUN else 6
    text.append(f"{summary.who:<{width}} ", style=f"not dim {colour(history.state, summary.who)}".strip())
    text.append(f"[{line.subtask}] " if with_type and line.subtask else "")
    text.append(f"{summary.mark or ' '} ", style=f"not dim {MARK_STYLES.get(summary.mark, '')}".strip())
    what = f"{line.type} {summary.text}" if summary.plain and not with_type else summary.text
    return text.append(what, style="" if (not summary.story if with_type else summary.plain) else "not dim")


class LogLines(logging.Handler):
    """Prints log records among the progress, with tracebacks only for `-v`."""

    def __init__(self, console: Console, *, tracebacks: bool) -> None:
        super().__init__()
        self._console = console
        self._tracebacks = tracebacks

    def emit(self, record: logging.LogRecord) -> None:
        text = f"{record.levelname.lower()}: {record.getMessage()}"
        if record.exc_info and self._tracebacks:
            text = f"{text}\n{logging.Formatter().formatException(record.exc_info)}"
        self._console.print(Text(text, style="dim"), soft_wrap=True)


def progress_for(setup: CommandSetup) -> Progress:
    """Return the progress for this terminal and these options. Also sets up logging."""
    console = Console(stderr=True, highlight=False)
    level = logging.DEBUG if setup.verbose else logging.ERROR if setup.quiet else logging.WARNING
    logger = logging.getLogger("greenroom")
    logger.handlers = [LogLines(console, tracebacks=setup.verbose)]
    logger.setLevel(level)
    logger.propagate = False
    if setup.quiet or (setup.output_format == "stream-json" and not setup.verbose):
        return Progress(console)
    is_shared = setup.output_format == "stream-json" and sys.stdout.isatty()  # events go to the same terminal
    is_plain = not console.is_terminal or console.is_dumb_terminal or os.environ.get("CI") or is_shared
    return (
        LineProgress(console, everything=setup.verbose) if is_plain else RowProgress(console, everything=setup.verbose)
    )


class NestedOutput(Output):
    """The output of a command that runs inside another: its text becomes progress, and its result is kept.

    With `stream`, the answer and patches are written there.
    """

    def __init__(self, progress: Progress, stream: TextIO | None = None) -> None:
        super().__init__("text", stream or io.StringIO())
        self.fields: Data = {}
        self._progress = progress

    def show(self, *what: RenderableType) -> None:
        """Print as progress."""
        for text in what:
            self._progress.note(str(text))

    def result(self, status: str, code: Exit, /, **fields: object) -> Exit:
        """Keep the result: the outer command has its own."""
        self.fields = {"status": status, **fields}
        return code


class DeferredDisplay:
    """Defers output while a person types, and shows it in order afterwards."""

    def __init__(self) -> None:
        self._kept: list[Callable[[], None]] = []
        self._is_held = True

    def hold(self) -> None:
        """Defer output from now on."""
        self._is_held = True

    def release(self) -> None:
        """Show the deferred output and stop deferring."""
        self._is_held = False
        kept, self._kept = self._kept, []
        for show in kept:
            show()

    def defer(self, show: Callable[P, None]) -> Callable[P, None]:
        """Wrap a function so that its calls are deferred while a person types."""

        def show_or_keep(*given: P.args, **named: P.kwargs) -> None:
            if self._is_held:
                self._kept.append(lambda: show(*given, **named))
            else:
                show(*given, **named)

        return show_or_keep
