"""Where a call would carry something: hosts, servers, programs that leave the machine. Whether it may is not said here.

A destination is a short line such as `host docs.python.org`, `server github`, `command git push origin`: what a person
reads, and what they agree to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from greenroom.abilities.permission import leaving
from greenroom.abilities.permission.saying import plainly
from greenroom.abilities.permission.shell.reader import read
from greenroom.core.ports.tool import BUILT_IN, Target, ToolCard
from greenroom.core.state.step import SIDE_EFFECTS

GROUPS: Final = frozenset({"web", "browser", "mcp"})
"""Groups of tools that go elsewhere, whatever they are given."""

PROGRAM: Final = "program"
"""The source of a function that a program gives to its own agents."""

Reach: TypeAlias = Callable[[], Sequence[str] | None]
"""What commands get to over the network: nothing, some hosts, or (None) whatever they like. Asked when it matters."""

SERVER: Final = "mcp:"
LONGEST: Final = 120
USUAL: Final = frozenset({"80", "443"})


def anywhere() -> None:
    """Nothing is around commands."""


def outward(card: ToolCard, targets: Sequence[Target], reach: Reach = anywhere) -> tuple[str, ...]:
    """The destinations of a call; none when it stays here."""
    named = any(target.kind == "host" for target in targets)
    found = [place for target in targets for place in _of(target, reach, named=named)]
    if not found and (card.group in GROUPS or _unknown(card)):
        server = card.source.removeprefix(SERVER) if card.source.startswith(SERVER) else ""
        found.append(f"server {server}" if server else f"tool {card.spec.name}")
    return tuple(dict.fromkeys(_line(one) for one in found))


def _of(target: Target, reach: Reach, *, named: bool) -> Iterator[str]:
    if target.kind == "host":
        yield f"host {known(target.value)}"
    elif target.kind == "command":
        yield from _command(target.value, reach, named=named)


def _command(line: str, reach: Reach, *, named: bool) -> Iterator[str]:
    """Whatever program it is: behind walls one that has `named` its hosts gets to these and to what all get to."""
    script = read(line)
    for one in script.commands:
        if leaving.leaves(one) and not (named and reach() is not None):
            yield from leaving.places(one)
        elif not leaving.stays(one):
            yield from _code(leaving.places(one), reach())
    if script.unsure:
        yield from _code((f"line {line.strip()}",), reach())


def _code(places: tuple[str, ...], hosts: Sequence[str] | None) -> Iterator[str]:
    """Where code gets to that nobody has looked at: wherever it likes, unless walls let it reach some hosts only."""
    yield from places if hosts is None else (f"host {known(host)}" for host in hosts)


def _unknown(card: ToolCard) -> bool:
    """A tool that somebody else has written, and that changes something: where, nobody knows."""
    return card.source not in (BUILT_IN, PROGRAM) and card.effect in SIDE_EFFECTS


def known(host: str) -> str:
    """A host as people know it: without the port that the web has."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port in USUAL else host.lower()


def _line(text: str) -> str:
    """One line that stands for this and nothing else, also where it has to be cut."""
    plain = plainly(text)
    name = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}… ({name})"
