"""The output and the end of a command: buffered for its result, shown live, and described for the model."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from greenroom.abilities.tools.read_output import shape_text
from greenroom.core.base.records import Data
from greenroom.core.base.text import ControlCharacterFilter
from greenroom.core.ports.commands import CommandEnded, CommandEvent, CommandPrinted, CommandStarted
from greenroom.core.ports.executor import Outcome, ToolPrinted
from greenroom.core.ports.tool import MAX_RESULT_BYTES
from greenroom.core.state.step import PreparedEffect

MAX_HEAD_CHARS: Final = 15 * 1024 * 1024
MAX_TAIL_CHARS: Final = 1024 * 1024
"""Maximum characters of the tail. A larger result would block the team for a second while it is written."""


class OutputBuffer:
    """Buffers the output of a command. It counts what does not fit, and says so."""

    def __init__(self, beginning: int = MAX_HEAD_CHARS, end: int = MAX_TAIL_CHARS) -> None:
        self._head_room = beginning
        self._max_tail_chars = end
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._seen = ControlCharacterFilter()
        self.dropped = 0

    def add(self, text: str, missing: int = 0) -> str:
        """Add a piece, and `missing` characters that were lost before. Return the part that can be shown."""
        self.dropped += missing
        seen = self._seen.feed(text)
        self._append(seen)
        return seen

    def end(self) -> None:
        """Mark the end of the output."""
        self._append(self._seen.end())

    @property
    def text(self) -> str:
        gap = f"\n[… {self.dropped} characters are not kept …]\n" if self.dropped else ""
        return "".join((*self._head, gap, *self._tail))

    def _append(self, text: str) -> None:
        if self._head_room:
            self._head.append(text[: self._head_room])
            text = text[self._head_room :]
            self._head_room -= len(self._head[-1])
        if text:
            self._tail.append(text)
            self._tail_chars += len(text)
        while self._tail_chars > self._max_tail_chars:
            first = self._tail.popleft()
            over = min(self._tail_chars - self._max_tail_chars, len(first))
            if over < len(first):
                self._tail.appendleft(first[over:])
            self._tail_chars -= over
            self.dropped += over


MAX_LIVE_CHARS: Final = 200_000
"""Maximum characters of one command that are shown live. The result contains the rest."""

MAX_UNFINISHED_LINE_CHARS: Final = 4_000
"""Characters of an unfinished line after which it is shown anyway."""


class LiveLines:
    """Shows whole lines only, so that redaction never sees half a secret."""

    def __init__(self, show: Callable[[ToolPrinted], None], max_chars: int = MAX_LIVE_CHARS) -> None:
        self._show = show
        self._room = max_chars
        self._unfinished_line = ""

    def add(self, text: str) -> None:
        """Add a piece and show the lines that it completes."""
        if self._room <= 0 or not text:
            return
        whole, newline, rest = (self._unfinished_line + text).rpartition("\n")
        lines = f"{whole}{newline}"
        if len(rest) > MAX_UNFINISHED_LINE_CHARS:
            lines, rest = f"{lines}{rest}\n", ""
        self._unfinished_line = rest
        if lines:
            self._emit(lines)

    def end(self) -> None:
        """Show the last line if it is unfinished."""
        rest, self._unfinished_line = self._unfinished_line, ""
        if rest and self._room > 0:
            self._emit(f"{rest}\n")

    def _emit(self, lines: str) -> None:
        self._room -= len(lines)
        more = "" if self._room > 0 else "[… it prints more than is shown here …]\n"
        self._show(ToolPrinted(text=f"{lines}{more}"))


async def collect_output(
    run: AsyncGenerator[CommandEvent, None],
    prepare: Callable[[PreparedEffect], Awaitable[None]],
    buffer: OutputBuffer,
    live: LiveLines,
) -> CommandEnded:
    """Collect the output and return how the command ended. Cancelling this call ends the command."""
    ended = CommandEnded(how="lost")
    async with aclosing(run) as events:
        async for event in events:
            if isinstance(event, CommandStarted) and event.mark is not None:
                await prepare(event.mark)
            elif isinstance(event, CommandPrinted):
                live.add(buffer.add(event.text, event.missing))
            elif isinstance(event, CommandEnded):
                ended = event
    buffer.end()
    live.end()
    return ended


NO_OUTPUT: Final = "It printed nothing."
STATUS_BYTES: Final = 400
"""Bytes that are reserved for the description of how a command ended."""


def build_outcome(ended: CommandEnded, buffer: OutputBuffer, *, seconds: int, handle: str) -> Outcome:
    """Build the outcome of a step that ran a command. A failed command is a finished step: the model reads why."""
    if ended.how == "lost":
        error = (
            "What looked after the command was killed, so it is not known how far it came, nor that all its processes "
            "are dead. Look before you run it again."
        )
        return Outcome(state="uncertain", error=error, result=_build_result(buffer, "cut off", handle, ended))
    return Outcome(result=_build_result(buffer, describe_end(ended, seconds), handle, ended))


def build_cancelled_outcome(buffer: OutputBuffer, handle: str) -> Outcome:
    return Outcome(result=_build_result(buffer, "cancelled", handle, None))


def describe_end(ended: CommandEnded, seconds: int) -> str:
    """Describe how a command ended. The duration is left out, so that equal runs have equal results."""
    dead = "all its processes are dead" if ended.contained else "its process group is dead"
    known = ended.signal in set(signal.Signals)
    sentence = {
        "exited": f"exit code {ended.code}",
        "signalled": f"killed by signal {ended.signal} ({signal.Signals(ended.signal).name if known else 'unknown'})",
        "timed_out": f"timed out after {seconds} s; {dead}",
    }.get(ended.how, f"stopped before its end; {dead}")
    if ended.strays:
        sentence += (
            f"\n({ended.strays} of its processes still ran and were ended; what is to go on needs background=true.)"
        )
    if not ended.contained:
        sentence += "\n(On this system a process that left the command's process group would not be found.)"
    return sentence


def _build_result(buffer: OutputBuffer, status_text: str, handle: str, ended: CommandEnded | None) -> Data:
    parts = shape_text(buffer.text, handle, MAX_RESULT_BYTES - STATUS_BYTES)
    parts["output"] = f"{status_text}\n{parts['output'] or NO_OUTPUT}"
    if ended is None:
        return {**parts}
    return {**parts, "exit_code": ended.code, "how": ended.how, "seconds": ended.seconds}
