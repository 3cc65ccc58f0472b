"""A talk with one model, as it comes: a sign of life on stderr until it speaks, then its words on stdout."""

from __future__ import annotations

import time

from rich.console import Console
from rich.text import Text

from greenroom.core.ports.model import ModelEvent, ReasoningDelta, Retried, TextDelta
from greenroom.core.state.step import Step
from greenroom.interfaces.cli.asked.setup import Setup
from greenroom.interfaces.cli.display.moving import Moving
from greenroom.interfaces.cli.display.output import Output, harmless
from greenroom.interfaces.cli.display.progress import Lines, retried
from greenroom.interfaces.cli.display.rows import SPINNER
from greenroom.interfaces.cli.display.telling import Line, Teller


class Talk(Lines):
    """Says what is worth it in a talk: not that somebody thinks, but that they are asked again, and what they say.

    What was `spoken` on stdout is not to be printed there once more.
    """

    def __init__(self, setup: Setup, out: Output) -> None:
        super().__init__(Console(stderr=True, highlight=False), everything=setup.verbose)
        self._silent = setup.quiet or setup.output_format == "stream-json"
        self._verbose = setup.verbose
        self._out = out
        self._moving = Moving(self._console)
        self._begun = 0.0
        self._said: list[str] = []
        self._open = False

    @property
    def spoken(self) -> str:
        """What stands on stdout of the answer that counts."""
        return "".join(self._said)

    def begin(self, teller: Teller) -> None:
        """From now on somebody waits for an answer."""
        self._begun = time.monotonic()
        self._wait()

    def line(self, teller: Teller, line: Line) -> None:
        """Events are only for those who want them all."""
        if self._verbose:
            self._fresh_line()
            super().line(teller, line)

    def note(self, text: str, *, style: str = "") -> None:
        """The door's own words."""
        if not self._silent:
            self._fresh_line()
            super().note(text, style=style)

    def piece(self, step: Step, event: ModelEvent) -> None:
        """What the model says, thinks, or why it is asked again."""
        if self._out.format == "stream-json":
            self._tell(step, event)
        match event:
            case TextDelta(text=text):
                self._speak(text)
            case ReasoningDelta(text=text) if self._verbose:
                self._stop()
                self._console.print(Text(harmless(text), style="dim"), end="", soft_wrap=True)
                self._open = True
            case Retried():
                void = " What was said so far is void." if self._said else ""
                self._said.clear()
                self.note(f"{retried(event)}.{void}", style="yellow")
                self._wait()
            case _:
                super().piece(step, event)

    def _tell(self, step: Step, event: ModelEvent) -> None:
        """The same for programs: no fact of the log, so it has no version."""
        match event:
            case TextDelta(text=text):
                self._out.item("delta", {"step_id": step.step_id, "text": text})
            case ReasoningDelta(text=text):
                self._out.item("delta", {"step_id": step.step_id, "reasoning": text})
            case Retried():
                self._out.item("retried", {"step_id": step.step_id, "wait": event.wait, "why": event.failed.why})
            case _:
                pass

    def end(self) -> None:
        """Nobody waits any more."""
        self._stop()
        self._fresh_line()

    def _speak(self, text: str) -> None:
        self._stop()
        if self._out.live and text:
            if self._open and not self._said:
                self._fresh_line()  # after what was thought
            self._out.write(text)
            self._said.append(text)
            self._open = not text.endswith("\n")

    def _fresh_line(self) -> None:
        """What comes now does not stand behind half a line of something else."""
        if self._open:
            self._open = False
            if self._said:
                self._out.write("\n")
            else:
                self._console.print()

    def _wait(self) -> None:
        """Show that something goes on, where that can be seen."""
        if self._silent or self._moving.on or not self._console.is_terminal or self._console.is_dumb_terminal:
            return
        self._moving.begin(self._sign)

    def _sign(self) -> Text:
        gone = time.monotonic() - self._begun
        return Text(f"{SPINNER[int(gone * 10) % len(SPINNER)]} {gone:.0f} s", style="dim")

    def _stop(self) -> None:
        self._moving.end()
