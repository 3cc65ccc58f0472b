"""A run as it comes: a sign of life on stderr, the agent's words on stdout, and its calls in between."""

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
from greenroom.cli.render.team import SPINNER, Line, TeamHistory, seconds
from greenroom.cli.render.words import shorten, step_words
from greenroom.cli.setup import Setup
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
"""What a tool does, to what it is given first."""

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
    "converse": "thinks",
    "compact": "sums up what was said",
    "summarize": "writes the report",
}
CIRCLES: Final = {
    "same_call": "the same call again and again",
    "same_failure": "the same failure again and again",
    "in_turn": "two calls in turn",
    "no_change": "no file changed, and nothing new was found",
}
"""What an agent does again and again, as its turn has kept it."""

SPEAKS: Final = ("converse", "summarize")
FILTER: Final = "filter_tools"
THINKING: Final = "thinks"
HINT: Final = "type to tell it something · Ctrl-C pauses"
SHOWN: Final = 44  # characters of a path or a command
OUTPUT: Final = 100  # characters of what came of a call
TOLD: Final = 300  # characters of what was said to an agent from elsewhere
MOST: Final = 6  # reasons of a verdict that are shown
LEAST: Final = 24  # columns for what is done now; where there is no room for it beside the figures, these go


def deed(step: Step) -> str:
    """What a step does, as in `writes export.py`."""
    name = step.work.executor
    if name in ALONE:
        return ALONE[name] if step.work.type == "tool" or step.answers is None else f"{step.agent_id} works"
    texts = [value for value in (step.work.instruction_content or {}).values() if isinstance(value, str)]
    return f"{WITH[name]} {shorten(harmless(texts[0]), SHOWN)}" if name in WITH and texts else step_words(step)


def verdict_lines(step: Step) -> Sequence[str]:
    """The verdict that a step has found about a change, a line each; empty for all other steps."""
    held = (step.result or {}).get(VERDICT)
    if step.work.executor not in (DELIVER, CONFIRM) or not isinstance(held, Mapping):
        return ()
    found = from_kept(dict(held))
    if found.verified:
        return ("✓ verified",) if found.receipts else ("No file was changed, so nothing was checked.",)
    reasons = [sentence(reason) for reason in found.reasons]
    more = [f"  and {len(reasons) - MOST} more"] if len(reasons) > MOST else []
    sign = "✗" if found.state == "failed" else "?"
    return (f"{sign} {found.state}:", *(f"  {reason}" for reason in reasons[:MOST]), *more)


class RunView(Lines):
    """Shows one run. What was `spoken` on stdout of the last answer is not to be printed there once more.

    `own` is what was typed here: all else that is said to the agent comes from elsewhere, and is shown. `typed` is what
    a person has typed so far; with `hears` it is said that they can.
    """

    def __init__(self, setup: Setup, out: Output) -> None:
        super().__init__(Console(stderr=True, highlight=False), everything=setup.verbose)
        self.own = self.typed = ""
        self.hears = False
        self._silent = setup.quiet or setup.output_format == "stream-json"
        self._verbose = setup.verbose
        self._out = out
        self._moving = Moving(self._console)
        self._history = TeamHistory()
        self._heard = set[str]()
        self._since = 0.0
        self._doing = ""
        self._said: list[str] = []
        self._open = False
        self._deaf = False

    @property
    def spoken(self) -> str:
        """What stands on stdout of the answer that counts."""
        return "".join(self._said)

    def begin(self, history: TeamHistory) -> None:
        """From now on a person waits for an answer."""
        self._history = history
        self._said.clear()
        self._wait("")

    def end(self) -> None:
        self._moving.end()
        self._fresh_line()

    def line(self, history: TeamHistory, line: Line) -> None:
        """Events are only for those who want them all."""
        if self._verbose:
            self._fresh_line()
            super().line(history, line)

    def note(self, text: str, *, style: str = "") -> None:
        if not self._silent:
            self._fresh_line()
            super().note(text, style=style)

    def hear(self, text: str, when: str) -> None:
        """A person has said this here, and it will be read then."""
        self._heard.add(text)
        self.note(f"› {harmless(shorten(text, TOLD))}")
        self.note(f"  noted: {when}", style="dim")

    # -------------------------------------------------------------------------------------------------------- steps

    def began(self, step: Step) -> None:
        """What goes on now. An agent that speaks begins on a new line; of what was said here, that it is read."""
        told = typed_in(step)
        if told in self._heard and step.attempt == 1:
            self.own = told
            self.note(f"· {step.agent_id} reads: {harmless(shorten(told, OUTPUT))}", style="dim")
        if _speaks(step):
            self._fresh_line()
            self._said.clear()
            if step.ordinal > 1 and step.attempt == 1 and told not in ("", self.own):
                self.note(f"› {shorten(told, TOLD)}", style="dim")
        if step.terms is not None and step.terms.verdict == "notify" and step.attempt == 1:
            self.note(harmless(f"! {step.agent_id}: {step_words(step)} ({step.terms.rule})"), style="yellow")
        self._wait(deed(step))

    def ended(self, step: Step) -> None:
        """What came of it: of the checks how they stand, of a call the first line, of a filter how many tools stay."""
        result = step.result or {}
        output = step.error or str(result.get("output", ""))
        if lines := verdict_lines(step):
            self.note(lines[0], style="green" if len(lines) == 1 else "yellow")
            for line in lines[1:]:
                self.note(harmless(line), style="yellow")
        elif step.work.executor == BASELINE and step.state == "finished":
            self.note(f"Baseline: {harmless(output.removeprefix('Before any change: '))}")
        elif step.work.executor == FILTER and step.result is not None:
            chosen, total = result.get("chosen"), result.get("total")
            count = len(chosen) if isinstance(chosen, list | tuple) else 0
            told = f"{count} relevant {'tool' if count == 1 else 'tools'} selected, of {total}."
            self.note(f"· {told if count else f'No tools were selected: all {total} stay.'}", style="dim")
        elif step.work.type == "tool" and step.error != "not run":
            first = next((line for line in output.splitlines() if line.strip()), "done")
            sign = "·" if step.state == "finished" else "✗"
            self.note(f"{sign} {deed(step)} → {shorten(harmless(first), OUTPUT)}", style="dim")
        if circle := CIRCLES.get(str(result.get("circles", ""))):
            self.note(f"! {step.agent_id} gets nowhere: {circle}. It was told so.", style="yellow")

    # ------------------------------------------------------------------------------------------------------- pieces

    def piece(self, step: Step, event: Live) -> None:
        """What the model says, thinks, why it is asked again, or what a tool prints."""
        if self._deaf:
            return
        try:
            if self._out.format == "stream-json":
                self._tell(step, event)
            self._show(step, event)
        except (BrokenPipeError, Unheard):
            self._deaf = True  # the reader has gone; the next event that is told says so

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
        if last := next((line for line in reversed(text.splitlines()) if line.strip()), ""):
            self._doing = f"{deed(step)} │ {shorten(harmless(last), OUTPUT)}"

    def _tell(self, step: Step, event: Live) -> None:
        """The same for programs: no fact of the log, so it has no version."""
        name = step.step_id
        match event:
            case TextDelta(text=text):
                self._out.item("delta", {"step_id": name, "text": text})
            case ReasoningDelta(text=text):
                self._out.item("delta", {"step_id": name, "reasoning": text})
            case ToolPrinted(text=text):
                self._out.item("output", {"step_id": name, "text": text})
            case Retried():
                self._out.item("retried", {"step_id": name, "wait": event.wait, "why": event.failed.why})
            case _:
                pass

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

    # -------------------------------------------------------------------------------------------------- sign of life

    def _wait(self, doing: str) -> None:
        """Show that something goes on, where that can be seen."""
        self._doing, self._since = doing, time.monotonic()
        if self._silent or self._moving.on or not self._console.is_terminal or self._console.is_dumb_terminal:
            return
        self._fresh_line()
        self._moving.begin(self._sign)

    def _sign(self) -> RenderableType:
        row = Text(self._row(), style="dim", no_wrap=True, overflow="ellipsis")
        if not self.hears:
            return row
        typed = harmless(self.typed)[-(self._console.width - 4) :]  # the end of it: there it is typed
        return Group(row, Text(f"› {typed}▏") if typed else Text(f"  {HINT}", style="dim"))

    def _row(self) -> str:
        """What is done now, and behind it what it has taken so far: waiting for a person is no work."""
        gone, total = time.monotonic() - self._since, self._history.total()
        took = [f"{'≤ ' if self._history.at_most else ''}{total.tokens:,} tokens"]
        took += [dollars(total.money)] if total.money else []
        right = " · ".join((*took, f"{seconds(total.millis + int(gone * 1000))} of work"))
        left = f"{SPINNER[int(time.monotonic() * 10) % len(SPINNER)]} {self._doing or THINKING}"
        room = self._console.width - cell_len(right) - cell_len(since := f" … {gone:.0f} s") - 3
        if room < LEAST:
            return f"{left}{since}"
        short = left if cell_len(left) <= room else set_cell_size(left, room)
        return f"{short}{since}{' ' * (room - cell_len(short))}  {right}"


def _speaks(step: Step) -> bool:
    """Whether its words are for the person: not what one agent tells another, nor what is summed up for itself."""
    return step.work.executor in SPEAKS and step.answers is None
