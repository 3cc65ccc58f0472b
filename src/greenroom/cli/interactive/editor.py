"""A terminal prompt with several lines, history and completion. Imported only when a prompt is shown."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import TextIO

from prompt_toolkit import PromptSession, print_formatted_text
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.styles import Style

from greenroom.app.conversation.chat_input import (
    COMMANDS,
    EndOfInput,
    InputEvent,
    InterruptInput,
    TextInput,
    WakeInput,
    is_unfinished,
)
from greenroom.cli.render.questions import forget_typed, yes_or_no
from greenroom.core.base.text import remove_control_characters

CONTINUATION_PROMPT = "· "
STYLE = Style.from_dict({"prompt": "bold", "completion-menu": "noreverse", "bottom-toolbar": "noreverse"})

Files = Callable[[str], Iterable[str]]


class TerminalPrompt:
    """A prompt at a terminal. A draft that was interrupted is restored afterwards."""

    is_attended = True
    can_choose = True

    def __init__(
        self,
        stdin: TextIO,
        out: TextIO,
        files: Files,
        before: Callable[[], AsyncIterator[str]] | None,
        commands: Mapping[str, str] = COMMANDS,
    ) -> None:
        self._draft = ""
        self._woken = False
        keys, screen = create_input(stdin), create_output(out)
        depth = ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None
        self._question = PromptSession[str](input=keys, output=screen, color_depth=depth, style=STYLE)
        self._session = PromptSession[str](
            input=keys,
            output=screen,
            color_depth=depth,
            style=STYLE,
            multiline=True,
            prompt_continuation=CONTINUATION_PROMPT,
            key_bindings=_make_key_bindings(),
            completer=PromptCompleter(files, commands),
            complete_while_typing=True,
            enable_suspend=True,
            reserve_space_for_menu=4,
            history=PromptHistory(before) if before is not None else None,
        )

    async def read_text(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> InputEvent:
        """Read a text, unless another event comes first."""
        draft, self._draft, self._woken = self._draft, "", False
        watching = asyncio.create_task(self._yield_to(woken))
        try:
            self._session.app.erase_when_done = False
            text = await _prompt(self._session, tip, default=draft)
        except KeyboardInterrupt:
            return InterruptInput()
        except EOFError:
            return EndOfInput()
        finally:
            watching.cancel()
        return WakeInput() if self._woken else TextInput(text=text)

    async def confirm(self, tip: str, *, default: bool) -> bool:
        """Ask a yes/no question; Ctrl-C and Ctrl-D mean no."""
        self._forget_typed()
        try:
            word = await _prompt(self._question, yes_or_no(tip, default=default))
        except (KeyboardInterrupt, EOFError):
            return False
        return word.strip().lower() in ("y", "yes") if word.strip() else default

    async def read_line(self, tip: str) -> str | None:
        """Ask a question and read a line; None on Ctrl-C and Ctrl-D."""
        self._forget_typed()
        try:
            return await _prompt(self._question, tip)
        except (KeyboardInterrupt, EOFError):
            return None

    def _forget_typed(self) -> None:
        clear_typeahead(self._question.input)
        forget_typed()

    def interrupt(self) -> None:
        """Handle a Ctrl-C that arrived as a signal."""
        for app in (self._session.app, self._question.app):
            if app.is_running:
                app.exit(exception=KeyboardInterrupt())

    async def _yield_to(self, woken: asyncio.Event) -> None:
        await woken.wait()
        app = self._session.app
        if app.is_running:
            self._draft, self._woken = self._session.default_buffer.text, True
            app.erase_when_done = True
            app.exit(result="")


async def _prompt(session: PromptSession[str], tip: str, default: str = "") -> str:
    first_lines, newline, last = remove_control_characters(tip).rpartition("\n")
    if newline:
        print_formatted_text(first_lines, output=session.output)  # only the last line of a prompt is wrapped
    return await session.prompt_async(
        [("class:prompt", last)], default=default, handle_sigint=False, set_exception_handler=False
    )


class PromptCompleter(Completer):
    """Completes commands after `/` and files after `@`."""

    def __init__(self, files: Files, commands: Mapping[str, str] = COMMANDS) -> None:
        self._files = files
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield completions of the word before the cursor."""
        line = document.text_before_cursor
        word = line.rsplit(maxsplit=1)[-1] if line and not line[-1].isspace() else ""
        if line.startswith("/") and word == line:
            for name, about in self._commands.items():
                if name.startswith(word[1:]):
                    yield Completion(f"/{name}", start_position=-len(word), display_meta=about)
        elif word.startswith("@"):
            for path in self._files(word[1:]):
                yield Completion(f"@{path}", start_position=-len(word))


class PromptHistory(InMemoryHistory):
    """Lines typed before, loaded on first use. Only this process adds to it."""

    def __init__(self, source: Callable[[], AsyncIterator[str]]) -> None:
        super().__init__()
        self._source = source
        self._is_loaded = False

    async def load(self) -> AsyncGenerator[str, None]:
        """Yield the lines, newest first."""
        if not self._is_loaded:
            self._is_loaded = True
            self._loaded_strings = [*self._loaded_strings, *[line async for line in self._source()]]
        for line in self._loaded_strings:
            yield line


def _make_key_bindings() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        """Send the text, unless it is unfinished or a completion is being chosen."""
        buffer = event.current_buffer
        choosing = buffer.complete_state is not None and buffer.complete_state.current_completion is not None
        if choosing and not buffer.text.startswith("/"):
            buffer.complete_state = None
        elif is_unfinished(buffer.text):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _stop(event: KeyPressEvent) -> None:
        """Clear the typed text; if there is none, interrupt."""
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt())

    return keys
