"""The sandbox around the commands of a workspace, made when it is first needed, and its network: an egress proxy.

Some hosts are open to every command, as the person's settings say; others to one command only, while it runs, because
the policy has allowed that call. The kernel says who asks at the proxy: a child of the command's guard.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Final, Literal, TypeAlias

from platformdirs import user_cache_path

from greenroom.adapters.processes.plain import PlainCommands
from greenroom.adapters.sandbox.choice import Chosen, chosen, wall_of
from greenroom.adapters.sandbox.ground import Ground
from greenroom.adapters.sandbox.layers import Links
from greenroom.adapters.sandbox.session import OwnFolder
from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.proxy import Proxy, Visit, Way, pattern
from greenroom.app.settings.home import config_folder
from greenroom.app.settings.schema import SandboxSettings, WebSettings
from greenroom.app.toolset.pipeline import bound_agents
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.hosts import BadHost, Closed, Host, host, nothing_closed
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.sandbox import HOLDING, Limits, Shown, Tier, Wall
from greenroom.core.ports.tool import Policy, Target, ToolCard
from greenroom.core.state.step import Step
from greenroom.core.state.world import World

__all__ = ("HOLDING", "Tier", "Walls", "Wish", "strongest", "tier_in")

Wish: TypeAlias = Literal["auto", "off"]
KNOWN: Final = "sandbox.json"
OFF: Final = Chosen(tier="none", why=('walls = "off" below [sandbox] in your settings',))
USUAL: Final = SandboxSettings()
NO_WEB: Final = WebSettings()


def strongest(wish: Wish = "auto") -> Chosen:
    """The best sandbox of this machine, tried if that is not known yet: half a second, once. A workspace may get a
    weaker one."""
    if wish == "off":
        return OFF
    cache = user_cache_path("greenroom", appauthor=False) / KNOWN
    # Trying means running commands, and who asks may be in the middle of something: so it has a loop of its own.
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(lambda: asyncio.run(chosen(_opened, Path.home(), cache))).result()


def tier_in(root: Path, settings: SandboxSettings | None = None, *, at: Path | None = None) -> Chosen:
    """The sandbox that commands in this folder get, and why no better one: the folder need not be there yet. Nothing
    is left standing."""
    with tempfile.TemporaryDirectory(prefix="greenroom-") as folder:
        walls = Walls(root if root.is_dir() else Path(folder), settings or USUAL, at=at)
        try:
            return walls.chosen
        finally:
            walls.take_down()


def _opened(root: Path, wall: Wall | None) -> PlainCommands:
    return PlainCommands(root, wall=wall)


class Walls:
    """Around the workspace at `root`, which commands see at `at`, as the person has set them up.

    What is `lent` comes from elsewhere. Only namespaces can show things where they are not: in another sandbox, and
    without one, the workspace is seen where it is, and what is lent with a layer is a link there. The hosts that they
    name are reached through the `outlet`; what is local is as they say for the `web`.
    """

    def __init__(
        self,
        root: Path,
        settings: SandboxSettings = USUAL,
        *,
        at: Path | None = None,
        lent: Sequence[Shown] = (),
        web: WebSettings = NO_WEB,
    ) -> None:
        self._root = root.resolve()
        self._at = at or self._root
        self._lent = tuple(lent)
        self._wish = settings.walls
        self.outlet = EgressProxy(settings.hosts, web, lambda: self.chosen.tier)
        self._wall: Wall | None = None
        self._links: Links | None = None
        self._chosen: Chosen | None = None
        self._choosing = Lock()

    @property
    def chosen(self) -> Chosen:
        """Which ones, and why no better ones."""
        with self._choosing:
            if self._chosen is None:
                self._chosen = strongest(self._wish)
                self._put_up(self._chosen)
            return self._chosen

    def hold(self) -> bool:
        """Whether a command cannot hurt: then nobody has to be asked."""
        return self.chosen.tier in HOLDING

    def wall(self) -> Wall | None:
        """The walls; None where there are none."""
        return self._wall if self.chosen.tier != "none" else None

    async def opened(self) -> Wall | None:
        """The same for whoever runs commands."""
        return await asyncio.to_thread(self.wall)

    def reach(self) -> tuple[str, ...] | None:
        """The hosts that every command gets to: behind walls a few or none, without them (None) whatever they like."""
        if not self.hold():
            return None
        return self.outlet.hosts if self.chosen.tier == "bubblewrap" else ()

    async def close(self) -> None:
        """Take it down; also one in which nothing was run."""
        self.take_down()
        await self.outlet.close()

    def take_down(self) -> None:
        """All but the way out."""
        for one in (self._wall, self._links):
            if one is not None:
                one.close()

    def _put_up(self, found: Chosen) -> None:
        """Some places are too wide for a sandbox, or cannot be reached in it: then a person is asked, as without."""
        try:
            ground = Ground(
                root=self._root, at=self._root, home=Path.home(), scratch=_scratch(), hidden=(config_folder(),)
            )
            if found.tier == "bubblewrap":
                ground = evolve(ground, at=self._at, lent=self._lent)
            elif found.tier == "landlock":
                ground = evolve(ground, lent=self._linked())
            self._wall = wall_of(found.tier, ground, Limits(), found.program)
        except (WorldFault, OSError) as fault:
            self._chosen = Chosen(tier="none", why=(*found.why, f"{found.tier}: {fault}"))
        if self._wall is None or self._wall.tier == "seatbelt":
            self._links = Links(self._root, self._linked())

    def _linked(self) -> tuple[Shown, ...]:
        """What is lent with a layer, seen from where the workspace lies."""
        places = [(one, self._at / one.at) for one in self._lent if one.layer]
        return tuple(
            replace(one, at=str(place.relative_to(self._at))) for one, place in places if place.is_relative_to(self._at)
        )


def _scratch() -> Path:
    """In the person's cache; as root where somebody else can reach it too."""
    if os.geteuid() != 0:
        return user_cache_path("greenroom", appauthor=False) / "scratch"
    folder = Path(tempfile.gettempdir(), "greenroom-scratch")
    folder.mkdir(mode=0o711, exist_ok=True)
    known = folder.lstat()
    if folder.is_symlink() or known.st_uid != 0:
        raise WorldFault(f"{str(folder)!r} is not ours. Remove it.")
    return folder


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


class Refusals:
    """Of one command: the hosts that `everyone` may reach, its `own`, and those that it was refused."""

    def __init__(self, *, everyone: Sequence[str], own: Sequence[str]) -> None:
        self.everyone = tuple(everyone)
        self.own = tuple(own)
        self._hosts: dict[str, None] = {}
        self._said: dict[str, None] = {}

    def add(self, visit: Visit) -> None:
        """One more refusal. The proxy's own words count where they say more than that a host is not open."""
        if len(self._hosts) + len(self._said) >= MOST:
            return
        if visit.verdict == "refused" and visit.host and "none of the hosts" in visit.why:
            self._hosts[visit.host.removesuffix(":443").removesuffix(":80")] = None
        else:
            self._said[visit.why] = None

    def describe(self) -> str:
        """All of them, a sentence or two a line."""
        lines = [f"greenroom: {why}" for why in self._said]
        if self._hosts:
            may = ", ".join((*self.everyone, *self.own))
            hosts = f"{'host' if len(self._hosts) == 1 else 'hosts'} {', '.join(map(repr, self._hosts))}"
            verb = "is" if len(self._hosts) == 1 else "are"
            wanted = [*self.own, *self._hosts]  # what it was allowed before it has to name again
            how = _both(wanted[:AT_ONCE], list(self._hosts))
            lines.append(f"greenroom: the {hosts} {verb} not open{f', only {may}' if may else ''}. {how}")
        return "\n".join(lines)


def _both(again: Sequence[str], for_good: Sequence[str]) -> str:
    return f"{AGAIN.format(hosts=json.dumps(again))} {FOR_GOOD.format(hosts=json.dumps(for_good))}"


NO_NETWORK: Final = f"greenroom: commands reach nobody over the network here by themselves. {_both(['HOST'], ['HOST'])}"
NO_WAY_OUT: Final = (
    "greenroom: commands reach nobody over the network here, whatever is allowed: these walls ({tier}) have no "
    "way out. Do without it, or say what is missing. (A person gets better walls as `greenroom doctor` says.)"
)
DOOR: Final = "door"

CLOSED: Final = re.compile(
    r"could ?n[o']t resolve|name or service not known|temporary failure in name resolution|network is unreachable"
    r"|nodename nor servname|getaddrinfo|dns error|name resolution",
    re.IGNORECASE,
)
"""What programs say that find no network."""

ClosedTo: TypeAlias = Callable[[Sequence[str]], Closed]
"""What is closed to who was let to hosts by these names."""


class EgressProxy:
    """The `Outlet` of commands: to `hosts` for all of them, and to what one of them was allowed by name.

    What `closed` names is not reached. What is local, and which ports there are, is as for the `web`. Only in a sandbox
    of the tier `bubblewrap` there is such a way out.
    """

    def __init__(self, hosts: Sequence[str], web: WebSettings, tier: Callable[[], Tier]) -> None:
        self.hosts = tuple(hosts)
        self.closed: ClosedTo = lambda _: nothing_closed
        self._web = web
        self._tier = tier
        self._folder: OwnFolder | None = None
        self._proxy: Proxy | None = None
        self._opening = asyncio.Lock()
        self._let: dict[int, Way] = {}
        self._callers: dict[int, set[int]] = {}
        self._refusals: dict[int, Refusals] = {}

    async def door(self, hosts: tuple[str, ...] = ()) -> str:
        """The socket of the proxy, open from now on; empty for a command that may reach nothing."""
        if self._tier() != "bubblewrap" or not (self.hosts or hosts):
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
        self._refusals[guard] = Refusals(everyone=self.hosts, own=hosts)
        if hosts:
            named = (*self.hosts, *hosts)
            patterns = (*map(pattern, self.hosts), *map(_named, hosts))
            self._let[guard] = Way(hosts=patterns, guard=self._guard(named))

    def remarks(self, guard: int, printed: str) -> str:
        """What to add to the output of a command that has ended: which hosts it was refused, and what to do."""
        tier, refusals = self._tier(), self._refusals.get(guard)
        if tier == "none":
            return ""
        if tier != "bubblewrap":
            return NO_WAY_OUT.format(tier=tier) if guard in self._let or CLOSED.search(printed) else ""
        if refusals is None or not (refusals.everyone or refusals.own):
            return NO_NETWORK if CLOSED.search(printed) else ""
        return refusals.describe()

    def end(self, guard: int) -> None:
        """What it was let is over, and whatever still goes on for it is cut."""
        self._let.pop(guard, None)
        self._refusals.pop(guard, None)
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
        if guard in self._refusals:
            self._callers.setdefault(guard, set()).add(caller)
        return self._let.get(guard)

    def _hear(self, visit: Visit) -> None:
        refusals = self._refusals.get(_parent(visit.caller))
        if refusals is not None and visit.verdict != "allowed":
            refusals.add(visit)


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
