"""Work as it goes on: what was done above, and below it a row of what is done now, what it took, and what is typed."""

from __future__ import annotations

import time
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.text import Text

from greenroom.app.conversation.chat import typed_in
from greenroom.core.state.step import Step
from greenroom.interfaces.cli.asked.setup import Setup
from greenroom.interfaces.cli.display.deeds import deed, judged, verdict_in
from greenroom.interfaces.cli.display.output import Output, harmless
from greenroom.interfaces.cli.display.rows import SPINNER, dollars, seconds
from greenroom.interfaces.cli.display.talk import OUTPUT, TOLD, Talk
from greenroom.interfaces.cli.display.telling import Teller
from greenroom.interfaces.cli.display.words import shorten

HINT: Final = "type to tell it something · Ctrl-C pauses"
LEAST: Final = 24
"""Columns for what is done now; where there is no room for it beside the figures, these go."""

BASELINE: Final = "baseline"
CIRCLES: Final = {
    "same_call": "the same call again and again",
    "same_failure": "the same failure again and again",
    "in_turn": "two calls in turn",
    "no_change": "no file changed, and nothing new was found",
}
"""What an agent does again and again, as its turn has kept it."""


class Work(Talk):
    """A talk about work. `typed` is what somebody has typed so far; with `hears` it is said that they can."""

    def __init__(self, setup: Setup, out: Output) -> None:
        super().__init__(setup, out)
        self.typed = ""
        self.hears = False
        self._teller = Teller()
        self._heard = set[str]()

    def begin(self, teller: Teller) -> None:
        """From now on it is worked."""
        self._teller = teller
        super().begin(teller)

    def facts(self, *parts: str) -> None:
        """A line about the run; where a terminal is too narrow for it, it is broken between them."""
        lines, wide = [""], self._console.width if self._console.is_terminal else 0
        for part in parts:
            longer = f"{lines[-1]} · {part}" if lines[-1] else part
            if wide and lines[-1] and cell_len(longer) > wide:
                lines.append(f"  {part}")
            else:
                lines[-1] = longer
        self.note("\n".join(lines), style="dim")

    def hear(self, text: str, when: str) -> None:
        """Somebody has said this here, and it will be read then."""
        self._heard.add(text)
        self.note(f"› {harmless(shorten(text, TOLD))}")
        self.note(f"  noted: {when}", style="dim")

    def began(self, step: Step) -> None:
        """What goes on now. Of what was said here, that it is read."""
        told = typed_in(step)
        if told in self._heard and step.attempt == 1:
            self.own = told
            self.note(f"· {step.agent_id} reads: {harmless(shorten(told, OUTPUT))}", style="dim")
        super().began(step)

    def ended(self, step: Step) -> None:
        """What came of a call; of the checks, how they stand."""
        verdict = verdict_in(step)
        if verdict is not None:
            first, *rest = judged(verdict)
            self.note(first, style="green" if not rest else "yellow")
            for line in rest:
                self.note(harmless(line), style="yellow")
        elif step.work.executor == BASELINE and step.state == "finished":
            output = str((step.result or {}).get("output", "")).removeprefix("Before any change: ")
            self.note(f"Baseline: {harmless(output)}")
        else:
            super().ended(step)
        circle = CIRCLES.get(str((step.result or {}).get("circles", "")), "")
        if circle:
            self.note(f"! {step.agent_id} gets nowhere: {circle}. It was told so.", style="yellow")

    def _words(self, step: Step) -> str:
        return deed(step)

    def _sign(self) -> RenderableType:
        row = Text(self._row(), style="dim", no_wrap=True, overflow="ellipsis")
        if not self.hears:
            return row
        below = (
            Text(f"› {_end(self.typed, self._console.width - 4)}▏") if self.typed else Text(f"  {HINT}", style="dim")
        )
        return Group(row, below)

    def _row(self) -> str:
        """What is done now, and behind it what it has taken so far: waiting for a person is no work."""
        gone = time.monotonic() - self._since
        total = self._teller.total()
        most = "≤ " if self._teller.at_most else ""
        took = [f"{most}{total.tokens:,} tokens", dollars(total.money) if total.money else ""]
        took.append(f"{seconds(total.millis + int(gone * 1000))} of work")
        right = " · ".join(one for one in took if one)
        left = f"{SPINNER[int(time.monotonic() * 10) % len(SPINNER)]} {self._doing or 'thinks'}"
        room = self._console.width - cell_len(right) - cell_len(since := f" … {gone:.0f} s") - 3
        if room < LEAST:
            return f"{left}{since}"
        short = left if cell_len(left) <= room else set_cell_size(left, room)
        return f"{short}{since}{' ' * (room - cell_len(short))}  {right}"


def _end(text: str, room: int) -> str:
    """The end of a line that is too long: there it is typed."""
    plain = harmless(text)
    while cell_len(plain) > room:
        plain = plain[1:]
    return plain
