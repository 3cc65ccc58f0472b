"""The view of a run: activity on stderr, the agent's text on stdout, and its tool calls in between."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.text import Text

from greenroom.app.conversation.chat import read_typed_text
from greenroom.app.cost import format_dollars
from greenroom.app.messages import current_language, translate
from greenroom.app.messages.findings import render_finding, render_result
from greenroom.app.task_status import format_duration
from greenroom.app.words import shorten, step_words
from greenroom.cli.errors import StdoutFault
from greenroom.cli.render.output import Console, Output, strip_control_characters
from greenroom.cli.render.progress import LineProgress, LiveDisplay, describe_retry
from greenroom.cli.render.team import SPINNER, EventLine, TeamHistory
from greenroom.cli.setup import CommandSetup
from greenroom.core.base.ids import sender_of
from greenroom.core.ports.executor import LiveEvent, ToolPrinted
from greenroom.core.ports.model import ModelReasoningDelta, ModelTextDelta, Retried
from greenroom.core.state.step import Step
from greenroom.runs.verdict import (
    BASELINE,
    CONFIRM_UNVERIFIED,
    DELIVER,
    FINISH_MERGE,
    MERGE,
    VERDICT_KEY,
    decode_verdict,
)

NAMED_TOOLS: Final = frozenset({"read_code", "search_files", "list_files", "patch", "rewrite", "execute_script"})
"""Tools that are shown with a verb and their first argument."""

NAMED_STEPS: Final = frozenset(
    {BASELINE, CONFIRM_UNVERIFIED, DELIVER, "run_checks", "propose_plan", "ask_user", "command_output"}
    | {"stop_command", "read_output", "converse", "compact", "summarize", "open_workspace", "hand_in", "split_code"}
    | {"plan_task", "prompt_memory_save", "retrospect", "keep_skill"}
    | {"send_back", MERGE, FINISH_MERGE, "settle_merge"}
)
LOOP_CODES: Final = frozenset({"same_call", "same_failure", "in_turn", "no_change"})
"""How an agent repeats itself, by the code that its turn has stored."""

SPEAKING_SKILLS: Final = ("converse", "summarize")
MAX_ARGUMENT_CHARS: Final = 44  # characters of a path or a command
MAX_OUTPUT_CHARS: Final = 100  # characters of a tool result
MAX_MESSAGE_CHARS: Final = 300  # characters of a message sent to an agent from elsewhere
MAX_REASONS_SHOWN: Final = 6  # reasons of a verdict shown
MIN_ACTIVITY_WIDTH: Final = 24  # columns of the activity; with less space the figures are left out


def describe_step(step: Step) -> str:
    """Describe a step, as in `writes export.py`."""
    name = step.work.executor
    if name in NAMED_STEPS:
        if step.work.type == "tool" or step.answers is None:
            return translate(f"conversation.step_{name}")
        return translate("conversation.agent_works", agent=step.agent_id)
    arguments = step.work.instruction_content or {}
    main = arguments.get("script")  # its interpreter may come first
    texts = [value for value in (main, *arguments.values()) if isinstance(value, str)]
    if name in NAMED_TOOLS and texts:
        what = shorten(strip_control_characters(texts[0]), MAX_ARGUMENT_CHARS)
        return translate(f"conversation.{name}", what=what)
    return step_words(step, current_language())


def describe_result(output: str) -> str:
    """Return the first line of a tool's result, or a sentence for people instead of one for the model."""
    lines = [line for line in render_result(output).splitlines() if line.strip()]
    first = lines[0] if lines else translate("conversation.done")
    return shorten(strip_control_characters(first), MAX_OUTPUT_CHARS)


def verdict_lines(step: Step) -> Sequence[str]:
    """Return the lines of the verdict that a step reached; empty for other steps."""
    kept_verdict = (step.result or {}).get(VERDICT_KEY)
    if step.work.executor not in (DELIVER, CONFIRM_UNVERIFIED) or not isinstance(kept_verdict, Mapping):
        return ()
    verdict = decode_verdict(dict(kept_verdict))
    if verdict.is_verified:
        return (translate("conversation.verified" if verdict.receipts else "conversation.no_file_changed"),)
    reasons = [render_finding(reason) for reason in verdict.reasons]
    hidden = len(reasons) - MAX_REASONS_SHOWN
    more = [translate("conversation.more", count=hidden)] if hidden > 0 else []
    lines = (f"  {line}" for line in (*reasons[:MAX_REASONS_SHOWN], *more))
    return (translate(f"conversation.verdict_{verdict.state}"), *lines)


class RunView(LineProgress):
    """Shows one run. `printed_answer` is the part of the last answer that stdout has already.

    `own_text` is the message typed here; other messages to the agent are shown. `typed` is the line being typed.
    """

    def __init__(self, setup: CommandSetup, out: Output) -> None:
        super().__init__(Console(stderr=True, highlight=False), everything=setup.verbose)
        self.own_text = self.typed = ""
        self._is_silent = setup.quiet or setup.output_format == "stream-json"
        self._verbose = setup.verbose
        self._out = out
        self._moving = LiveDisplay(self._console)
        self._history = TeamHistory()
        self._typed_messages = set[str]()
        self._since = 0.0
        self._doing = ""
        self._answer_parts: list[str] = []
        self._verdict: Sequence[str] = ()
        self._is_line_open = False
        self._is_reader_gone = False

    @property
    def printed_answer(self) -> str:
        """The answer text that stdout has already."""
        return "".join(self._answer_parts)

    def begin(self, history: TeamHistory) -> None:
        """Start waiting for an answer."""
        self._history = history
        self._answer_parts.clear()
        self._show_activity("")

    def end(self) -> None:
        self._moving.end()
        self._start_new_line()

    def line(self, history: TeamHistory, line: EventLine) -> None:
        """Print the event, but only with --verbose."""
        if self._verbose:
            self._start_new_line()
            super().line(history, line)

    def note(self, text: str, *, style: str = "") -> None:
        if not self._is_silent:
            self._start_new_line()
            super().note(text, style=style)

    def refresh(self) -> None:
        """Draw what was typed."""
        self._moving.refresh_soon()

    def show_typed(self, text: str, reader: str) -> None:
        """Show a message typed here, and which agent will read it."""
        self._typed_messages.add(text)
        self.note(f"› {strip_control_characters(shorten(text, MAX_MESSAGE_CHARS))}")
        self.note(f"  {translate('conversation.noted', agent=reader)}", style="dim")

    def begin_step(self, step: Step) -> None:
        """Show that a step started, and which message the agent reads."""
        self._announce(step)
        text = read_typed_text(step)
        if _is_for_person(step):
            self._start_new_line()
            self._answer_parts.clear()
            if passed_on := describe_hand_over(step):
                self.note(passed_on, style="dim")
            elif step.ordinal > 1 and step.attempt == 1 and text not in ("", self.own_text):
                self.note(f"› {shorten(text, MAX_MESSAGE_CHARS)}", style="dim")
        self._show_activity(describe_step(step))

    def _announce(self, step: Step) -> None:
        """Show the last verdict, which typed message the agent reads, and a rule that wants the step to be shown."""
        self.show_verdict()
        text = read_typed_text(step)
        if text in self._typed_messages and step.attempt == 1:
            self.own_text = text
            shown = strip_control_characters(shorten(text, MAX_OUTPUT_CHARS))
            self.note(translate("conversation.agent_reads", agent=step.agent_id, text=shown), style="dim")
        if step.terms is not None and step.terms.verdict == "notify" and step.attempt == 1:
            self.note(
                strip_control_characters(f"! {step.agent_id}: {step_words(step)} ({step.terms.rule})"), style="yellow"
            )

    def show_verdict(self) -> None:
        """Show the verdict that the last step reached. At the end of a run, its report does that."""
        style = "green" if len(self._verdict) == 1 else "yellow"
        for line in self._verdict:
            self.note(strip_control_characters(line), style=style)
        self._verdict = ()

    def end_step(self, step: Step) -> None:
        """Show the result of a step: the first line of a tool result, or the number of selected tools.

        A verdict is kept until it is known whether the run continues.
        """
        result = step.result or {}
        output = step.error or str(result.get("output", ""))
        if lines := verdict_lines(step):
            self._verdict = lines
        elif step.work.executor == BASELINE and step.state == "finished":
            report = strip_control_characters(output.removeprefix("Before any change: "))
            self.note(translate("conversation.baseline", report=report))
        elif step.work.executor == "filter_tools" and step.result is not None:
            chosen, total = result.get("chosen"), result.get("total")
            count = len(chosen) if isinstance(chosen, list | tuple) else 0
            key = "conversation.tools_selected" if count else "conversation.no_tools_selected"
            self.note(f"· {translate(key, count=count, total=total)}", style="dim")
        elif step.work.executor == "plan_task":
            self._note_plan(step, result.get("plan"))
        elif step.work.type == "tool" and step.error != "not run":
            sign = "·" if step.state == "finished" else "✗"
            self._note_call(step, sign, describe_result(output))
        if (loop := str(result.get("circles", ""))) in LOOP_CODES:
            self.note(translate(f"conversation.{loop}", agent=step.agent_id), style="yellow")

    def _note_plan(self, step: Step, parts: object) -> None:
        """Show the parts of an agent's plan."""
        if isinstance(parts, list | tuple) and parts:
            lines = [translate("conversation.task_split", agent=step.agent_id, count=len(parts))]
            lines += [f"  {number}. {shorten(str(part), MAX_OUTPUT_CHARS)}" for number, part in enumerate(parts, 1)]
            self.note(strip_control_characters("\n".join(lines)), style="dim")

    def _note_call(self, step: Step, sign: str, result: str) -> None:
        self.note(f"{sign} {describe_step(step)} → {result}", style="dim")

    def piece(self, step: Step, event: LiveEvent) -> None:
        """Show a piece of text, reasoning or tool output, or a retry."""
        if self._is_reader_gone:
            return
        try:
            if self._out.format == "stream-json":
                self._stream_piece(step, event)
            self._show(step, event)
        except (BrokenPipeError, StdoutFault):
            self._is_reader_gone = True  # the reader is gone; the next event reports it

    def _show(self, step: Step, event: LiveEvent) -> None:
        match event:
            case ModelTextDelta(text=text):
                if _is_for_person(step):
                    self._print_answer(text)
            case ModelReasoningDelta(text=text) if self._verbose:
                self._moving.end()
                self._console.print(Text(strip_control_characters(text), style="dim"), end="", soft_wrap=True)
                self._is_line_open = True
            case ModelReasoningDelta():
                if _is_for_person(step) and self._doing != translate("conversation.step_converse"):
                    self._show_activity(translate("conversation.step_converse"))
            case ToolPrinted(text=text):
                self._show_tool_output(step, text)
            case Retried():
                void = translate("conversation.earlier_text_void") if self._answer_parts else ""
                self._answer_parts.clear()
                self.note(f"{describe_retry(event)}{void}", style="yellow")
                self._show_activity("")
            case _:
                super().piece(step, event)

    def _show_tool_output(self, step: Step, text: str) -> None:
        """Show tool output: all of it with --verbose, else the newest line."""
        if self._verbose:
            self._moving.end()
            self._console.print(Text(strip_control_characters(text.rstrip("\n")), style="dim"), soft_wrap=True)
        if last := next((line for line in reversed(text.splitlines()) if line.strip()), ""):
            self._doing = f"{describe_step(step)} │ {shorten(strip_control_characters(last), MAX_OUTPUT_CHARS)}"

    def _stream_piece(self, step: Step, event: LiveEvent) -> None:
        """Write the piece as JSON. It is not an event of the log, so it has no version."""
        name = step.step_id
        match event:
            case ModelTextDelta(text=text):
                self._out.item("delta", {"step_id": name, "text": text})
            case ModelReasoningDelta(text=text):
                self._out.item("delta", {"step_id": name, "reasoning": text})
            case ToolPrinted(text=text):
                self._out.item("output", {"step_id": name, "text": text})
            case Retried():
                self._out.item("retried", {"step_id": name, "wait": event.wait, "why": event.failed.why})
            case _:
                pass

    def _print_answer(self, text: str) -> None:
        self._moving.end()
        if self._out.is_live and text:
            if self._is_line_open and not self._answer_parts:
                self._start_new_line()  # after the reasoning
            self._out.write(text)
            self._answer_parts.append(text)
            self._is_line_open = not text.endswith("\n")

    def _start_new_line(self) -> None:
        if self._is_line_open:
            self._is_line_open = False
            if self._answer_parts:
                self._out.write("\n")
            else:
                self._console.print()

    def _show_activity(self, doing: str) -> None:
        self._doing, self._since = doing, time.monotonic()
        if (
            self._is_silent
            or self._moving.is_running
            or not self._console.is_terminal
            or self._console.is_dumb_terminal
        ):
            return
        self._start_new_line()
        self._moving.begin(self._render_activity)

    def _render_activity(self) -> RenderableType:
        row = Text(self._render_row(), style="dim", no_wrap=True, overflow="ellipsis")
        return Group(row, *self._render_typed())

    def _render_typed(self) -> Sequence[Text]:
        """Render the line that is being typed, or that a person can type."""
        if not self.is_listening:
            return ()
        typed = strip_control_characters(self.typed)[
            -(self._console.width - 4) :
        ]  # the end of the line, where the cursor is
        return (Text(f"› {typed}▏") if typed else Text(f"  {translate('conversation.typing_hint')}", style="dim"),)

    def _render_row(self) -> str:
        """Render the current activity and the figures so far. Waiting for a person is not counted as work."""
        elapsed, total = time.monotonic() - self._since, self._history.total()
        tokens = translate("conversation.figures_tokens", tokens=total.tokens)
        figures = [f"{'≤ ' if self._history.is_at_most else ''}{tokens}"]
        figures += [format_dollars(total.money)] if total.money else []
        duration = format_duration(total.millis + int(elapsed * 1000))
        right = " · ".join((*figures, translate("conversation.figures_work", duration=duration)))
        doing = self._doing or translate("conversation.step_converse")
        left = f"{SPINNER[int(time.monotonic() * 10) % len(SPINNER)]} {doing}"
        room = self._console.width - cell_len(right) - cell_len(since := f" … {elapsed:.0f} s") - 3
        if room < MIN_ACTIVITY_WIDTH:
            return f"{left}{since}"
        shortened = left if cell_len(left) <= room else set_cell_size(left, room)
        return f"{shortened}{since}{' ' * (room - cell_len(shortened))}  {right}"


def describe_hand_over(step: Step) -> str:
    """Describe the message with which an agent gets the task; empty for every other step."""
    text = step.work.text_content.partition("\ncontent:\n")[2]
    if step.message_id is None or step.attempt != 1 or not text:
        return ""
    said = shorten(text, MAX_MESSAGE_CHARS)
    return strip_control_characters(f"→ {sender_of(step.message_id)} → {step.agent_id}: {said}")


def _is_for_person(step: Step) -> bool:
    """Whether the text of a step is for the person: not an answer to another agent, nor a summary for itself."""
    return step.work.executor in SPEAKING_SKILLS and step.answers is None
