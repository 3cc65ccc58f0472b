"""The mounts of one command: in which order, and from where somebody else than us can reach them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from greenroom.adapters.sandbox.identity import Identity
from greenroom.core.ports.sandbox import Staged


class Mounts:
    """Whoever becomes somebody else cannot go where we can, so all of it is put on a stage first. `nothing` is an empty
    file."""

    def __init__(self, who: Identity, stage: str, nothing: Path) -> None:
        self._who = who
        self._stage = stage
        self._nothing = nothing
        self._staged: list[Staged] = []
        self._places: list[tuple[str, tuple[str, ...]]] = []
        self._closed: list[str] = []
        self._sources: dict[Path, str] = {}

    @property
    def staged(self) -> tuple[Staged, ...]:
        """What is to be put on the stage."""
        return tuple(self._staged)

    def writable(self, source: Path, at: str, *, owned: bool) -> None:
        """To be read and written."""
        self._add(at, "--bind", self._source(source, owned=owned), at)

    def readable(self, source: Path, at: str, *, owned: bool = False) -> None:
        """To be read only."""
        self._add(at, "--ro-bind", self._source(source, owned=owned), at)

    def as_it_is(self, at: str) -> None:
        """What everybody can reach and read, where it is: that needs no stage."""
        self._add(at, "--ro-bind", at, at)

    def inside(self, root: Path, at: Path, place: Path, *, writable: bool = False) -> None:
        """Something in a folder that is there already, put on itself: so it cannot be moved, nor written."""
        within = place.relative_to(root)
        source = Path(self._sources[root]) / within
        self._add(str(at / within), "--bind" if writable else "--ro-bind", str(source), str(at / within))

    def empty(self, at: str) -> None:
        """A folder with nothing in it but what is put there, in which nothing can be made."""
        self._add(at, "--tmpfs", at)
        self._closed.append(at)

    def nothing(self, at: str) -> None:
        """A file with nothing in it."""
        self._add(at, "--ro-bind", self._sources.get(self._nothing) or self._source(self._nothing, owned=False), at)

    def has(self, at: str) -> bool:
        """Whether something is put there."""
        return any(place == at for place, _ in self._places)

    def arguments(self) -> Iterator[str]:
        """Parents come before what is in them."""
        for _, words in sorted(self._places, key=lambda one: Path(one[0]).parts):
            yield from words
        for at in self._closed:
            yield from ("--remount-ro", at)

    def _add(self, at: str, *words: str) -> None:
        self._places.append((at, words))

    def _source(self, source: Path, *, owned: bool) -> str:
        if not self._who.changes:
            self._sources[source] = str(source)
            return str(source)
        place = str(len(self._staged))
        self._staged.append(Staged(source=str(source), place=place, owned=owned and self._who.swapped))
        self._sources[source] = f"{self._stage}/{place}"
        return self._sources[source]
