"""Walking through a workspace: what is there, without what git ignores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Final

from greenroom.adapters.files.disk import DRAFT, Disk, entry, shown
from greenroom.adapters.files.faults import told
from greenroom.adapters.files.ground import Ground
from greenroom.adapters.files.ignoring import Globs, Rules
from greenroom.core.ports.files import Entry, FileFault, Walk, is_protected

SECONDS: Final = 20.0
ENTRIES: Final = 200_000
"""A walk that takes longer, or sees more, ends with what it has."""

DEEPEST: Final = 200
"""Folders in folders. The rest of what is deeper is left out."""

IGNORE_FILE: Final = 1_000_000
"""Bytes of a .gitignore that are read."""

Found = tuple[str, os.stat_result]


class Walker:
    """One walk. It ends early when nobody waits for it any more: they have `left`."""

    def __init__(self, ground: Ground, globs: Globs, left: Callable[[], bool] = lambda: False) -> None:
        self._ground = ground
        self._disk = Disk(ground)
        self._globs = globs
        self._left = left
        self._end = time.monotonic() + SECONDS
        self._seen = 0
        self._cut = False

    def walk(self, under: str, limit: int) -> Walk:
        """All below a folder."""
        start = self._ground.real(under)
        with self._ground.folder(start):
            pass  # that it is a folder is said of the one that was named, not of those below it
        rules = self._ruled(".git/info/exclude", "", Rules())
        parts = start.split("/") if start else []
        for number in range(len(parts)):
            rules = self._ignored_in("/".join(parts[:number]), rules)
        found = list(islice(self._below(start, rules, 0), limit + 1))
        return Walk(entries=tuple(found[:limit]), whole=len(found) <= limit and not self._cut, cut=self._cut)

    def _below(self, folder: str, rules: Rules, depth: int) -> Iterator[Entry]:
        if depth > DEEPEST or self._enough():
            self._cut = True
            return
        rules = self._ignored_in(folder, rules)
        for name, status in self._in(folder):
            path = f"{folder}/{name}" if folder else name
            here = entry(path, status)
            if is_protected(name) or name.startswith(DRAFT) or rules.ignores(path, folder=here.kind == "folder"):
                continue
            if here.kind == "folder":
                yield from self._below(path, rules, depth + 1)
            elif here.kind in ("file", "link") and self._globs.match(path):
                yield here

    def _in(self, folder: str) -> list[Found]:
        """What a folder holds. One that is gone by now, or that we may not see, holds nothing."""
        try:
            with self._ground.folder(folder) as opened, told(folder), os.scandir(opened) as found:
                return sorted((shown(one.name), one.stat(follow_symlinks=False)) for one in self._bounded(found))
        except FileFault:
            return []

    def _bounded(self, found: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        """A single folder can be too much, too."""
        for one in found:
            self._seen += 1
            if self._enough():
                self._cut = True
                return
            yield one

    def _enough(self) -> bool:
        """Whether it has taken too long, has seen too much, or nobody waits for it any more."""
        return self._seen > ENTRIES or time.monotonic() > self._end or self._left()

    def _ignored_in(self, folder: str, rules: Rules) -> Rules:
        """The rules that hold in a folder; like git, without those of a .gitignore that is a link."""
        path = f"{folder}/.gitignore" if folder else ".gitignore"
        with suppress(FileFault):
            if self._ground.real(path) == path:
                return self._ruled(path, folder, rules)
        return rules

    def _ruled(self, path: str, folder: str, rules: Rules) -> Rules:
        with suppress(FileFault):
            return rules.with_file(folder, self._disk.read(path, IGNORE_FILE).decode("utf-8", "replace"))
        return rules
