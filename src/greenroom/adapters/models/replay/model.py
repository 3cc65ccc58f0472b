"""Writing down what a model is asked and answers, while it is asked. Nobody who uses the model notices."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from msgspec import to_builtins
from msgspec.json import decode

from greenroom.adapters.models.replay.cassette import (
    FIRST_LINE,
    TAGS,
    Cassette,
    Redaction,
    Tape,
    canonical,
    cleaned,
    is_cassette,
    key,
    refuse_special,
)
from greenroom.adapters.models.retry import Around
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, as_dict, encode
from greenroom.core.ports.model import Failed, Finished, Listening, Model, ModelCard, ModelEvent, ModelRequest, Usage

ONLY_OURS: Final = 0o600
IN_PIECES: Final = ("text", "reasoning")


class Recorder:
    """A recording that is being made; several models may share it.

    `secrets` are never written, nor is what looks like a key. When the file cannot be written any more, `trouble` says
    why: the run goes on, only the recording is incomplete.
    """

    def __init__(self, path: str | Path, *, secrets: Iterable[str] = (), overwrite: bool = False) -> None:
        self.path = Path(path)
        self.trouble = ""
        self.redaction = Redaction(secrets)
        self._file = _opened(self.path, overwrite=overwrite)
        self.write(FIRST_LINE)

    def wrap(self, model: Model) -> RecordingModel:
        """The same model, recorded."""
        return RecordingModel(model, self)

    def write(self, line: bytes) -> None:
        """Append a line at once, so that lines of several models never mix."""
        if self.trouble:
            return
        try:
            if os.write(self._file, line) < len(line):
                raise OSError("the disk is full")
        except OSError as fault:
            self.trouble = f"The recording {str(self.path)!r} cannot be written any more: {fault.strerror or fault}."
            logging.getLogger(__name__).warning("%s The run goes on without it.", self.trouble)

    def close(self) -> None:
        """End the recording; calls that end later are not written."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self.trouble = self.trouble or f"The recording {str(self.path)!r} is closed."

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


def _opened(path: Path, *, overwrite: bool) -> int:
    """A file that only we can read, since a conversation may hold more than keys. Nothing else is ever overwritten."""
    refuse_special(path)
    try:
        with path.open("rb") as old:
            first = old.readline()
    except FileNotFoundError:
        first = b""
    except OSError as fault:
        raise WorldFault(f"The recording {str(path)!r} cannot be opened: {fault.strerror}.") from fault
    if first and not is_cassette(first):
        raise WorldFault(f"{str(path)!r} is there and is no recording; it is left as it is. Choose another file.")
    if first and not overwrite:
        raise WorldFault(f"The recording {str(path)!r} is there already. Choose another file, or allow overwriting.")
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, ONLY_OURS)
        path.chmod(ONLY_OURS)
    except OSError as fault:
        raise WorldFault(f"The recording {str(path)!r} cannot be opened: {fault.strerror}.") from fault
    return file


class RecordingModel(Around):
    """A model whose answers are written down when they have ended. One that nobody waited for is not written."""

    def __init__(self, model: Model, recorder: Recorder) -> None:
        super().__init__(model)
        self._recorder = recorder

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The model's own events. What ends them is written down before it is given on: many stop reading there."""
        heard: list[ModelEvent] = []
        async with Listening(self._model.stream(request)) as events:
            async for event in events:
                heard.append(event)
                if isinstance(event, Finished | Failed):
                    self._recorder.write(self._line(request, heard))
                yield event

    def _line(self, request: ModelRequest, heard: list[ModelEvent]) -> bytes:
        redaction = self._recorder.redaction
        form = canonical(request, self.name, redaction.text)
        end = heard[-1]
        used = [event for event in heard if isinstance(event, Usage)]
        tape = Tape(
            key=key(form),
            request=decode(form),
            events=tuple(redacted(heard, redaction)),
            usage=used[-1] if used else None,
            finish=end if isinstance(end, Finished) else None,
            error=end if isinstance(end, Failed) else None,
        )
        return encode(cleaned(to_builtins(tape, enc_hook=as_dict), redaction.text)) + b"\n"


def redacted(heard: Iterable[ModelEvent], redaction: Redaction) -> list[Data]:
    """The events between request and end, as they are written, with their cuts but without secrets."""
    said: list[Data] = [
        {"t": TAGS[type(event)], **to_builtins(event, enc_hook=as_dict)} for event in heard if type(event) in TAGS
    ]
    for tag in IN_PIECES:
        places = [place for place, event in enumerate(said) if event["t"] == tag]
        pieces = redaction.pieces([str(said[place]["text"]) for place in places])
        for place, piece in zip(places, pieces, strict=True):
            said[place] = {"t": tag, "text": piece}
    return said


class ReplayModel:
    """Plays a recording: a file, or a `Cassette` that several models share.

    `name` says which of the recorded models this one is; it may be left out if there is one only. The `secrets` must be
    those it was recorded with.
    """

    def __init__(
        self,
        recording: Cassette | str | Path,
        *,
        name: str = "",
        card: ModelCard | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        self.cassette = recording if isinstance(recording, Cassette) else Cassette(recording)
        self.name = name or _only(self.cassette)
        self.card = card or ModelCard()
        self._clean = Redaction(secrets).text

    def price(self, read: int, written: int) -> int | None:
        """Nothing is paid twice."""
        return 0

    def unused(self) -> tuple[Tape, ...]:
        """What was recorded and never asked for."""
        return self.cassette.unused()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The recorded answer, in the pieces in which it came."""
        form = canonical(request, self.name, self._clean)
        name = key(form)
        tape = self.cassette.take(name, request.purpose)
        events = iter([self.cassette.missing(name, form)]) if tape is None else tape.played()
        for event in events:
            # Others get their turn between two pieces, as with a real model.
            await asyncio.sleep(0)
            yield event


def _only(cassette: Cassette) -> str:
    match cassette.models:
        case (one,):
            return one
        case ():
            return "replay:empty"
        case several:
            names = ", ".join(several)
            raise WorldFault(
                f"The recording {cassette.path.name!r} has several models; say which one to play: {names}."
            )


class Playing:
    """A recording in the place of all models: whoever was recorded answers under its own name, and else the first.

    `card` says what is known of a model by its name: who plays it must be asked just as it was.
    """

    def __init__(
        self, recording: str | Path, *, card: Callable[[str], ModelCard] | None = None, secrets: Iterable[str] = ()
    ) -> None:
        self.cassette = Cassette(recording)
        self._card = card
        self._secrets = tuple(secrets)

    @property
    def main(self) -> str:
        """The model that was recorded first."""
        return next(iter(self.cassette.models), "replay:empty")

    def named(self, name: str) -> ReplayModel:
        """The recorded model of this name."""
        chosen = name if name in self.cassette.models else self.main
        card = self._card(chosen) if self._card is not None else None
        return ReplayModel(self.cassette, name=chosen, card=card, secrets=self._secrets)
