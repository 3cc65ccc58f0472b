"""A copy that is looked at as whoever gets it will have it: what is delivered of it, and what is lent to it.

Whatever else lies there was made by the work, and is given to nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from greenroom.app.checks.folder import FolderLook
from greenroom.core.ports.workspace import Lent


class DeliveredLook:
    """`folder` is the copy of a repository, `paths` are the files of it that are delivered; `within` it is worked."""

    def __init__(self, folder: Path, paths: Iterable[str], *, within: str = ".", lent: Sequence[Lent] = ()) -> None:
        at = PurePosixPath(within or ".")
        self._look = FolderLook(folder / at)
        inside = [PurePosixPath(one) for one in paths]
        files = [one.relative_to(at) for one in inside if one.is_relative_to(at)]
        self._files = frozenset(map(str, files))
        places = {PurePosixPath(one.path): FolderLook(Path(one.source)) for one in lent}
        self._lent = {path.relative_to(at): look for path, look in places.items() if path.is_relative_to(at)}
        self._names: dict[PurePosixPath, set[str]] = {}
        for one in (*files, *self._lent):
            for part in (one, *one.parents[:-1]):
                self._names.setdefault(part.parent, set()).add(part.name)

    def read(self, path: str) -> bytes | None:
        """A file that is delivered."""
        return self._look.read(path) if str(PurePosixPath(path)) in self._files else None

    def names(self, folder: str) -> frozenset[str]:
        """What lies in a folder."""
        here = PurePosixPath(folder)
        lent = next((path for path in self._lent if here.is_relative_to(path)), None)
        if lent is not None:
            return self._lent[lent].names(str(here.relative_to(lent)))
        return frozenset(self._names.get(here, ()))
