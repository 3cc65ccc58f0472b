"""The network of commands: a proxy to the hosts that a person has named, and what a blocked command is told.

Some hosts are open to every command, as the person's settings say; others to one command only, while it runs, because
the policy has said yes to that very call. The kernel says who asks at the proxy: a child of the command's guard.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.adapters.sandbox.session import OwnFolder
from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.proxy import Proxy, Visit, Way, pattern
from greenroom.app.settings.schema import WebSettings
from greenroom.app.toolset.pipeline import bound_agents
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.hosts import BadHost, Closed, Host, host, nothing_closed
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Policy, Target, ToolCard
from greenroom.core.state.step import Step
from greenroom.core.state.world import World

NOBODY: Final = AgentId("")
GATE: Final = ToolCard(spec=ToolSpec(name="gate", description="A way out."), group="web")
"""Stands for whatever goes through: rules about hosts do not look at tools."""


def closed(
    policy: Policy,
    named: Collection[str] | None = None,
    grants: Collection[str] = (),
    limits: Collection[str] = (),
) -> Closed:
    """What is closed by a rule that forbids it; for who was let to some hosts by their names (`named`) also what a rule
    wants asked about and is none of them: nobody can be asked in the middle of it."""
    letters = None if named is None else {one.lower() for one in named}

    def why(asked: Host) -> str:
        ruling = policy.decide(NOBODY, GATE, (Target(kind="host", value=str(asked)),), grants, limits)
        if ruling.verdict == "deny":
            return ruling.why
        if letters is None or letters & {asked.name, str(asked)} or not ruling.rule.startswith("ask "):
            return ""
        return f"{ruling.why} Nobody can be asked now: name the host {asked.name!r} beforehand."

    return why


def closed_for(policy: Policy, world: World, step: Step, named: Sequence[str]) -> Closed:
    """The same for a step: what binds its agent, and those on whose behalf it works, closes too."""
    limits = frozenset(rule for agent in bound_agents(world, step) for rule in world.agents[agent].spec.rules)
    return closed(policy, named, world.grants, limits)


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
            may = ", ".join((*self._everybody, *self._own))
            hosts = f"{'host' if len(self._hosts) == 1 else 'hosts'} {', '.join(map(repr, self._hosts))}"
            verb = "is" if len(self._hosts) == 1 else "are"
            wanted = [*self._own, *self._hosts]  # what it was let before it has to name again
            how = _both(wanted[:AT_ONCE], list(self._hosts))
            lines.append(f"greenroom: the {hosts} {verb} not open{f', only {may}' if may else ''}. {how}")
        return "\n".join(lines)


def nothing_at_all() -> str:
    """What somebody is told who found no network."""
    return f"greenroom: commands reach nobody over the network here by themselves. {_both(['HOST'], ['HOST'])}"


def no_way_out(tier: str) -> str:
    """The same where nothing helps."""
    return (
        f"greenroom: commands reach nobody over the network here, whatever is allowed: these walls ({tier}) have no "
        "way out. Do without it, or say what is missing. (A person gets better walls as `greenroom doctor` says.)"
    )


def _both(again: Sequence[str], for_good: Sequence[str]) -> str:
    return f"{AGAIN.format(hosts=json.dumps(again))} {FOR_GOOD.format(hosts=json.dumps(for_good))}"


DOOR: Final = "door"

CLOSED: Final = re.compile(
    r"could ?n[o']t resolve|name or service not known|temporary failure in name resolution|network is unreachable"
    r"|nodename nor servname|getaddrinfo|dns error|name resolution",
    re.IGNORECASE,
)
"""What programs say that find no network."""

ClosedTo: TypeAlias = Callable[[Sequence[str]], Closed]
"""What is closed to who was let to hosts by these names."""


class WayOut:
    """To `hosts` for all commands, and to what one of them was let; but for what is `closed` when it is. What is local,
    and which ports there are, is as for the `web`."""

    def __init__(self, hosts: Sequence[str], web: WebSettings) -> None:
        self.hosts = tuple(hosts)
        self.closed: ClosedTo = lambda _: nothing_closed
        self._web = web
        self._folder: OwnFolder | None = None
        self._proxy: Proxy | None = None
        self._opening = asyncio.Lock()
        self._let: dict[int, Way] = {}
        self._callers: dict[int, set[int]] = {}
        self._kept: dict[int, KeptFrom] = {}

    async def door(self, hosts: tuple[str, ...] = ()) -> str:
        """Where it is, from now on; empty for who may reach nothing."""
        if not (self.hosts or hosts):
            return ""
        tuple(map(_named, hosts))
        async with self._opening:
            if self._folder is None:
                self._folder = OwnFolder(_doors())
            door = self._folder.place / DOOR
            if self._proxy is None:
                proxy = Proxy(self._guard(self.hosts), self.hosts, own=self._way, told=self._hear)
                await proxy.listen(door)
                self._proxy = proxy
        return str(door)

    def let(self, guard: int, hosts: tuple[str, ...]) -> None:
        """To these too, until it ends. A number may have been another command's: nothing is left of what that had."""
        self.end(guard)
        self._kept[guard] = KeptFrom(everybody=self.hosts, own=hosts)
        if hosts:
            named = (*self.hosts, *hosts)
            patterns = (*map(pattern, self.hosts), *map(_named, hosts))
            self._let[guard] = Way(hosts=patterns, guard=self._guard(named))

    def lets(self, guard: int) -> bool:
        """Whether it was let to hosts of its own."""
        return guard in self._let

    def remarks(self, guard: int, printed: str) -> str:
        """What to add to the output of a command that has ended: of which hosts it was kept, and what to do."""
        kept = self._kept.get(guard)
        if kept is None or kept.nowhere:
            return nothing_at_all() if CLOSED.search(printed) else ""
        return kept.told()

    def end(self, guard: int) -> None:
        """What it was let is over, and whatever still goes on for it is cut."""
        self._let.pop(guard, None)
        self._kept.pop(guard, None)
        callers = self._callers.pop(guard, None)
        if callers and self._proxy is not None:
            self._proxy.cut(callers)

    async def close(self) -> None:
        proxy, folder = self._proxy, self._folder
        self._proxy = self._folder = None
        if proxy is not None:
            await proxy.close()
        if folder is not None:
            folder.close()

    def _guard(self, named: Sequence[str]) -> Guard:
        return Guard(self._web.local, ports=self._web.ports, closed=self.closed(named))

    def _way(self, caller: int) -> Way | None:
        """What whoever asks may reach, if it is more than what all may."""
        guard = _parent(caller)
        if guard in self._kept:
            self._callers.setdefault(guard, set()).add(caller)
        return self._let.get(guard)

    def _hear(self, visit: Visit) -> None:
        kept = self._kept.get(_parent(visit.caller))
        if kept is not None and visit.verdict != "allowed":
            kept.add(visit)


def _named(told: str) -> Host:
    """One host to the letter: a pattern would be more than anybody was asked about."""
    try:
        return host(told)
    except BadHost as why:
        raise WorldFault(f'{told!r} is no host: it {why}. Name it like "pypi.org" or "pypi.org:8443".') from None


def _parent(pid: int) -> int:
    """Whoever connects for a command was begun by its guard."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
    return 0


def _doors() -> Path:
    """A folder of ours, with a short name: that of a socket has 108 bytes at most."""
    folder = Path(tempfile.gettempdir(), f"greenroom-doors-{os.geteuid()}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise WorldFault(f"{str(folder)!r} is not ours. Remove it.")
    return folder
