"""A conversation and a job as they come: a sign of life on stderr, the agent's words on stdout, calls in between."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.text import Text

from greenroom.app.conversation.chat import typed_in
from greenroom.app.cost import dollars
from greenroom.app.messages.findings import sentence
from greenroom.cli.errors import Unheard
from greenroom.cli.render.output import Console, Output, harmless
from greenroom.cli.render.progress import Lines, Moving, retried
from greenroom.cli.render.team import SPINNER, Line, Teller, seconds
from greenroom.cli.render.words import shorten, step_words
from greenroom.cli.setup import Setup
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Live, ToolPrinted
from greenroom.core.ports.model import ReasoningDelta, Retried, TextDelta
from greenroom.core.state.step import Step
from greenroom.runs.verdict import BASELINE, CONFIRM, DELIVER, VERDICT, from_kept

WITH: Final = {
    "read_code": "reads",
    "search_files": "searches for",
    "list_files": "lists",
    "patch": "changes",
    "rewrite": "writes",
    "execute_script": "runs",
}
"""What is done, to what it is given first."""

ALONE: Final = {
    BASELINE: "runs the checks before any change",
    CONFIRM: "sees whether anything can verify the change",
    DELIVER: "runs the checks on the change",
    "run_checks": "runs the checks",
    "propose_plan": "makes a plan",
    "ask_user": "asks you",
    "command_output": "looks at what a command prints",
    "stop_command": "stops a command",
    "read_output": "reads a long output",
}
SHOWN: Final = 44
MOST: Final = 6  # reasons of a verdict that are shown


def deed(step: Step) -> str:
    """What it does, as in `writes export.py`."""
    name = step.work.executor
    if step.work.type != "tool" or name in ALONE:
        return ALONE.get(name, "thinks" if name == "converse" else step_words(step))
    texts = [value for value in (step.work.instruction_content or {}).values() if isinstance(value, str)]
    if name not in WITH or not texts:
        return step_words(step)
    return f"{WITH[name]} {shorten(harmless(texts[0]), SHOWN)}"


def judged(verdict: Data) -> Sequence[str]:
    """A verdict, a line each. An answer has no receipts."""
    found = from_kept(verdict)
    if found.verified:
        return ("✓ verified",) if found.receipts else ("No file was changed, so nothing was checked.",)
    reasons = [sentence(reason) for reason in found.reasons]
    more = [f"  and {len(reasons) - MOST} more"] if len(reasons) > MOST else []
    sign = "✗" if found.state == "failed" else "?"
    return (f"{sign} {found.state}:", *(f"  {reason}" for reason in reasons[:MOST]), *more)


def verdict_in(step: Step) -> Data | None:
    """What a step has found about the work; None if it was not about that."""
    held = (step.result or {}).get(VERDICT)
    return dict(held) if step.work.executor in (DELIVER, CONFIRM) and isinstance(held, Mapping) else None


SPEAKS: Final = ("converse", "summarize")
FILTER: Final = "filter_tools"
THINKING: Final = "thinking"
DOING: Final = {"compact": "summing up what was said", "summarize": "writing the report"}
OUTPUT: Final = 100  # characters of what came of a call
TOLD: Final = 300  # characters of what was said to an agent from elsewhere


class Talk(Lines):
    """Says what is worth it in a talk: not that somebody thinks, but that they are asked again, and what they say.

    What was `spoken` on stdout of the last answer is not to be printed there once more. `own` is what was typed here:
    whatever else is said to the agent comes from elsewhere, and is shown.
    """

    def __init__(self, setup: Setup, out: Output) -> None:
        super().__init__(Console(stderr=True, highlight=False), everything=setup.verbose)
        self.own = ""
        self._silent = setup.quiet or setup.output_format == "stream-json"
        self._verbose = setup.verbose
        self._out = out
        self._moving = Moving(self._console)
        self._since = 0.0
        self._doing = ""
        self._said: list[str] = []
        self._open = False
        self._deaf = False

    @property
    def spoken(self) -> str:
        """What stands on stdout of the answer that counts."""
        return "".join(self._said)

    def begin(self, teller: Teller) -> None:
        """From now on somebody waits for an answer."""
        self._said.clear()
        self._wait("")

    def line(self, teller: Teller, line: Line) -> None:
        """Events are only for those who want them all."""
        if self._verbose:
            self._fresh_line()
            super().line(teller, line)

    def note(self, text: str, *, style: str = "") -> None:
        if not self._silent:
            self._fresh_line()
            super().note(text, style=style)

    def began(self, step: Step) -> None:
        """What goes on now. Whoever speaks begins on a line of their own."""
        if _speaks(step):
            self._fresh_line()
            self._said.clear()
            told = typed_in(step)
            if step.ordinal > 1 and step.attempt == 1 and told not in ("", self.own):
                self.note(f"› {shorten(told, TOLD)}", style="dim")
        if step.terms is not None and step.terms.verdict == "notify" and step.attempt == 1:
            self.note(harmless(f"! {step.agent_id}: {step_words(step)} ({step.terms.rule})"), style="yellow")
        self._wait(self._doing_now(step))

    def ended(self, step: Step) -> None:
        """A call, with the first line of what came of it; which of many tools an agent has for its task."""
        if step.work.executor == FILTER and step.result is not None:
            chosen, total = step.result.get("chosen"), step.result.get("total")
            count = len(chosen) if isinstance(chosen, list | tuple) else 0
            told = f"{count} relevant {'tool' if count == 1 else 'tools'} selected, of {total}."
            self.note(f"· {told if count else f'No tools were selected: all {total} stay.'}", style="dim")
        if step.work.type == "tool" and step.error != "not run":
            output = step.error or str((step.result or {}).get("output", ""))
            first = next((line for line in output.splitlines() if line.strip()), "done")
            sign = "·" if step.state == "finished" else "✗"
            self.note(f"{sign} {self._words(step)} → {shorten(harmless(first), OUTPUT)}", style="dim")

    def piece(self, step: Step, event: Live) -> None:
        """What the model says, thinks, why it is asked again, or what a tool prints."""
        if self._deaf:
            return
        try:
            if self._out.format == "stream-json":
                self._tell(step, event)
            self._show(step, event)
        except (BrokenPipeError, Unheard):
            self._deaf = True  # whoever read it has gone; whoever tells the next event says so

    def _show(self, step: Step, event: Live) -> None:
        match event:
            case TextDelta(text=text):
                if _speaks(step):
                    self._speak(text)
            case ReasoningDelta(text=text) if self._verbose:
                self._moving.end()
                self._console.print(Text(harmless(text), style="dim"), end="", soft_wrap=True)
                self._open = True
            case ReasoningDelta():
                if _speaks(step) and self._doing != THINKING:
                    self._wait(THINKING)
            case ToolPrinted(text=text):
                self._printed(step, text)
            case Retried():
                void = " What was said so far is void." if self._said else ""
                self._said.clear()
                self.note(f"{retried(event)}.{void}", style="yellow")
                self._wait("")
            case _:
                super().piece(step, event)

    def _printed(self, step: Step, text: str) -> None:
        """All of it for those who want everything; for others the newest line, while it is the newest."""
        if self._verbose:
            self._moving.end()
            self._console.print(Text(harmless(text.rstrip("\n")), style="dim"), soft_wrap=True)
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
        if last:
            self._doing = f"{self._words(step)} │ {shorten(harmless(last), OUTPUT)}"

    def _tell(self, step: Step, event: Live) -> None:
        """The same for programs: no fact of the log, so it has no version."""
        match event:
            case TextDelta(text=text):
                self._out.item("delta", {"step_id": step.step_id, "text": text})
            case ReasoningDelta(text=text):
                self._out.item("delta", {"step_id": step.step_id, "reasoning": text})
            case ToolPrinted(text=text):
                self._out.item("output", {"step_id": step.step_id, "text": text})
            case Retried():
                self._out.item("retried", {"step_id": step.step_id, "wait": event.wait, "why": event.failed.why})
            case _:
                pass

    def end(self) -> None:
        self._moving.end()
        self._fresh_line()

    def _speak(self, text: str) -> None:
        self._moving.end()
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

    def _wait(self, doing: str) -> None:
        """Show that something goes on, where that can be seen."""
        self._doing, self._since = doing, time.monotonic()
        if self._silent or self._moving.on or not self._console.is_terminal or self._console.is_dumb_terminal:
            return
        self._fresh_line()
        self._moving.begin(self._sign)

    def _words(self, step: Step) -> str:
        return step_words(step)

    def _doing_now(self, step: Step) -> str:
        if step.work.type == "tool":
            return self._words(step)
        if step.answers is not None:
            return f"{step.agent_id} works"
        return DOING.get(step.work.executor, "")

    def _sign(self) -> RenderableType:
        gone = time.monotonic() - self._since
        what = f"{self._doing} … " if self._doing else ""
        sign = f"{SPINNER[int(time.monotonic() * 10) % len(SPINNER)]} {what}{gone:.0f} s"
        return Text(sign, style="dim", no_wrap=True, overflow="ellipsis")


def _speaks(step: Step) -> bool:
    """Whether its words are for the person: not what one agent tells another, nor what is summed up for itself."""
    return step.work.executor in SPEAKS and step.answers is None


HINT: Final = "type to tell it something · Ctrl-C pauses"
LEAST: Final = 24  # columns for what is done now; where there is no room for it beside the figures, these go
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
        self._teller = teller
        super().begin(teller)

    def facts(self, *parts: str) -> None:
        self.note(" · ".join(parts), style="dim")

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
        typed = harmless(self.typed)[-(self._console.width - 4) :]  # the end of it: there it is typed
        return Group(row, Text(f"› {typed}▏") if typed else Text(f"  {HINT}", style="dim"))

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
