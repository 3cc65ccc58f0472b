"""Origins: labels of what a conversation has read. A label is `kind:name`; the set of kinds is closed.

Two properties of a kind matter. *Untrusted*: anyone may have written it, so its requests are not orders. *Private*: it
must not leave without permission. A kind with neither property names only a channel; the content that came through it
brings its own labels (docs/decisions/0019).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

Labels = tuple[str, ...]

CHANNEL_KINDS: Final = frozenset({"agent", "artifact"})
"""Kinds with neither property: text from another agent, or from an artifact."""

UNTRUSTED_KINDS: Final = frozenset({"web", "description", "mcp", "tool", "command", "file", "memory"})
"""A web page, a server's tool descriptions, the output of a tool or program, a file, a memory."""

PRIVATE_KINDS: Final = frozenset({"mcp", "tool", "command", "file", "memory"})

DISCLOSABLE_KINDS: Final = PRIVATE_KINDS - {"mcp"}
"""Private kinds that a single call can read and disclose. An MCP server's data goes back only to that server."""

DEFAULT_KIND: Final = "tool"
"""The kind for an unknown source: it has both properties."""

MAX_NAMES_PER_KIND: Final = 8
"""Maximum names per kind. One more turns them into `kind:*`, which covers all names."""

MAX_NAME_CHARS: Final = 80


def make_label(kind: str, name: str) -> str:
    """Return a label with a printable, shortened name."""
    known_kind = kind if kind in UNTRUSTED_KINDS or kind in CHANNEL_KINDS else DEFAULT_KIND
    shown = "".join(sign if sign.isprintable() else "?" for sign in name.strip()[: MAX_NAME_CHARS + 1])
    return f"{known_kind}:{shown[: MAX_NAME_CHARS - 1] + '…' if len(shown) > MAX_NAME_CHARS else shown or '?'}"


def find_kind(label: str) -> str:
    """Return the kind of a label."""
    return label.partition(":")[0]


def merge_labels(old: Labels, new: Iterable[str]) -> Labels:
    """Add labels, each once, in order of arrival. Return `old` itself if nothing is new."""
    labels = old
    for raw in new:
        kind, _, name = raw.partition(":")
        new_label = make_label(kind, name)
        if new_label not in labels and f"{find_kind(new_label)}:*" not in labels:
            labels = _add_label(labels, new_label)
    return labels


def _add_label(labels: Labels, new_label: str) -> Labels:
    kind = find_kind(new_label)
    others = tuple(other for other in labels if find_kind(other) != kind)
    if new_label == f"{kind}:*" or len(labels) - len(others) >= MAX_NAMES_PER_KIND:
        return (*others, f"{kind}:*")
    return (*labels, new_label)


def filter_untrusted(labels: Labels) -> Labels:
    """Return the labels of untrusted content."""
    return tuple(label for label in labels if find_kind(label) in UNTRUSTED_KINDS)


def filter_private(labels: Labels) -> Labels:
    """Return the labels of private content."""
    return tuple(label for label in labels if find_kind(label) in PRIVATE_KINDS)


def filter_disclosable(labels: Labels) -> Labels:
    """Return the labels of private content that one call can read and disclose by itself."""
    return tuple(label for label in labels if find_kind(label) in DISCLOSABLE_KINDS)
