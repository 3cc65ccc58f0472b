"""Progress, on stderr: live rows on a terminal, plain lines elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Final, Protocol

from rich.text import Text

from greenroom.core.ports.executor import Live
from greenroom.core.ports.model import Failed, Retried
from greenroom.core.state.step import Step
from greenroom.interfaces.cli.asked.setup import Setup
from greenroom.interfaces.cli.display.moving import Moving
from greenroom.interfaces.cli.display.output import Console
from greenroom.interfaces.cli.display.rows import colour, picture
from greenroom.interfaces.cli.display.telling import Line, Teller

MARKS: Final = {"✓": "green", "✗": "red", "?": "yellow", "!": "yellow", "→": "cyan", "◆": "bold blue", "✎": "magenta"}


class Progress(Protocol):
    """What a person sees while something goes on."""

    def begin(self, teller: Teller) -> None:
        """Something runs from now on; `teller` knows how it stands."""
        ...

    def line(self, teller: Teller, line: Line) -> None:
        """One more event."""
        ...

    def piece(self, step: Step, event: Live) -> None:
        """A piece of a reply, or of what a tool prints, as it comes."""
        ...

    def began(self, step: Step) -> None:
        """A step has begun, here and now."""
        ...

    def ended(self, step: Step) -> None:
        """A step is over, here and now."""
        ...

    def note(self, text: str, *, style: str = "") -> None:
        """The door's own words."""
        ...

    def trouble(self, text: str | None) -> None:
        """Something outside is in the way, or no longer is."""
        ...

    def end(self) -> None:
        """Nothing runs any more."""
        ...


class Quiet:
    """Says nothing but trouble."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._trouble: str | None = None

    def begin(self, teller: Teller) -> None:
        """Nothing to see."""

    def line(self, teller: Teller, line: Line) -> None:
        """Nothing to see."""

    def piece(self, step: Step, event: Live) -> None:
        """What a recording lacks is said nowhere else."""
        if isinstance(event, Failed) and event.said and event.said not in event.why:
            self._console.print(Text(event.said), soft_wrap=True)

    def began(self, step: Step) -> None:
        """Nothing to see."""

    def ended(self, step: Step) -> None:
        """Nothing to see."""

    def note(self, text: str, *, style: str = "") -> None:
        """Nothing to hear."""

    def trouble(self, text: str | None) -> None:
        """Trouble is never hidden."""
        if text and text != self._trouble:
            self._console.print(Text(text, style="bold red"), soft_wrap=True)
        self._trouble = text

    def end(self) -> None:
        """Nothing to do."""


class Lines(Quiet):
    """A line per event of the story; with `everything` a line per event."""

    def __init__(self, console: Console, *, everything: bool = False) -> None:
        super().__init__(console)
        self._everything = everything

    def line(self, teller: Teller, line: Line) -> None:
        """Print it, if it is told."""
        if line.said.story or self._everything:
            self._print(told(teller, line))

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

    def _print(self, text: Text) -> None:
        if self._console.is_terminal:
            self._console.print(text, no_wrap=True, overflow="ellipsis")
        else:
            self._console.print(text, soft_wrap=True)


class Rows(Lines):
    """Lines above, and below them a live row per agent that goes when the run ends."""

    def __init__(self, console: Console, *, everything: bool = False) -> None:
        super().__init__(console, everything=everything)
        self._moving = Moving(self._console)

    def begin(self, teller: Teller) -> None:
        """Show the rows from now on."""
        self._moving.begin(lambda: picture(teller, self._trouble))

    def end(self) -> None:
        """Take the rows away."""
        self._moving.end()


def retried(event: Retried) -> str:
    """Why a model is asked again, and when."""
    when = f"asked again in {event.wait:.0f} s" if event.wait >= 1 else "asked again"
    return f"{event.failed.why.rstrip('.')}; {when}"


def told(teller: Teller, line: Line) -> Text:
    """One event as a line: when, who, what."""
    said = line.said
    text = Text(time.strftime("%H:%M:%S", time.localtime(line.at / 1000)), style="dim")
    text.append(f"  {said.who:<6} ", style=f"not dim {colour(teller.world, said.who)}".strip())
    text.append(f"{said.mark or ' '} ", style=f"not dim {MARKS.get(said.mark, '')}".strip())
    text.append(f"{line.type} {said.text}" if said.plain else said.text, style="" if said.plain else "not dim")
    return text


class LogLines(logging.Handler):
    """What the house logs, among the progress; a traceback only with `-v`."""

    def __init__(self, console: Console, *, tracebacks: bool) -> None:
        super().__init__()
        self._console = console
        self._tracebacks = tracebacks

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
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
        return Quiet(console)
    plain = not console.is_terminal or console.is_dumb_terminal or os.environ.get("CI") or _shares_stdout(setup)
    return Lines(console, everything=setup.verbose) if plain else Rows(console, everything=setup.verbose)


def _shares_stdout(setup: Setup) -> bool:
    """Whether events are printed on the same terminal while the rows would be drawn."""
    return setup.output_format == "stream-json" and sys.stdout.isatty()
