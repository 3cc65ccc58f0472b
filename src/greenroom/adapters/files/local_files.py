"""The files port for a workspace on the local disk; the work runs in threads.

Files that git ignores are not listed. pathspec converts patterns to regular expressions, which Python cannot interrupt:
a pattern with many stars could take years. Such patterns are skipped in a .gitignore and refused in a request.
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

from greenroom.adapters.files.disk import DRAFT_PREFIX, ConfinedRoot, Disk, decode_name, make_entry, translate_errors
from greenroom.core.ports.files import FileEntry, FileFault, WalkResult, is_protected

MAX_STARS: Final = 3
"""How many stars one part of a pattern may have. With four, a name of 250 characters takes half a second."""

MAX_DEEP_STARS: Final = 3
"""How many `**` a pattern may have."""

MAX_PATTERN_CHARS: Final = 1000
MAX_PATTERNS: Final = 10_000


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The .gitignore files from the root down to a folder. The deepest file that matches a path decides."""

    files: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def with_file(self, folder: str, text: str) -> IgnoreRules:
        """Return the rules for a folder with this .gitignore."""
        spec = _make_spec(line for line in text.splitlines()[:MAX_PATTERNS] if _is_cheap(line))
        return IgnoreRules(files=((f"{folder}/" if folder else "", spec), *self.files))

    def is_ignored(self, path: str, *, folder: bool) -> bool:
        """Return whether git would ignore this path."""
        whole = f"{path}/" if folder else path
        for above, spec in self.files:
            verdict = spec.check_file(whole.removeprefix(above)).include
            if verdict is not None:
                return verdict
        return False


class Globs:
    """The file patterns of a search; without patterns, everything matches."""

    def __init__(self, patterns: Sequence[str], under: str) -> None:
        for pattern in patterns:
            if not _is_cheap(pattern):
                why = (
                    f"the pattern {pattern[:100]!r} has too many stars in one part. Use at most "
                    f"{MAX_STARS}, or a folder."
                )
                raise FileFault("pattern", why[0].upper() + why[1:])
        self._under = f"{under}/" if under else ""
        try:
            self._spec = GitIgnoreSpec.from_lines(patterns) if patterns else None
        except ValueError as error:
            raise FileFault("pattern", f"{patterns!r} cannot be used as file patterns: {error}.") from error

    def matches(self, path: str) -> bool:
        return self._spec is None or self._spec.match_file(path.removeprefix(self._under))


def _is_cheap(pattern: str) -> bool:
    parts = pattern.split("/")
    stars = max(part.count("*") for part in parts if part != "**") if any(part != "**" for part in parts) else 0
    return len(pattern) <= MAX_PATTERN_CHARS and stars <= MAX_STARS and parts.count("**") <= MAX_DEEP_STARS


def _make_spec(lines: Iterable[str]) -> GitIgnoreSpec:
    """Build a spec like git: an invalid line matches nothing."""
    patterns = list(lines)
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError:
        return GitIgnoreSpec.from_lines([line for line in patterns if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


WALK_TIMEOUT_S: Final = 20.0
MAX_ENTRIES: Final = 200_000
"""How many entries a walk may see. Beyond this or the time limit, it returns what it has."""

MAX_DEPTH: Final = 200
"""How many levels of folders are walked. Deeper ones are skipped."""

MAX_GITIGNORE_BYTES: Final = 1_000_000
"""How many bytes of a .gitignore are read."""

ScannedEntry = tuple[str, os.stat_result]


class FileWalker:
    """One walk through a folder. It ends early when `is_cancelled` returns True, because the caller was cancelled."""

    def __init__(self, root: ConfinedRoot, globs: Globs, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        self._root = root
        self._disk = Disk(root)
        self._globs = globs
        self._is_cancelled = is_cancelled
        self._deadline = time.monotonic() + WALK_TIMEOUT_S
        self._seen_entries = 0
        self._is_cut = False

    def walk(self, under: str, limit: int) -> WalkResult:
        """Return all entries below a folder."""
        start = self._root.resolve_links(under)
        with self._root.open_folder(start):
            pass  # raises if the named path is not a folder; folders below are skipped silently
        rules = self._add_rules(".git/info/exclude", "", IgnoreRules())
        parts = start.split("/") if start else []
        for number in range(len(parts)):
            rules = self._add_gitignore("/".join(parts[:number]), rules)
        entries = list(islice(self._walk_folder(start, rules, 0), limit + 1))
        return WalkResult(
            entries=tuple(entries[:limit]), whole=len(entries) <= limit and not self._is_cut, cut=self._is_cut
        )

    def _walk_folder(self, folder: str, rules: IgnoreRules, depth: int) -> Iterator[FileEntry]:
        if depth > MAX_DEPTH or self._is_over_limit():
            self._is_cut = True
            return
        rules = self._add_gitignore(folder, rules)
        for name, status in self._scan_folder(folder):
            path = f"{folder}/{name}" if folder else name
            found_entry = make_entry(path, status)
            if (
                is_protected(name)
                or name.startswith(DRAFT_PREFIX)
                or rules.is_ignored(path, folder=found_entry.kind == "folder")
            ):
                continue
            if found_entry.kind == "folder":
                yield from self._walk_folder(path, rules, depth + 1)
            elif found_entry.kind in ("file", "link") and self._globs.matches(path):
                yield found_entry

    def _scan_folder(self, folder: str) -> list[ScannedEntry]:
        """List a folder; a missing or unreadable folder is empty."""
        try:
            with self._root.open_folder(folder) as descriptor, translate_errors(folder), os.scandir(descriptor) as scan:
                return sorted(
                    (decode_name(item.name), item.stat(follow_symlinks=False)) for item in self._count_entries(scan)
                )
        except FileFault:
            return []

    def _count_entries(self, scan: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        """Count entries and stop at the limit, because a single folder can be too large."""
        for item in scan:
            self._seen_entries += 1
            if self._is_over_limit():
                self._is_cut = True
                return
            yield item

    def _is_over_limit(self) -> bool:
        """Return whether a limit is reached or the caller was cancelled."""
        return self._seen_entries > MAX_ENTRIES or time.monotonic() > self._deadline or self._is_cancelled()

    def _add_gitignore(self, folder: str, rules: IgnoreRules) -> IgnoreRules:
        """Return the rules for a folder. Like git, ignore a .gitignore that is a link."""
        path = f"{folder}/.gitignore" if folder else ".gitignore"
        with suppress(FileFault):
            if self._root.resolve_links(path) == path:
                return self._add_rules(path, folder, rules)
        return rules

    def _add_rules(self, path: str, folder: str, rules: IgnoreRules) -> IgnoreRules:
        with suppress(FileFault):
            return rules.with_file(folder, self._disk.read(path, MAX_GITIGNORE_BYTES).decode("utf-8", "replace"))
        return rules


P = ParamSpec("P")
T = TypeVar("T")


class LocalFiles:
    """One workspace, which may also be known `at` another path."""

    def __init__(self, root: Path, *, at: Path | None = None) -> None:
        self._root = ConfinedRoot(root, at=at)
        self._disk = Disk(self._root)

    @property
    def root(self) -> str:
        """The absolute path of the root."""
        return self._root.root

    def real(self, path: str) -> str:
        """Return the path with its links resolved."""
        return self._root.resolve_links(path)

    async def read(self, path: str, limit: int) -> bytes:
        return await _run_in_thread(self._disk.read, path, limit)

    async def stat(self, path: str) -> FileEntry | None:
        return await _run_in_thread(self._disk.stat, path)

    async def entries(self, path: str = "") -> Sequence[FileEntry]:
        """List the entries of a folder."""
        return await _run_in_thread(self._disk.list_entries, path)

    async def walk(self, under: str = "", *, globs: Sequence[str] = (), limit: int) -> WalkResult:
        """Return files and links below a folder that git does not ignore."""
        cancelled = threading.Event()

        def work() -> WalkResult:
            start = self._root.resolve_links(under)
            return FileWalker(self._root, Globs(tuple(globs), start), cancelled.is_set).walk(start, limit)

        return await _wait_for(asyncio.to_thread(work), cancelled.set)

    async def write(self, path: str, content: bytes, *, expected: str | None) -> None:
        """Write a whole file atomically."""
        await _run_in_thread(self._disk.write, path, content, expected)

    async def delete(self, path: str, *, expected: str) -> None:
        await _run_in_thread(self._disk.delete, path, expected)


async def _run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in a thread. A thread cannot be cancelled, so a cancelled caller waits for its end."""
    return await _wait_for(asyncio.to_thread(function, *args, **kwargs))


async def _wait_for(coroutine: Coroutine[None, None, T], cancel: Callable[[], None] = lambda: None) -> T:
    """Wait for a thread. If cancelled, call `cancel` to make it end early."""
    work = asyncio.ensure_future(coroutine)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        cancel()
        await asyncio.wait([work])
        if work.done() and not work.cancelled():
            work.exception()  # mark the exception as read
        raise
