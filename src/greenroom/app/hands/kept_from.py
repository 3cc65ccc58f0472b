"""What a command is told that was kept from somebody on the network: from whom, and how to get there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from greenroom.adapters.web.proxy import Visit

MOST: Final = 20
"""Sentences about one command, at most."""

AT_ONCE: Final = 8
"""Hosts that one command can name."""

AGAIN: Final = "Run it again with hosts={hosts} and why: that asks a person."
FOR_GOOD: Final = "(They can open it to every command: `hosts = {hosts}` below [sandbox] in their settings.)"


class KeptFrom:
    """Of one command: the hosts that `everybody` may reach, its `own`, and what it asked for beyond."""

    def __init__(self, *, everybody: Sequence[str], own: Sequence[str]) -> None:
        self._everybody = tuple(everybody)
        self._own = tuple(own)
        self._hosts: dict[str, None] = {}
        self._said: dict[str, None] = {}

    @property
    def nowhere(self) -> bool:
        """Whether it may reach nobody at all."""
        return not (self._everybody or self._own)

    def add(self, visit: Visit) -> None:
        """One more that it did not reach. The proxy's own words count where they say more than that it is not open."""
        if len(self._hosts) + len(self._said) >= MOST:
            return
        if visit.verdict == "refused" and visit.host and "none of the hosts" in visit.why:
            self._hosts[visit.host.removesuffix(":443").removesuffix(":80")] = None
        else:
            self._said[visit.why] = None

    def told(self) -> str:
        """All of it, a sentence or two a line."""
        lines = [f"greenroom: {one}" for one in self._said]
        if self._hosts:
            lines.append(f"greenroom: {_closed(list(self._hosts), (*self._everybody, *self._own))} {self._how()}")
        return "\n".join(lines)

    def _how(self) -> str:
        """What it was let before it has to name again."""
        wanted = [*self._own, *self._hosts]
        return _both(wanted[:AT_ONCE], list(self._hosts))


def nothing_at_all() -> str:
    """What somebody is told who found no network."""
    return f"greenroom: commands reach nobody over the network here by themselves. {_both(['HOST'], ['HOST'])}"


def no_way_out(tier: str) -> str:
    """The same where nothing helps."""
    return (
        f"greenroom: commands reach nobody over the network here, whatever is allowed: these walls ({tier}) have no "
        "way out. Do without it, or say what is missing. (A person gets better walls as `greenroom doctor` says.)"
    )


def _closed(hosts: Sequence[str], may: Sequence[str]) -> str:
    listed = ", ".join(map(repr, hosts))
    only = f", only {', '.join(may)}" if may else ""
    return f"the {'host' if len(hosts) == 1 else 'hosts'} {listed} {'is' if len(hosts) == 1 else 'are'} not open{only}."


def _both(again: Sequence[str], for_good: Sequence[str]) -> str:
    return f"{AGAIN.format(hosts=json.dumps(again))} {FOR_GOOD.format(hosts=json.dumps(for_good))}"
