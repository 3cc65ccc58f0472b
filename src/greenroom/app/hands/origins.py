"""Where what a call brings comes from, by what is known of the tool and of what it touches: no tool has to say it.

A function that a program gives to its own agents is that program's word, unless its group says that it goes elsewhere.
What a tool knows better (a page that was somewhere else in the end, who wrote a memory) it says in its outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from greenroom.abilities.permission.outward import PROGRAM, known
from greenroom.core.ports.tool import BUILT_IN, Target, ToolCard
from greenroom.core.state.origin import Labels, label, merged

SERVER = "mcp:"


def origins_of(card: ToolCard, targets: Sequence[Target]) -> Labels:
    """The labels of what a call reads. Those of memories and artifacts only the tool itself knows."""
    return merged((), _labels(card, targets))


def _labels(card: ToolCard, targets: Sequence[Target]) -> Iterator[str]:
    if card.source.startswith(SERVER):
        yield label("mcp", card.source.removeprefix(SERVER))
    elif card.source not in (BUILT_IN, PROGRAM):
        yield label("tool", card.spec.name)
    hosts = [known(one.value) for one in targets if one.kind == "host"]
    yield from (label("web", one) for one in hosts)
    if card.group in ("web", "browser") and not hosts:
        yield label("web", card.spec.name)
    if card.group == "command" and card.source == BUILT_IN:
        yield label("command", _program(targets) or card.spec.name)
    yield from (label("file", one.value) for one in targets if one.kind == "path")


def _program(targets: Sequence[Target]) -> str:
    """How a command line begins: enough to know it by."""
    lines = [one.value.split() for one in targets if one.kind == "command"]
    return lines[0][0] if lines and lines[0] else ""
