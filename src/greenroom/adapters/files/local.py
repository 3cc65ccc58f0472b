"""The files of a workspace on the local disk: the port, with the work in a thread. What git ignores is not listed.

Patterns are matched by pathspec, which makes a regular expression of each, and Python's cannot be stopped: a pattern
with many stars would take years for some names. Such patterns are left out of a .gitignore, and refused where somebody
asks with one.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from pathspec import GitIgnoreSpec

from greenroom.adapters.files.disk import DRAFT, Disk, Ground, entry, shown, told
from greenroom.core.ports.files import Entry, FileFault, Walk, is_protected

STARS: Final = 3
"""In one part of a pattern. With four, a name of 250 letters takes half a second."""

DEEP_STARS: Final = 3
"""How many `**` there may be in one pattern."""

LONGEST: Final = 1000
PATTERNS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Rules:
    """The .gitignore files from the root down to a folder: of two that speak of a path, the deeper one counts."""

    files: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def with_file(self, folder: str, text: str) -> Rules:
        """Those that hold below a folder with this .gitignore in it."""
        spec = _spec(line for line in text.splitlines()[:PATTERNS] if _is_cheap(line))
        return Rules(files=((f"{folder}/" if folder else "", spec), *self.files))

    def ignores(self, path: str, *, folder: bool) -> bool:
        """Whether git would leave this out."""
        whole = f"{path}/" if folder else path
        for above, spec in self.files:
            said = spec.check_file(whole.removeprefix(above)).include
            if said is not None:
                return said
        return False


class Globs:
    """What somebody looks for; with no patterns, everything."""

    def __init__(self, patterns: Sequence[str], under: str) -> None:
        for pattern in patterns:
            if not _is_cheap(pattern):
                why = f"the pattern {pattern[:100]!r} has too many stars in one part. Use at most {STARS}, or a folder."
                raise FileFault("pattern", why[0].upper() + why[1:])
        self._under = f"{under}/" if under else ""
        try:
            self._spec = GitIgnoreSpec.from_lines(patterns) if patterns else None
        except ValueError as error:
            raise FileFault("pattern", f"{patterns!r} cannot be used as file patterns: {error}.") from error

    def match(self, path: str) -> bool:
        """Whether this is one of them."""
        return self._spec is None or self._spec.match_file(path.removeprefix(self._under))


def _is_cheap(pattern: str) -> bool:
    parts = pattern.split("/")
    stars = max(part.count("*") for part in parts if part != "**") if any(part != "**" for part in parts) else 0
    return len(pattern) <= LONGEST and stars <= STARS and parts.count("**") <= DEEP_STARS


def _spec(lines: Iterable[str]) -> GitIgnoreSpec:
    """As git does it: a line that is no pattern matches nothing."""
    kept = list(lines)
    try:
        return GitIgnoreSpec.from_lines(kept)
    except ValueError:
        return GitIgnoreSpec.from_lines([line for line in kept if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


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


P = ParamSpec("P")
T = TypeVar("T")


class LocalFiles:
    """One workspace, which may be known as `at` another place."""

    def __init__(self, root: Path, *, at: Path | None = None) -> None:
        self._ground = Ground(root, at=at)
        self._disk = Disk(self._ground)

    @property
    def root(self) -> str:
        """The absolute path of the root."""
        return self._ground.root

    def real(self, path: str) -> str:
        """The path with its links followed."""
        return self._ground.real(path)

    async def read(self, path: str, limit: int) -> bytes:
        """A whole file."""
        return await _in_thread(self._disk.read, path, limit)

    async def stat(self, path: str) -> Entry | None:
        """What is there."""
        return await _in_thread(self._disk.stat, path)

    async def entries(self, path: str = "") -> Sequence[Entry]:
        """All that is in a folder."""
        return await _in_thread(self._disk.entries, path)

    async def walk(self, under: str = "", *, globs: Sequence[str] = (), limit: int) -> Walk:
        """Files and links below a folder that git would not ignore."""
        left = threading.Event()

        def work() -> Walk:
            start = self._ground.real(under)
            return Walker(self._ground, Globs(tuple(globs), start), left.is_set).walk(start, limit)

        return await _waited_for(asyncio.to_thread(work), left.set)

    async def write(self, path: str, content: bytes, *, expected: str | None) -> None:
        """Write a whole file at once."""
        await _in_thread(self._disk.write, path, content, expected)

    async def delete(self, path: str, *, expected: str) -> None:
        """Delete a file that has this content."""
        await _in_thread(self._disk.delete, path, expected)


async def _in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do it in a thread. A thread cannot be cancelled: who cancels this waits until it is done, and nothing goes on."""
    return await _waited_for(asyncio.to_thread(function, *args, **kwargs))


async def _waited_for(doing: Coroutine[None, None, T], leave: Callable[[], None] = lambda: None) -> T:
    """Wait for a thread; one that can be told to `leave` is told so by who cancels it."""
    work = asyncio.ensure_future(doing)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        leave()
        await asyncio.wait([work])
        if work.done() and not work.cancelled():
            work.exception()  # nobody will ask for it any more
        raise
