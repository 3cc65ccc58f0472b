"""Patterns as in a .gitignore, also those of folders deep down. The matching itself is pathspec's.

pathspec makes a regular expression of each pattern, and Python's cannot be stopped: a pattern with many stars would
take years for some names. Such patterns are left out of a .gitignore, and refused where somebody asks with one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pathspec import GitIgnoreSpec

from greenroom.core.ports.files import FileFault

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
