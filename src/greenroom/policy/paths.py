"""Paths as rules see them: lexical, relative to the workspace root. The file layer resolves links.

A pattern has `*`, `?` and `[…]` within one name and `**` for any number of folders, including none. Tightening ones are
read generously: in any case, in any folder if they are a single name, with everything below. Loosening ones literally.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from greenroom.core.base.records import record
from greenroom.core.ports.files import fold_name

Access: TypeAlias = Literal["", "read", "write"]
Parts: TypeAlias = tuple[str, ...]

ROOT: Final = "/"
ANY: Final = "**"
MAX_PATH_CHARS: Final = 4096
_FLOATING_PARTS: Final = 3
HARMLESS_DEVICES: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
_GLOB: Final = re.compile(r"[*?\[]")


@record
class PolicyPath:
    """The location of a path. `whole` is the path from the root; `folded` is the same as a lenient file system sees it.
    `inside` is the path relative to the workspace; None if it is outside."""

    whole: Parts
    folded: Parts
    inside: Parts | None

    @property
    def folded_inside(self) -> Parts:
        """The folded names inside the workspace; all folded names if the path is outside."""
        return self.folded if self.inside is None else self.folded[len(self.whole) - len(self.inside) :]

    def __str__(self) -> str:
        if self.inside is None:
            return ROOT + "/".join(self.whole[1:])
        return "/".join(self.inside) or "."


def split_path(path: str) -> Parts:
    """Return the names of a path without `.` and `..`. Nothing is above the root."""
    found: list[str] = []
    for name in path.split("/"):
        if name == ".." and found:
            found.pop()
        elif name not in {"", ".", ".."}:
            found.append(name)
    return tuple(found)


def locate_path(value: str, workspace: str) -> PolicyPath:
    """Locate a path that is relative to the workspace root, or absolute."""
    from_root = value if value.startswith("/") else f"{workspace}/{value}"
    home, parts = split_path(workspace), split_path(from_root)
    inside = parts[len(home) :] if parts[: len(home)] == home else None
    return PolicyPath(whole=(ROOT, *parts), folded=(ROOT, *map(fold_name, parts)), inside=inside)


def fold_parts(parts: Parts) -> Parts:
    """Return all names of a path, folded."""
    return tuple(fold_name(name) for name in parts)


def is_pattern(name: str) -> bool:
    return _GLOB.search(name) is not None


def escape_pattern(name: str) -> str:
    """Return a pattern that matches only this name."""
    return _GLOB.sub(lambda sign: f"[{sign[0]}]", name)


def matches_name(pattern: str, name: str) -> bool:
    """Return whether a name matches one part of a pattern."""
    if pattern in {"*", name} or not is_pattern(pattern):
        return pattern in {"*", name}
    return _compile_pattern(pattern).match(name) is not None


def contains(pattern: str, part: str) -> bool:
    """Return whether all names that `part` matches also match `pattern`. Only simple cases are recognised."""
    if part == ANY or not is_pattern(part):
        return part != ANY and matches_name(pattern, part)
    return pattern in {"*", part}


def covers(pattern: Parts, parts: Parts, fit: Callable[[str, str], bool] = matches_name) -> bool:
    """Return whether a pattern matches a path. One pass: only the last `**` met has to be tried again."""
    at = here = 0
    again, taken = -1, 0
    while here < len(parts):
        if at < len(pattern) and pattern[at] == ANY:
            again, taken = at, here
            at += 1
        elif at < len(pattern) and fit(pattern[at], parts[here]):
            at, here = at + 1, here + 1
        elif again >= 0:
            taken += 1
            at, here = again + 1, taken
        else:
            return False
    return all(rest == ANY for rest in pattern[at:])


@lru_cache(maxsize=4096)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


@lru_cache(maxsize=8192)
def widen_pattern(pattern: Parts) -> Parts:
    """Return a tightening rule's pattern: in any case, with everything below, and anywhere if it is a single name."""
    anywhere = () if len(pattern) > 1 or pattern[:1] in {(ROOT,), (ANY,)} else (ANY,)
    below = () if pattern[-1:] == (ANY,) else (ANY,)
    return (*anywhere, *fold_parts(pattern), *below)


def matches_loosening(pattern: Parts, place: PolicyPath) -> bool:
    """Return whether a loosening pattern applies to a path."""
    if pattern[:1] == (ROOT,):
        return covers(pattern, place.whole)
    return place.inside is not None and covers(pattern, place.inside)


def matches_tightening(pattern: Parts, place: PolicyPath) -> bool:
    """Return whether a tightening pattern may apply to a path. A floating pattern applies outside the workspace too."""
    wide = widen_pattern(pattern)
    if wide[0] == ANY and len(wide) == _FLOATING_PARTS and wide[-1] == ANY:  # by far the most common form
        name = wide[1]
        return name in place.folded or (is_pattern(name) and any(map(_compile_pattern(name).match, place.folded)))
    if wide[0] in {ROOT, ANY}:
        return covers(wide, place.folded)
    return place.inside is not None and covers(wide, place.folded_inside)


def covers_pattern(strict: Parts, loose: Parts) -> bool:
    """Return whether a tightening pattern covers everything that a loosening pattern matches."""
    return covers(widen_pattern(strict), fold_parts(loose), contains)
