"""Paths as rules see them: lexical, from the workspace's root. Whether a link leads elsewhere is the file layer's part.

A pattern has `*`, `?` and `[…]` inside of one name and `**` for any number of folders, also none. What tightens is read
generously: in any case, in any folder when it is a single name, with everything below. What loosens is read literally.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from greenroom.core.base.records import record

Access: TypeAlias = Literal["", "read", "write"]
Parts: TypeAlias = tuple[str, ...]

ROOT: Final = "/"
ANY: Final = "**"
LONGEST: Final = 4096
_FLOATS: Final = 3
HARMLESS_DEVICES: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
_GLOB: Final = re.compile(r"[*?\[]")


@record
class Place:
    """Where a path leads, from the root and as a forgiving file system sees it (`folded`); the last names of both lie
    in the workspace. `inside` is None for what does not."""

    whole: Parts
    folded: Parts
    inside: Parts | None

    @property
    def folded_inside(self) -> Parts:
        """What is folded of that part which lies in the workspace; all of it if none does."""
        return self.folded if self.inside is None else self.folded[len(self.whole) - len(self.inside) :]

    def __str__(self) -> str:
        if self.inside is None:
            return ROOT + "/".join(self.whole[1:])
        return "/".join(self.inside) or "."


def parts_of(path: str) -> Parts:
    """The names on the way, without those that lead nowhere. Above the root there is nothing."""
    found: list[str] = []
    for name in path.split("/"):
        if name == ".." and found:
            found.pop()
        elif name not in {"", ".", ".."}:
            found.append(name)
    return tuple(found)


def placed(value: str, workspace: str) -> Place:
    """Where a path leads that is seen from the workspace's root."""
    from_root = value if value.startswith("/") else f"{workspace}/{value}"
    home, parts = parts_of(workspace), parts_of(from_root)
    inside = parts[len(home) :] if parts[: len(home)] == home else None
    return Place(whole=(ROOT, *parts), folded=(ROOT, *map(folded, parts)), inside=inside)


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """A name as a forgiving file system sees it: any case, invisible signs and dots at its end left out."""
    if name.isascii():
        plain = name.casefold()
    else:
        seen = unicodedata.normalize("NFKC", name)
        plain = "".join(one for one in seen if unicodedata.category(one) != "Cf").casefold()
    return {"git~1": ".git"}.get(plain, plain.rstrip(" .") or plain)


def folded_parts(parts: Parts) -> Parts:
    """All names of a path, folded."""
    return tuple(folded(name) for name in parts)


def is_pattern(name: str) -> bool:
    """Whether a name stands for several."""
    return _GLOB.search(name) is not None


def literal(name: str) -> str:
    """A pattern for this one name."""
    return _GLOB.sub(lambda sign: f"[{sign[0]}]", name)


def fits(pattern: str, name: str) -> bool:
    """Whether one name fits one part of a pattern."""
    if pattern in {"*", name} or not is_pattern(pattern):
        return pattern in {"*", name}
    return _compiled(pattern).match(name) is not None


def contains(pattern: str, part: str) -> bool:
    """Whether all names that one part of a pattern stands for fit another part. Only if that is easy to see."""
    if part == ANY or not is_pattern(part):
        return part != ANY and fits(pattern, part)
    return pattern in {"*", part}


def covers(pattern: Parts, parts: Parts, fit: Callable[[str, str], bool] = fits) -> bool:
    """Whether a pattern matches a path. One pass: of all `**` only the last one met has to be tried again."""
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
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


@lru_cache(maxsize=8192)
def generous(pattern: Parts) -> Parts:
    """The pattern of a rule that tightens: in any case, with all below, and anywhere if it is only a name."""
    anywhere = () if len(pattern) > 1 or pattern[:1] in {(ROOT,), (ANY,)} else (ANY,)
    below = () if pattern[-1:] == (ANY,) else (ANY,)
    return (*anywhere, *folded_parts(pattern), *below)


def loosens(pattern: Parts, place: Place) -> bool:
    """Whether a pattern that loosens is meant for this place."""
    if pattern[:1] == (ROOT,):
        return covers(pattern, place.whole)
    return place.inside is not None and covers(pattern, place.inside)


def tightens(pattern: Parts, place: Place) -> bool:
    """Whether a pattern that tightens may be meant for this place. What floats is meant outside too."""
    wide = generous(pattern)
    if wide[0] == ANY and len(wide) == _FLOATS and wide[-1] == ANY:  # by far the most usual form
        name = wide[1]
        return name in place.folded or (is_pattern(name) and any(map(_compiled(name).match, place.folded)))
    if wide[0] in {ROOT, ANY}:
        return covers(wide, place.folded)
    return place.inside is not None and covers(wide, place.folded_inside)


def includes(strict: Parts, loose: Parts) -> bool:
    """Whether everything that the one stands for is something that the other, a rule that tightens, stands for too."""
    return covers(generous(strict), folded_parts(loose), contains)
