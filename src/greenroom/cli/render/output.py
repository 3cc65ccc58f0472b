"""Results on stdout: text for people, one JSON object, or one line of JSON per item."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING, TextIO

import typer
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from greenroom.app.messages import MESSAGES, current_language
from greenroom.app.runtime import LoggedEvent
from greenroom.cli.errors import Json, StdoutFault, explain, init_fields, result_fields, write_line
from greenroom.cli.exit_codes import Exit
from greenroom.cli.process import silence
from greenroom.cli.setup import Format
from greenroom.core.base.text import CONTROL_CHARACTERS
from greenroom.core.ports.codec import encode_event

if TYPE_CHECKING:
    from greenroom.app.toolset.redaction import SecretRedactor


def event_fields(team: str, logged_event: LoggedEvent, subtask: str = "") -> dict[str, object]:
    """Return an event as fields: `{"type": "StepStarted", "version": 12, "team": "k3f…", "at": …, …}`.

    `subtask` is the name of the subtask that the event belongs to.
    """
    encoded = encode_event(logged_event.event)
    named = {"subtask": subtask} if subtask else {}
    return {"type": encoded.type, "version": logged_event.version, "team": team, **named, **json.loads(encoded.data)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table. `can_shrink`: it is cut if space is short. It is left out below `min_terminal_width`."""

    name: str
    style: str = ""
    right: bool = False
    can_shrink: bool = False
    min_width: int = 0
    min_terminal_width: int = 0


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table of texts. With `is_expanded` it takes the whole width, so that it does not jump when it changes."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]
    is_expanded: bool = False

    def __rich_console__(self, _: RichConsole, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=self.is_expanded)
        shown = [
            index
            for index, column_spec in enumerate(self.columns)
            if column_spec.min_terminal_width <= options.max_width
        ]
        headings = MESSAGES.table("columns", current_language())
        for column in (self.columns[index] for index in shown):
            table.add_column(
                Text(headings.get(column.name, column.name), no_wrap=True, overflow="ellipsis"),
                style=column.style,
                justify="right" if column.right else "left",
                min_width=column.min_width or None,
                no_wrap=not column.can_shrink,
                ratio=1 if self.is_expanded and column.can_shrink and column.min_terminal_width == 0 else None,
            )
        for row in self.rows:
            table.add_row(*(row[index] for index in shown))
        yield table


def make_row(*cells: str | Text) -> list[Text]:
    """Make a row of cells that stay on one line."""
    texts = [Text(cell) if isinstance(cell, str) else cell for cell in cells]
    for text in texts:
        text.no_wrap, text.overflow = True, "ellipsis"
    return texts


PIPE_WIDTH = 160  # columns of a pipe, which does not cut lines


def strip_control_characters(text: str) -> str:
    """Remove terminal control characters: text of a model is not trusted."""
    return CONTROL_CHARACTERS.sub("", text)


class Console(RichConsole):
    """A console that strips control characters from text and raises `BrokenPipeError` like any other error."""

    def __init__(
        self, *, file: IO[str] | None = None, stderr: bool = False, highlight: bool = True, width: int | None = None
    ) -> None:
        super().__init__(file=file, stderr=stderr, highlight=highlight, width=width)
        if self.width < 1:  # `COLUMNS=0` means that the width is unknown
            self.width = shutil.get_terminal_size().columns

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Render segments; only the console's own control codes reach the terminal."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=strip_control_characters(segment.text))

    def on_broken_pipe(self) -> None:
        """Raise the error, so that the caller decides."""
        raise BrokenPipeError


class Output:
    """The output of a command. In text, `show` prints; in JSON, `item` and `stream` do, and `result` comes last."""

    def __init__(self, output_format: Format, stream: TextIO) -> None:
        self.format = output_format
        self.file = stream
        self.console = Console(file=stream, highlight=False)
        if not self.console.is_terminal:
            self.console = Console(file=stream, highlight=False, width=PIPE_WIDTH)
        self.command_info: dict[str, object] = {}
        self._items: dict[str, list[Json]] = {}
        self._team_fields: dict[str, object] = {}
        self.has_begun = False
        self._has_ended = False
        self._redactor: SecretRedactor | None = None

    def hide_secrets(self, secrets: SecretRedactor) -> None:
        """Remove these secrets from all later output, in every format."""
        self._redactor = secrets or None

    def redact(self, text: str) -> str:
        """Return the text without secrets."""
        return text if self._redactor is None else self._redactor.text(text)

    def redact_text(self, text: Text) -> Text:
        """Return the styled text without secrets. Only lines with a secret lose their style."""
        if self._redactor is None or not self._redactor.contains_secret(text.plain):
            return text
        lines = text.split(allow_blank=True)
        return Text("\n").join(
            Text(self.redact(line.plain)) if self._redactor.contains_secret(line.plain) else line for line in lines
        )

    def __enter__(self) -> Output:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write a JSON result for any error, so that a program always gets one."""
        if isinstance(error, Exception) and not isinstance(error, BrokenPipeError | typer.TyperException):
            self.result("error", Exit.FAILED, error=explain(error))

    @property
    def is_text(self) -> bool:
        """Whether the format is text."""
        return self.format == "text"

    def begin(self, **fields: object) -> None:
        """Write the first line of a stream: `command_info` and these fields. The team is repeated in the result."""
        self._team_fields = {name: fields[name] for name in fields if name == "team"}
        if not self.has_begun:
            self.has_begun = True
            if self.format == "stream-json":
                self._write(init_fields(**{**self.command_info, **fields}))

    def show(self, *parts: RenderableType) -> None:
        if self.is_text:
            with self._report_write_faults():
                for part in parts:
                    redacted = self.redact(part) if isinstance(part, str) else part
                    redacted = self.redact_text(redacted) if isinstance(redacted, Text) else redacted
                    self.console.print(redacted, soft_wrap=isinstance(redacted, str | Text))

    @property
    def is_live(self) -> bool:
        """Whether a person reads this on a terminal."""
        return self.is_text and self.console.is_terminal

    def write(self, text: str) -> None:
        """Write text unchanged; on a terminal without control characters."""
        if self.is_text:
            with self._report_write_faults():
                text = self.redact(text)
                self.file.write(strip_control_characters(text) if self.is_live else text)
                self.file.flush()

    def write_bytes(self, content: bytes) -> None:
        """Write bytes without an encoding, such as a patch. Never to a terminal."""
        if self.is_text:
            with self._report_write_faults():
                self.file.flush()
                self.file.buffer.write(content)
                self.file.buffer.flush()

    def expect(self, many: str) -> None:
        """Add this list to the JSON object, even if it stays empty."""
        self._items.setdefault(many, [])

    def listing(self, kind: str, items: Iterable[Json], *, many: str = "") -> None:
        """Write all items of a kind; the list exists even if it is empty."""
        self.expect(many or f"{kind}s")
        for fields in items:
            self.item(kind, fields, many=many)

    def item(self, kind: str, fields: Json, *, many: str = "") -> None:
        """Write one item of a kind."""
        if self.format == "stream-json":
            self._write({"type": kind, **fields})
        elif self.format == "json":
            self._items.setdefault(many or f"{kind}s", []).append(fields)

    def stream(self, team: str, logged_event: LoggedEvent, subtask: str = "") -> None:
        """Write an event of the log to a stream, with the name of its subtask."""
        if self.format == "stream-json":
            self._write(event_fields(team, logged_event, subtask))

    def result(self, status: str, code: Exit, /, **fields: object) -> Exit:
        """Write the result in JSON formats; return the code."""
        if not self.is_text and not self._has_ended:
            rest: Mapping[str, object] = self._items if self.format == "json" else {}
            self._write(result_fields(status, code, **{**self._team_fields, **fields, **rest}))
        self._has_ended = True
        return code

    def _write(self, fields: Json) -> None:
        if not self.has_begun:
            self.begin()
        with self._report_write_faults():
            write_line(self.file, fields if self._redactor is None else self._redactor.data(fields))

    @contextmanager
    def _report_write_faults(self) -> Iterator[None]:
        """Turn a failed write to stdout into `StdoutFault`, and write nothing more."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            self._has_ended = True
            silence(self.file)
            raise StdoutFault(error) from error
