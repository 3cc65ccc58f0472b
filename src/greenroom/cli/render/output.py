"""The answer, on stdout: text for people, one JSON object, or a line of JSON per item."""

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

from greenroom.app.runtime import Told
from greenroom.cli.errors import Json, Unheard, explain, init, result, write
from greenroom.cli.exit_codes import Exit
from greenroom.cli.process import hush
from greenroom.cli.setup import Format
from greenroom.core.base.text import UNSEEN
from greenroom.core.ports.codec import encode_event

if TYPE_CHECKING:
    from greenroom.app.toolset.redaction import Redaction


def event_fields(team: str, told: Told) -> dict[str, object]:
    """`{"type": "StepStarted", "version": 12, "team": "k3f…", "at": …, …}`."""
    encoded = encode_event(told.event)
    return {"type": encoded.type, "version": told.version, "team": team, **json.loads(encoded.data)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that `gives` way is cut when there is no room; one that `needs` so many columns is else left out."""

    name: str
    style: str = ""
    right: bool = False
    gives: bool = False
    least: int = 0
    needs: int = 0


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table of texts. One that is `spread` takes the whole width, so that it does not jump when it changes."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]
    spread: bool = False

    def __rich_console__(self, _: RichConsole, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=self.spread)
        shown = [place for place, one in enumerate(self.columns) if one.needs <= options.max_width]
        for column in (self.columns[place] for place in shown):
            table.add_column(
                Text(column.name, no_wrap=True, overflow="ellipsis"),
                style=column.style,
                justify="right" if column.right else "left",
                min_width=column.least or None,
                no_wrap=not column.gives,
                ratio=1 if self.spread and column.gives and column.needs == 0 else None,
            )
        for row in self.rows:
            table.add_row(*(row[place] for place in shown))
        yield table


def row(*cells: str | Text) -> list[Text]:
    """Cells that stay on one line."""
    texts = [Text(cell) if isinstance(cell, str) else cell for cell in cells]
    for text in texts:
        text.no_wrap, text.overflow = True, "ellipsis"
    return texts


WIDE = 160  # columns when nobody looks: a pipe does not cut lines


def harmless(text: str) -> str:
    """The text without what would steer a terminal: a model's words are a stranger's."""
    return UNSEEN.sub("", text)


class Console(RichConsole):
    """A console that shows text and obeys none of it, and lets a broken pipe be an error like any other."""

    def __init__(
        self, *, file: IO[str] | None = None, stderr: bool = False, highlight: bool = True, width: int | None = None
    ) -> None:
        super().__init__(file=file, stderr=stderr, highlight=highlight, width=width)
        if self.width < 1:  # `COLUMNS=0` says that nobody knows, and not that nothing is to be seen
            self.width = shutil.get_terminal_size().columns

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """What is printed; wherever a word in it comes from, only the console's own signs steer the terminal."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=harmless(segment.text))

    def on_broken_pipe(self) -> None:
        """Let whoever prints decide."""
        raise BrokenPipeError


class Output:
    """One per command. In text, `show` prints; in JSON, `item` and `event` do, and `result` always comes last."""

    def __init__(self, output_format: Format, stream: TextIO) -> None:
        self.format = output_format
        self.file = stream
        self.console = Console(file=stream, highlight=False)
        if not self.console.is_terminal:
            self.console = Console(file=stream, highlight=False, width=WIDE)
        self.known: dict[str, object] = {}
        self._items: dict[str, list[Json]] = {}
        self._about: dict[str, object] = {}
        self._begun = False
        self._ended = False
        self._hidden: Redaction | None = None

    def hide(self, secrets: Redaction) -> None:
        """From now on these stand in nothing that is shown or told, in whichever format."""
        self._hidden = secrets or None

    def safe(self, text: str) -> str:
        """A text without what is hidden."""
        return text if self._hidden is None else self._hidden.text(text)

    def safe_text(self, text: Text) -> Text:
        """The same for one with colours, which only a line with something hidden loses."""
        if self._hidden is None or not self._hidden.finds(text.plain):
            return text
        lines = text.split(allow_blank=True)
        return Text("\n").join(Text(self.safe(one.plain)) if self._hidden.finds(one.plain) else one for one in lines)

    def __enter__(self) -> Output:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Whatever breaks, a program that reads this hears how it ended."""
        if isinstance(error, Exception) and not isinstance(error, BrokenPipeError | typer.TyperException):
            self.result("error", Exit.FAILED, error=explain(error))

    @property
    def text(self) -> bool:
        """Whether a person reads this."""
        return self.format == "text"

    def begin(self, **fields: object) -> None:
        """The first line of a stream: what is `known` of the command, and this. Which team it is about is said at the
        end too, however it ends."""
        self._about = {name: fields[name] for name in fields if name == "team"}
        if not self._begun:
            self._begun = True
            if self.format == "stream-json":
                self._write(init(**{**self.known, **fields}))

    def show(self, *what: RenderableType) -> None:
        if self.text:
            with self._heard():
                for one in what:
                    shown = self.safe(one) if isinstance(one, str) else one
                    shown = self.safe_text(shown) if isinstance(shown, Text) else shown
                    self.console.print(shown, soft_wrap=isinstance(shown, str | Text))

    @property
    def live(self) -> bool:
        """Whether a person reads this on a terminal, as it comes."""
        return self.text and self.console.is_terminal

    def write(self, text: str) -> None:
        """Print as it is: an answer keeps its tabs and brackets. On a terminal it may not steer it."""
        if self.text:
            with self._heard():
                text = self.safe(text)
                self.file.write(harmless(text) if self.live else text)
                self.file.flush()

    def write_bytes(self, content: bytes) -> None:
        """Hand on to a program byte for byte what has no encoding: a patch. Never to a terminal."""
        if self.text:
            with self._heard():
                self.file.flush()
                self.file.buffer.write(content)
                self.file.buffer.flush()

    def expect(self, many: str) -> None:
        """In one JSON object the list is there, also when nothing comes."""
        self._items.setdefault(many, [])

    def listing(self, kind: str, items: Iterable[Json], *, many: str = "") -> None:
        """All things of a kind, in a list that is there also when it is empty."""
        self.expect(many or f"{kind}s")
        for fields in items:
            self.item(kind, fields, many=many)

    def item(self, kind: str, fields: Json, *, many: str = "") -> None:
        """One of several things of a kind."""
        if self.format == "stream-json":
            self._write({"type": kind, **fields})
        elif self.format == "json":
            self._items.setdefault(many or f"{kind}s", []).append(fields)

    def stream(self, team: str, told: Told) -> None:
        """One event of the log, in a stream."""
        if self.format == "stream-json":
            self._write(event_fields(team, told))

    def result(self, status: str, code: Exit, /, **fields: object) -> Exit:
        """The end of it, always printed in JSON; returns the code."""
        if not self.text and not self._ended:
            rest: Mapping[str, object] = self._items if self.format == "json" else {}
            self._write(result(status, code, **{**self._about, **fields, **rest}))
        self._ended = True
        return code

    def _write(self, fields: Json) -> None:
        if not self._begun:
            self.begin()
        with self._heard():
            write(self.file, fields if self._hidden is None else self._hidden.data(fields))

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """A stdout that cannot be written is said by name, and nothing more is written to it."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            self._ended = True
            hush(self.file)
            raise Unheard(error) from error
