"""Models that record requests and responses, and models that replay a recording."""

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

from greenroom.adapters.models.replay.recording import (
    EVENT_TAGS,
    FIRST_LINE,
    ModelRecording,
    RecordedCall,
    RecordingRedaction,
    clean_data,
    encode_canonical,
    hash_request,
    is_recording,
    refuse_special_file,
)
from greenroom.adapters.models.retry import ModelWrapper
from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import Data, as_dict, encode
from greenroom.core.ports.model import (
    ClosingStream,
    Failed,
    Finished,
    Model,
    ModelCard,
    ModelEvent,
    ModelRequest,
    Usage,
)

PRIVATE_MODE: Final = 0o600
STREAMED_TAGS: Final = ("text", "reasoning")


class Recorder:
    """Writes a recording; several models may share it.

    `secrets` and anything that looks like a key are never written. If writing fails, `problem` says why. The run
    continues, and only the recording is incomplete.
    """

    def __init__(self, path: str | Path, *, secrets: Iterable[str] = (), overwrite: bool = False) -> None:
        self.path = Path(path)
        self.problem = ""
        self.redaction = RecordingRedaction(secrets)
        self._file = _open_file(self.path, overwrite=overwrite)
        self.write(FIRST_LINE)

    def wrap(self, model: Model) -> RecordingModel:
        return RecordingModel(model, self)

    def write(self, line: bytes) -> None:
        """Append a line in one write, so that lines of several models never mix."""
        if self.problem:
            return
        try:
            if os.write(self._file, line) < len(line):
                raise OSError("the disk is full")
        except OSError as fault:
            self.problem = f"The recording {str(self.path)!r} can no longer be written: {fault.strerror or fault}."
            logging.getLogger(__name__).warning("%s The run continues without it.", self.problem)

    def close(self) -> None:
        """Close the recording. Calls that end later are not written."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self.problem = self.problem or translate("models.recording_closed", path=str(self.path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


def _open_file(path: Path, *, overwrite: bool) -> int:
    """Open a private file, because a conversation may hold more than keys. Only recordings are overwritten."""
    refuse_special_file(path)
    try:
        with path.open("rb") as existing:
            first = existing.readline()
    except FileNotFoundError:
        first = b""
    except OSError as fault:
        raise WorldFault("models.recording_not_opened", path=str(path), strerror=fault.strerror) from fault
    if first and not is_recording(first):
        raise WorldFault("models.existing_not_recording", path=str(path))
    if first and not overwrite:
        raise WorldFault("models.recording_exists", path=str(path))
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, PRIVATE_MODE)
        path.chmod(PRIVATE_MODE)
    except OSError as fault:
        raise WorldFault("models.recording_not_opened", path=str(path), strerror=fault.strerror) from fault
    return file


class RecordingModel(ModelWrapper):
    """A model whose finished responses are recorded. A cancelled response is not."""

    def __init__(self, model: Model, recorder: Recorder) -> None:
        super().__init__(model)
        self._recorder = recorder

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the model's events. The call is recorded before its last event is yielded, because many callers stop
        there."""
        recorded: list[ModelEvent] = []
        async with ClosingStream(self._model.stream(request)) as events:
            async for event in events:
                recorded.append(event)
                if isinstance(event, Finished | Failed):
                    self._recorder.write(self._encode_line(request, recorded))
                yield event

    def _encode_line(self, request: ModelRequest, recorded: list[ModelEvent]) -> bytes:
        redaction = self._recorder.redaction
        form = encode_canonical(request, self.name, redaction.redact)
        end = recorded[-1]
        usages = [event for event in recorded if isinstance(event, Usage)]
        call = RecordedCall(
            key=hash_request(form),
            request=decode(form),
            events=tuple(redact_events(recorded, redaction)),
            usage=usages[-1] if usages else None,
            finish=end if isinstance(end, Finished) else None,
            error=end if isinstance(end, Failed) else None,
        )
        return encode(clean_data(to_builtins(call, enc_hook=as_dict), redaction.redact)) + b"\n"


def redact_events(events: Iterable[ModelEvent], redaction: RecordingRedaction) -> list[Data]:
    """Return the events of a response for the file, in their pieces and without secrets."""
    rows: list[Data] = [
        {"t": EVENT_TAGS[type(event)], **to_builtins(event, enc_hook=as_dict)}
        for event in events
        if type(event) in EVENT_TAGS
    ]
    for tag in STREAMED_TAGS:
        places = [place for place, event in enumerate(rows) if event["t"] == tag]
        pieces = redaction.redact_pieces([str(rows[place]["text"]) for place in places])
        for place, piece in zip(places, pieces, strict=True):
            rows[place] = {"t": tag, "text": piece}
    return rows


class ReplayModel:
    """Replays a recording: a file, or a `ModelRecording` that several models share.

    `name` selects a recorded model; it is optional if there is only one. `secrets` must be those of the recording.
    """

    def __init__(
        self,
        recording: ModelRecording | str | Path,
        *,
        name: str = "",
        card: ModelCard | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        self.recording = recording if isinstance(recording, ModelRecording) else ModelRecording(recording)
        self.name = name or _find_only_model(self.recording)
        self.card = card or ModelCard()
        self._clean = RecordingRedaction(secrets).redact

    def price(self, read: int, written: int) -> int | None:
        """Return 0: a replay is free."""
        return 0

    def list_unused(self) -> tuple[RecordedCall, ...]:
        """Return the recorded calls that were never requested."""
        return self.recording.list_unused()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the recorded response in its original pieces."""
        form = encode_canonical(request, self.name, self._clean)
        name = hash_request(form)
        call = self.recording.take(name, request.purpose)
        events = iter([self.recording.make_missing_fault(name, form)]) if call is None else call.replay()
        for event in events:
            # Let other tasks run between two pieces, as with a real model.
            await asyncio.sleep(0)
            yield event


def _find_only_model(recording: ModelRecording) -> str:
    match recording.models:
        case (name,):
            return name
        case ():
            return "replay:empty"
        case several:
            names = ", ".join(several)
            raise WorldFault("models.recording_several_models", name=recording.path.name, names=names)


class ReplayModels:
    """A recording instead of all models. A name that was not recorded gets the first recorded model.

    `card` returns the card of a model by name. Requests must be built exactly as they were recorded.
    """

    def __init__(
        self, recording: str | Path, *, card: Callable[[str], ModelCard] | None = None, secrets: Iterable[str] = ()
    ) -> None:
        self.recording = ModelRecording(recording)
        self._card = card
        self._secrets = tuple(secrets)

    @property
    def main_model(self) -> str:
        """The name of the first recorded model."""
        return next(iter(self.recording.models), "replay:empty")

    def get_model(self, name: str) -> ReplayModel:
        chosen = name if name in self.recording.models else self.main_model
        card = self._card(chosen) if self._card is not None else None
        return ReplayModel(self.recording, name=chosen, card=card, secrets=self._secrets)
