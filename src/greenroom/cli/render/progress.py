"""Progress, on stderr: live rows on a terminal, plain lines elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Final, ParamSpec

from rich.console import RenderableType
from rich.live import Live as LiveArea
from rich.text import Text

from greenroom.cli.render.output import Console
from greenroom.cli.render.team import Line, TeamHistory, colour, is_organisation, picture
from greenroom.cli.setup import Setup
from greenroom.core.ports.executor import Live
from greenroom.core.ports.model import Failed, Retried
from greenroom.core.state.step import Step

FRAMES: Final = 8  # pictures in a second


class Moving:
    """Draws in the thread that prints the lines: two threads would draw over each other."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: LiveArea | None = None
        self._ticker: asyncio.Task[None] | None = None

    @property
    def on(self) -> bool:
        return self._live is not None

    def begin(self, picture: Callable[[], RenderableType]) -> None:
        # What a tool prints meanwhile stands above it, like every other line.
        self._live = LiveArea(console=self._console, get_renderable=picture, auto_refresh=False, transient=True)
        self._live.start()
        self._ticker = asyncio.get_running_loop().create_task(self._tick(self._live))

    def end(self) -> None:
        if self._live is not None and self._ticker is not None:
            self._ticker.cancel()
            self._live.stop()
            self._live = None

    @staticmethod
    async def _tick(live: LiveArea) -> None:
        while True:
            live.refresh()
            await asyncio.sleep(1 / FRAMES)


P = ParamSpec("P")
MARKS: Final = {"✓": "green", "✗": "red", "?": "yellow", "!": "yellow", "→": "cyan", "◆": "bold blue", "✎": "magenta"}
UNTOLD: Final = ("NotePosted", "OwnerChanged")
"""Events of an organisation that are no story: what agents note for each other, and which process runs it."""


class Progress:
    """What a person sees on stderr while something goes on: here nothing but trouble, as with `--quiet`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._trouble: str | None = None

    def begin(self, history: TeamHistory) -> None:
        """Something runs from now on; `history` knows how it stands."""

    def line(self, history: TeamHistory, line: Line) -> None:
        """One more event."""

    def piece(self, step: Step, event: Live) -> None:
        """A piece of a reply, or of what a tool prints, as it comes. What a recording lacks is said nowhere else."""
        if isinstance(event, Failed) and event.said and event.said not in event.why:
            self._console.print(Text(event.said), soft_wrap=True)

    def began(self, step: Step) -> None:
        """A step has begun, here and now."""

    def ended(self, step: Step) -> None:
        """A step is over, here and now."""

    def note(self, text: str, *, style: str = "") -> None:
        """What the command line says itself."""

    def trouble(self, text: str | None) -> None:
        """Something outside is in the way, or no longer is. Trouble is never hidden."""
        if text and text != self._trouble:
            self._console.print(Text(text, style="bold red"), soft_wrap=True)
        self._trouble = text

    def end(self) -> None:
        """Nothing runs any more."""


class Lines(Progress):
    """A line per event of the story; with `everything` a line per event."""

    def __init__(self, console: Console, *, everything: bool = False) -> None:
        super().__init__(console)
        self._everything = everything

    def line(self, history: TeamHistory, line: Line) -> None:
        untold = line.type in UNTOLD and is_organisation(history.world)
        if self._everything or (line.said.story and not untold):
            when = time.strftime("%H:%M:%S  ", time.localtime(line.at / 1000))
            text, cut = event_text(when, history, line), self._console.is_terminal
            self._console.print(text, no_wrap=cut or None, overflow="ellipsis" if cut else None, soft_wrap=not cut)

    def piece(self, step: Step, event: Live) -> None:
        """That a model is asked again takes time, so it is said."""
        super().piece(step, event)
        if isinstance(event, Retried):
            self.note(retried(event), style="yellow")

    def note(self, text: str, *, style: str = "") -> None:
        """Print it, whole: it may be a command to type."""
        self._console.print(Text(text, style=style), soft_wrap=True)

    def trouble(self, text: str | None) -> None:
        """Say that it began, and that it is over."""
        if self._trouble and not text:
            self.note("The trouble is over; it goes on.", style="green")
        super().trouble(text)


class Rows(Lines):
    """Lines above, and below them a live picture with a row per agent, that goes when the run ends."""

    def __init__(self, console: Console, *, everything: bool = False) -> None:
        super().__init__(console, everything=everything)
        self._moving = Moving(self._console)

    def begin(self, history: TeamHistory) -> None:
        self._moving.begin(lambda: picture(history, self._trouble))

    def end(self) -> None:
        self._moving.end()


def retried(event: Retried) -> str:
    """Why a model is asked again, and when."""
    when = f"asked again in {event.wait:.0f} s" if event.wait >= 1 else "asked again"
    return f"{event.failed.why.rstrip('.')}; {when}"


def event_text(before: str, history: TeamHistory, line: Line, *, typed: bool = False) -> Text:
    """An event as a line: when it was (`before`), its agent, and what, in words. Its type is named with `typed`, or
    where it has no words of its own; what is no part of the story is then dim."""
    said, text = line.said, Text(before, style="dim")
    if typed:
        text.append(f"{line.type:<18} ", style="not dim" if said.story else "")
    text.append(f"{said.who:<6} ", style=f"not dim {colour(history.world, said.who)}".strip())
    text.append(f"{said.mark or ' '} ", style=f"not dim {MARKS.get(said.mark, '')}".strip())
    what = f"{line.type} {said.text}" if said.plain and not typed else said.text
    return text.append(what, style="" if (not said.story if typed else said.plain) else "not dim")


class LogLines(logging.Handler):
    """What Greenroom logs, among the progress; a traceback only with `-v`."""

    def __init__(self, console: Console, *, tracebacks: bool) -> None:
        super().__init__()
        self._console = console
        self._tracebacks = tracebacks

    def emit(self, record: logging.LogRecord) -> None:
        text = f"{record.levelname.lower()}: {record.getMessage()}"
        if record.exc_info and self._tracebacks:
            text = f"{text}\n{logging.Formatter().formatException(record.exc_info)}"
        self._console.print(Text(text, style="dim"), soft_wrap=True)


def progress_for(setup: Setup) -> Progress:
    """What fits this terminal and these options. It also takes over logging."""
    console = Console(stderr=True, highlight=False)
    level = logging.DEBUG if setup.verbose else logging.ERROR if setup.quiet else logging.WARNING
    logger = logging.getLogger("greenroom")
    logger.handlers = [LogLines(console, tracebacks=setup.verbose)]
    logger.setLevel(level)
    logger.propagate = False
    if setup.quiet or (setup.output_format == "stream-json" and not setup.verbose):
        return Progress(console)
    shares = setup.output_format == "stream-json" and sys.stdout.isatty()  # events are printed on the same terminal
    plain = not console.is_terminal or console.is_dumb_terminal or os.environ.get("CI") or shares
    return Lines(console, everything=setup.verbose) if plain else Rows(console, everything=setup.verbose)


class Held:
    """Keeps back what happens while a person types, and shows all of it in order when the screen is free."""

    def __init__(self) -> None:
        self._kept: list[Callable[[], None]] = []
        self._held = True

    def hold(self) -> None:
        """From now on a person types."""
        self._held = True

    def release(self) -> None:
        """The screen is free."""
        self._held = False
        kept, self._kept = self._kept, []
        for show in kept:
            show()

    def later(self, show: Callable[P, None]) -> Callable[P, None]:
        """The same, but not while a person types."""

        def shown(*given: P.args, **named: P.kwargs) -> None:
            if self._held:
                self._kept.append(lambda: show(*given, **named))
            else:
                show(*given, **named)

        return shown
