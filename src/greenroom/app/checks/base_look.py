"""A copy that is looked at as it was on the base: what the work has changed of it is seen as it was before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.looking import Look


class BaseLook:
    """`now` sees the files as they are; `changes` are all of those that the work has changed, `before` the names of all
    that were there: a folder that the work has made is not seen, whatever else came to lie in it."""

    def __init__(self, now: Look, changes: Iterable[Changed], before: Iterable[str]) -> None:
        self._now = now
        self._before: Mapping[str, bytes | None] = {one.path: one.before for one in changes}
        self._there = {str(one) for path in before for one in (path, *PurePosixPath(path).parents)}

    def read(self, path: str) -> bytes | None:
        """The file as it was."""
        return self._before[path] if path in self._before else self._now.read(path)

    def names(self, folder: str) -> frozenset[str]:
        """What lay in the folder."""
        begin = "" if folder == "." else f"{folder}/"
        changed = {path[len(begin) :]: content for path, content in self._before.items() if path.startswith(begin)}
        there = {path.partition("/")[0] for path, content in changed.items() if content is not None}
        new = {path.partition("/")[0] for path, content in changed.items() if content is None}
        return (self._now.names(folder) - {one for one in new if f"{begin}{one}" not in self._there}) | there
