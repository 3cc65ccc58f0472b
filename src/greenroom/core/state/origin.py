"""Origins: where what a conversation has read comes from. A label is `kind:name`; the kinds are few and closed.

Two things count about what was read. *Untrusted*: anybody may have written it, so what it asks for is no order.
*Private*: not everybody may know it. A kind that is neither only says by which way something came: what came that way
brings its own labels along (docs/decisions/0019).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

Labels = tuple[str, ...]

WAYS: Final = frozenset({"agent", "artifact"})
"""Neither: another agent said it, it stood in an artifact."""

UNTRUSTED: Final = frozenset({"web", "description", "mcp", "tool", "command", "file", "memory"})
"""A page, how a server describes its tools, what a tool or a program has said, a file, what was remembered."""

PRIVATE: Final = frozenset({"mcp", "tool", "command", "file", "memory"})

CARRIED: Final = PRIVATE - {"mcp"}
"""What a call that reads it can give away in the same breath. What a server says goes back to nobody but itself."""

UNKNOWN: Final = "tool"
"""The kind of what says nothing sensible of itself: the worst that there is."""

MOST: Final = 8
"""Names of one kind. From then on it is `kind:*`, which stands for all of them."""

LONGEST: Final = 80


def label(kind: str, name: str) -> str:
    """A label; of the name what fits on a line."""
    known = kind if kind in UNTRUSTED or kind in WAYS else UNKNOWN
    shown = "".join(sign if sign.isprintable() else "?" for sign in name.strip()[: LONGEST + 1])
    return f"{known}:{shown[: LONGEST - 1] + '…' if len(shown) > LONGEST else shown or '?'}"


def kind_of(one: str) -> str:
    """The kind of a label."""
    return one.partition(":")[0]


def merged(old: Labels, new: Iterable[str]) -> Labels:
    """All labels, each once, in the order in which they came. The very same when there is nothing new."""
    found = old
    for raw in new:
        kind, _, name = raw.partition(":")
        one = label(kind, name)
        if one not in found and f"{kind_of(one)}:*" not in found:
            found = _with(found, one)
    return found


def _with(found: Labels, one: str) -> Labels:
    kind = kind_of(one)
    others = tuple(other for other in found if kind_of(other) != kind)
    if one == f"{kind}:*" or len(found) - len(others) >= MOST:
        return (*others, f"{kind}:*")
    return (*found, one)


def untrusted(labels: Labels) -> Labels:
    """Those of what anybody may have written."""
    return tuple(one for one in labels if kind_of(one) in UNTRUSTED)


def private(labels: Labels) -> Labels:
    """Those of what not everybody may know."""
    return tuple(one for one in labels if kind_of(one) in PRIVATE)


def carried(labels: Labels) -> Labels:
    """Those of what a call holds by itself, whatever its conversation has read."""
    return tuple(one for one in labels if kind_of(one) in CARRIED)
