"""A person who types: at a prompt, or lines of a pipe, of a file, or of a terminal that can draw no prompt."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from greenroom.app.conversation.typed import Gone, Nobody, Person, Read, Stopped, Woken, Written, unfinished
from greenroom.cli.render.output import Output
from greenroom.cli.render.questions import forget_typed, yes_or_no
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.text import seen

TERMINAL: Final = Path("/dev/tty")
MOST: Final = 1_000_000  # bytes of one line


class PlainLines:
    """Each line is one text; `attended` says that a person types them. A thread reads, which is not waited for in the
    end, from a buffer of its own: that of `sys.stdin` would be locked then."""

    def __init__(self, number: int = 0, *, attended: bool = False) -> None:
        self.attended = self.chooses = attended
        self._number = number
        self._wanted = threading.Semaphore(0)
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._pressed = asyncio.Event()
        self._pending: asyncio.Task[bytes | None] | None = None
        self._begun: list[str] = []
        self._count = 0
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    async def write(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> Read:
        """The next text, however many lines it has. Who is woken between two of them comes back for the rest. `Refused`
        for a line that cannot be read: what comes behind it is not read either, for it may mean something else then."""
        found = self._begun
        while not found or unfinished("\n".join(found)):
            self._say(tip if not found else "· ")
            line = await self._next(woken)
            if isinstance(line, Woken):
                return line
            if isinstance(line, Stopped):
                self._begun = []
                return line
            if line is None:
                self._say("\n")
                break
            found.append(self._decoded(line))
        self._begun = []
        return Written(text="\n".join(found)) if found else Gone()

    async def agrees(self, tip: str, *, default: bool) -> bool:
        """A yes or a no; nobody there means the default."""
        word = (await self.replies(yes_or_no(tip, default=default)) or "").strip().lower()
        return word in ("y", "yes") if word else default

    async def replies(self, tip: str) -> str | None:
        """A line. What a person typed before they were asked is no answer; lines of a file have only their order."""
        if self.attended:
            forget_typed()
        self._say(tip)
        line = await self._next(asyncio.Event())
        return self._decoded(line) if isinstance(line, bytes) else None

    def stop(self) -> None:
        self._pressed.set()

    def _say(self, tip: str) -> None:
        if self.attended:
            sys.stderr.write(seen(tip))
            sys.stderr.flush()

    async def _next(self, woken: asyncio.Event) -> bytes | Woken | Stopped | None:
        """A line, or what comes before it. A line that was waited for in vain is the next one's."""
        if self._pending is None:
            self._wanted.release()
            self._pending = asyncio.create_task(self._lines.get())
        others = [asyncio.create_task(woken.wait()), asyncio.create_task(self._pressed.wait())]
        try:
            await asyncio.wait((self._pending, *others), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for other in others:
                other.cancel()
        if self._pending.done():
            line, self._pending = self._pending.result(), None
            self._count += 1
            return line
        if self._pressed.is_set():
            self._pressed.clear()
            return Stopped()
        return Woken()

    def _read(self) -> None:
        """The thread: one line at a time, when it is wanted. Nothing at the end, or where the terminal has gone."""
        with os.fdopen(self._number, "rb", closefd=False) as file:
            while True:
                self._wanted.acquire()
                try:
                    line = file.readline(MOST + 1)
                except OSError:
                    line = b""
                try:
                    self._loop.call_soon_threadsafe(self._lines.put_nowait, line.removesuffix(b"\n") if line else None)
                except RuntimeError:
                    return  # the loop is over, and so are we

    def _decoded(self, line: bytes) -> str:
        """The line that came last, as text."""
        if len(line) > MOST:
            why = f"Line {self._count} of stdin has more than 1 MB."
            raise Refused(Rejected(code="too_long", why=why, hint="Split it."))
        try:
            text = line.decode("utf-8-sig").rstrip("\r")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            why = f"Line {self._count} of stdin is no text."
            raise Refused(Rejected(code="no_text", why=why, hint="Write it in UTF-8."))
        return text


@dataclass(frozen=True, kw_only=True)
class Aids:
    """What a person who types is offered: commands behind a slash, words behind an @, and what they typed before."""

    commands: Mapping[str, str]
    words: Callable[[str], Iterable[str]]
    before: Callable[[], AsyncIterator[str]] | None = None


@contextmanager
def typist(out: Output, aids: Aids, first: str = "") -> Iterator[Person]:
    """The person at the terminal; else the lines on stdin, or nobody if that was context. `first` is what was said
    already."""
    with ExitStack() as open_:
        terminal = _terminal(open_, out, first)
        if terminal is None:
            yield Nobody() if first else PlainLines(sys.stdin.fileno())
        elif os.environ.get("TERM") == "dumb":
            yield PlainLines(terminal.fileno(), attended=True)
        else:
            from greenroom.cli.interactive.editor import Prompt

            yield Prompt(terminal, _screen(open_, out), aids.words, aids.before, aids.commands)


def _terminal(open_: ExitStack, out: Output, first: str) -> TextIO | None:
    """Where somebody types: stdin, or the terminal behind it when stdin was only context."""
    if sys.stdin.isatty():
        return sys.stdin
    if not first or not out.file.isatty():
        return None
    try:
        return open_.enter_context(TERMINAL.open(encoding="utf-8"))
    except OSError:
        return None


def _screen(open_: ExitStack, out: Output) -> TextIO:
    """Where the prompt is shown: not among the answers, if that can be."""
    shown = next((stream for stream in (sys.stderr, out.file) if stream.isatty()), None)
    return shown or open_.enter_context(TERMINAL.open("w", encoding="utf-8"))
