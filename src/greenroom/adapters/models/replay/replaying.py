"""A model that answers what was recorded, and nothing else: it never reaches for a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from greenroom.adapters.models.replay.canonical import canonical, key
from greenroom.adapters.models.replay.cassette import Cassette, Tape
from greenroom.adapters.models.replay.redaction import Redaction
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.model import ModelCard, ModelEvent, ModelRequest


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
