"""Reading what a person types: at a prompt, or as plain lines of a pipe, a file or a simple terminal."""

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

from greenroom.app.conversation.chat_input import (
    EndOfInput,
    InputEvent,
    InterruptInput,
    NoPersonInput,
    PersonInput,
    TextInput,
    WakeInput,
    is_unfinished,
)
from greenroom.app.messages import translate
from greenroom.cli.render.output import Output
from greenroom.cli.render.questions import forget_typed, yes_or_no
from greenroom.core.base.errors import make_refusal
from greenroom.core.base.text import remove_control_characters

TERMINAL_PATH: Final = Path("/dev/tty")
MAX_LINE_BYTES: Final = 1_000_000  # bytes of a line


class PlainLines:
    """Reads each line as one text; `is_attended` says that a person types them.

    A thread reads from its own buffer and is not joined at the end: the buffer of `sys.stdin` would stay locked.
    """

    def __init__(self, number: int = 0, *, attended: bool = False) -> None:
        self.is_attended = self.can_choose = attended
        self._number = number
        self._line_wanted = threading.Semaphore(0)
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._interrupted = asyncio.Event()
        self._pending: asyncio.Task[bytes | None] | None = None
        self._partial_text: list[str] = []
        self._count = 0
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read_in_thread, name="stdin", daemon=True).start()

    async def read_text(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> InputEvent:
        """Read the next text, which may span lines. If woken in between, keep the lines read so far.

        Raise `RefusedError` for a line that cannot be decoded. Later lines are not read, because their meaning may
        depend on it.
        """
        lines = self._partial_text
        while not lines or is_unfinished("\n".join(lines)):
            self._print_prompt(tip if not lines else "· ")
            line = await self._next_line(woken)
            if isinstance(line, WakeInput):
                return line
            if isinstance(line, InterruptInput):
                self._partial_text = []
                return line
            if line is None:
                self._print_prompt("\n")
                break
            lines.append(self._decode_line(line))
        self._partial_text = []
        return TextInput(text="\n".join(lines)) if lines else EndOfInput()

    async def confirm(self, tip: str, *, default: bool) -> bool:
        """Ask a yes/no question; return the default if there is no answer."""
        word = (await self.read_line(yes_or_no(tip, default=default)) or "").strip().lower()
        return word in ("y", "yes") if word else default

    async def read_line(self, tip: str) -> str | None:
        """Ask a question and read a line. Drop what a person typed before the question; keep the lines of a file."""
        if self.is_attended:
            forget_typed()
        self._print_prompt(tip)
        line = await self._next_line(asyncio.Event())
        return self._decode_line(line) if isinstance(line, bytes) else None

    def interrupt(self) -> None:
        self._interrupted.set()

    def _print_prompt(self, tip: str) -> None:
        if self.is_attended:
            sys.stderr.write(remove_control_characters(tip))
            sys.stderr.flush()

    async def _next_line(self, woken: asyncio.Event) -> bytes | WakeInput | InterruptInput | None:
        """Return the next line, or the event that came before it. The pending line is kept for the next call."""
        if self._pending is None:
            self._line_wanted.release()
            self._pending = asyncio.create_task(self._lines.get())
        others = [asyncio.create_task(woken.wait()), asyncio.create_task(self._interrupted.wait())]
        try:
            await asyncio.wait((self._pending, *others), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for other in others:
                other.cancel()
        if self._pending.done():
            line, self._pending = self._pending.result(), None
            self._count += 1
            return line
        if self._interrupted.is_set():
            self._interrupted.clear()
            return InterruptInput()
        return WakeInput()

    def _read_in_thread(self) -> None:
        """Read one line at a time on request, in a thread. At the end of the input the line is None."""
        with os.fdopen(self._number, "rb", closefd=False) as file:
            while True:
                self._line_wanted.acquire()
                try:
                    line = file.readline(MAX_LINE_BYTES + 1)
                except OSError:
                    line = b""
                try:
                    self._loop.call_soon_threadsafe(self._lines.put_nowait, line.removesuffix(b"\n") if line else None)
                except RuntimeError:
                    return  # the event loop is closed

    def _decode_line(self, line: bytes) -> str:
        if len(line) > MAX_LINE_BYTES:
            why = translate("lines.stdin_line_too_long", count=self._count)
            raise make_refusal("too_long", why, translate("lines.split"))
        try:
            text = line.decode("utf-8-sig").rstrip("\r")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            why = translate("lines.stdin_line_not_utf8", count=self._count)
            raise make_refusal("no_text", why, translate("lines.use_utf8"))
        return text


@dataclass(frozen=True, kw_only=True)
class TypingAids:
    """What a prompt offers: commands after a slash, words after an @, and the history."""

    commands: Mapping[str, str]
    words: Callable[[str], Iterable[str]]
    history: Callable[[], AsyncIterator[str]] | None = None


@contextmanager
def open_typist(out: Output, aids: TypingAids, first: str = "") -> Iterator[PersonInput]:
    """Yield the person at the terminal, else the lines on stdin. Yield no input if stdin was context of `first`."""
    with ExitStack() as exit_stack:
        terminal = _find_terminal(exit_stack, out, first)
        if terminal is None:
            yield NoPersonInput() if first else PlainLines(sys.stdin.fileno())
        elif os.environ.get("TERM") == "dumb":
            yield PlainLines(terminal.fileno(), attended=True)
        else:
            from greenroom.cli.interactive.editor import TerminalPrompt

            yield TerminalPrompt(terminal, _find_screen(exit_stack, out), aids.words, aids.history, aids.commands)


def _find_terminal(exit_stack: ExitStack, out: Output, first: str) -> TextIO | None:
    """Return the terminal to read from: stdin, or /dev/tty if stdin was only context."""
    if sys.stdin.isatty():
        return sys.stdin
    if not first or not out.file.isatty():
        return None
    try:
        return exit_stack.enter_context(TERMINAL_PATH.open(encoding="utf-8"))
    except OSError:
        return None


def _find_screen(exit_stack: ExitStack, out: Output) -> TextIO:
    """Return the stream for the prompt: stderr if possible, so that it does not mix with the answers."""
    shown = next((stream for stream in (sys.stderr, out.file) if stream.isatty()), None)
    return shown or exit_stack.enter_context(TERMINAL_PATH.open("w", encoding="utf-8"))
