"""What a command prints and how it ends: kept for its result, shown while it runs, told to the model."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from greenroom.abilities.tools.read_output import shaped
from greenroom.core.base.records import Data
from greenroom.core.base.text import Seen
from greenroom.core.ports.commands import Begun, CommandEvent, Ended, Printed
from greenroom.core.ports.executor import Outcome, ToolPrinted
from greenroom.core.ports.tool import SHOWN
from greenroom.core.state.step import Prepared

BEGINNING: Final = 15 * 1024 * 1024
END: Final = 1024 * 1024
"""Characters. A result is written in one piece, and a larger one would keep the whole house waiting for a second."""


class Kept:
    """Takes pieces as they come. What does not fit is counted, and said."""

    def __init__(self, beginning: int = BEGINNING, end: int = END) -> None:
        self._room = beginning
        self._most = end
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tailed = 0
        self._seen = Seen()
        self.dropped = 0

    def add(self, text: str, missing: int = 0) -> str:
        """One more piece; `missing` is what was lost beside it. Returns what of it can be shown."""
        self.dropped += missing
        seen = self._seen.piece(text)
        self._take(seen)
        return seen

    def end(self) -> None:
        """There is no more to come."""
        self._take(self._seen.end())

    @property
    def text(self) -> str:
        """All that is kept."""
        gap = f"\n[… {self.dropped} characters are not kept …]\n" if self.dropped else ""
        return "".join((*self._head, gap, *self._tail))

    def _take(self, text: str) -> None:
        if self._room:
            self._head.append(text[: self._room])
            text = text[self._room :]
            self._room -= len(self._head[-1])
        if text:
            self._tail.append(text)
            self._tailed += len(text)
        while self._tailed > self._most:
            self._shorten()

    def _shorten(self) -> None:
        first = self._tail.popleft()
        over = min(self._tailed - self._most, len(first))
        if over < len(first):
            self._tail.appendleft(first[over:])
        self._tailed -= over
        self.dropped += over


LIVE: Final = 200_000
"""Characters of one command that are shown live. Who wants more reads it in its result."""

LONGEST: Final = 4_000
"""Characters of a line that is not ended yet, before it is shown all the same."""


class LiveLines:
    """Shows whole lines, so that what is looked for in them (a secret, say) is not cut in two."""

    def __init__(self, show: Callable[[ToolPrinted], None], most: int = LIVE) -> None:
        self._show = show
        self._room = most
        self._begun = ""

    def add(self, text: str) -> None:
        """One more piece."""
        if self._room <= 0 or not text:
            return
        whole, newline, rest = (self._begun + text).rpartition("\n")
        lines = f"{whole}{newline}"
        if len(rest) > LONGEST:
            lines, rest = f"{lines}{rest}\n", ""
        self._begun = rest
        if lines:
            self._tell(lines)

    def end(self) -> None:
        """The last line, if nothing has ended it."""
        rest, self._begun = self._begun, ""
        if rest and self._room > 0:
            self._tell(f"{rest}\n")

    def _tell(self, lines: str) -> None:
        self._room -= len(lines)
        more = "" if self._room > 0 else "[… it prints more than is shown here …]\n"
        self._show(ToolPrinted(text=f"{lines}{more}"))


async def heard(
    run: AsyncGenerator[CommandEvent, None], prepare: Callable[[Prepared], Awaitable[None]], kept: Kept, live: LiveLines
) -> Ended:
    """How it ended. Whoever cancels this ends the command."""
    ended = Ended(how="lost")
    async with aclosing(run) as events:
        async for event in events:
            if isinstance(event, Begun) and event.mark is not None:
                await prepare(event.mark)
            elif isinstance(event, Printed):
                live.add(kept.add(event.text, event.missing))
            elif isinstance(event, Ended):
                ended = event
    kept.end()
    live.end()
    return ended


NOTHING: Final = "It printed nothing."
STATUS: Final = 400
"""Bytes for how it ended."""


def outcome(ended: Ended, kept: Kept, *, seconds: int, handle: str) -> Outcome:
    """The outcome of a step that ran a command. A command that failed is a step that was done: the model reads why."""
    if ended.how == "lost":
        error = (
            "What looked after the command was killed, so it is not known how far it came, nor that all its processes "
            "are dead. Look before you run it again."
        )
        return Outcome(state="uncertain", error=error, result=_result(kept, "cut off", handle, ended))
    return Outcome(result=_result(kept, status(ended, seconds), handle, ended))


def cancelled(kept: Kept, handle: str) -> Outcome:
    """What is left of one that somebody cancelled."""
    return Outcome(result=_result(kept, "cancelled", handle, None))


def status(ended: Ended, seconds: int) -> str:
    """How it ended, in a sentence or two. How long it took is not told: the same run reads the same."""
    dead = "all its processes are dead" if ended.contained else "its process group is dead"
    known = ended.signal in set(signal.Signals)
    told = {
        "exited": f"exit code {ended.code}",
        "signalled": f"killed by signal {ended.signal} ({signal.Signals(ended.signal).name if known else 'unknown'})",
        "timed_out": f"timed out after {seconds} s; {dead}",
    }.get(ended.how, f"stopped before its end; {dead}")
    if ended.strays:
        told += f"\n({ended.strays} of its processes still ran and were ended; what is to go on needs background=true.)"
    if not ended.contained:
        told += "\n(On this system a process that left the command's process group would not be found.)"
    return told


def _result(kept: Kept, told: str, handle: str, ended: Ended | None) -> Data:
    parts = shaped(kept.text, handle, SHOWN - STATUS)
    parts["output"] = f"{told}\n{parts['output'] or NOTHING}"
    if ended is None:
        return {**parts}
    return {**parts, "exit_code": ended.code, "how": ended.how, "seconds": ended.seconds}
