"""The sandbox of a workspace's commands, set up on first use, and its network through an egress proxy.

The settings open some hosts to all commands. The policy opens others to one command while it runs. The kernel
identifies the client of the proxy: a child of the command's supervisor.
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

from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.adapters.sandbox.choice import SandboxChoice, choose_sandbox, make_sandbox
from greenroom.adapters.sandbox.layers import FolderLinks
from greenroom.adapters.sandbox.protection import SharedRecord
from greenroom.adapters.sandbox.session import TemporaryFolder
from greenroom.adapters.sandbox.view import SandboxView
from greenroom.adapters.web.address_filter import AddressFilter
from greenroom.adapters.web.proxy import EgressRoute, Proxy, ProxyVisit, parse_pattern
from greenroom.app.settings.home import config_folder
from greenroom.app.settings.schema import SandboxSettings, WebSettings
from greenroom.app.toolset.pipeline import bound_agents
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.hosts import BadHost, Host, HostBlocker, block_no_host, parse_host
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.sandbox import CONFINING_TIERS, CommandLimits, Sandbox, SandboxMount, Tier
from greenroom.core.ports.tool import Policy, Target, ToolCard
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState

SandboxMode: TypeAlias = Literal["auto", "off"]
TIER_CACHE_FILE: Final = "sandbox.json"
SANDBOX_OFF: Final = SandboxChoice(tier="none", why=('walls = "off" below [sandbox] in your settings',))
DEFAULT_SANDBOX: Final = SandboxSettings()
DEFAULT_WEB: Final = WebSettings()


def find_strongest_sandbox(mode: SandboxMode = "auto") -> SandboxChoice:
    """Return the best sandbox of this machine. Detection takes half a second, once. A workspace may get less."""
    if mode == "off":
        return SANDBOX_OFF
    cache = user_cache_path("greenroom", appauthor=False) / TIER_CACHE_FILE
    # Detection runs commands, and the caller may already be in an event loop: so it gets its own loop.
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(lambda: asyncio.run(choose_sandbox(_make_commands, Path.home(), cache))).result()


def find_folder_sandbox(
    root: Path, settings: SandboxSettings | None = None, *, at: Path | None = None
) -> SandboxChoice:
    """Return the sandbox for commands in this folder, and why there is no better one. The folder need not exist."""
    with tempfile.TemporaryDirectory(prefix="greenroom-") as folder:
        sandbox = WorkspaceSandbox(root if root.is_dir() else Path(folder), settings or DEFAULT_SANDBOX, at=at)
        try:
            return sandbox.choice
        finally:
            sandbox.close_sandbox()


def _make_commands(root: Path, sandbox: Sandbox | None) -> LocalCommands:
    return LocalCommands(root, sandbox=sandbox)


class WorkspaceSandbox:
    """The sandbox of the workspace at `root`, which commands see at `at`, with the person's settings.

    With `read_only`, commands cannot change it, and are refused where no sandbox confines them. `mounts` come from
    elsewhere. Only namespaces can show files at another path. In other sandboxes, and without one, the workspace stays
    where it is, and layered mounts are links. Allowed hosts are reached through `egress_proxy`; local hosts follow the
    settings of `web`.
    """

    def __init__(
        self,
        root: Path,
        settings: SandboxSettings = DEFAULT_SANDBOX,
        *,
        at: Path | None = None,
        mounts: Sequence[SandboxMount] = (),
        read_only: bool = False,
        web: WebSettings = DEFAULT_WEB,
    ) -> None:
        self._root = root.resolve()
        self._at = at or self._root
        self._mounts = tuple(mounts)
        self._read_only = read_only
        self._mode = settings.walls
        self.egress_proxy = EgressProxy(settings.hosts, web, lambda: self.choice.tier)
        self._sandbox: Sandbox | None = None
        self._links: FolderLinks | None = None
        self._choice: SandboxChoice | None = None
        self._choice_lock = Lock()
        if SharedRecord(_find_scratch_folder(), self._root).exists():
            self.get_sandbox()  # it restores what a killed process left

    @property
    def choice(self) -> SandboxChoice:
        """The selected sandbox, and why there is no better one."""
        with self._choice_lock:
            if self._choice is None:
                self._choice = find_strongest_sandbox(self._mode)
                self._set_up(self._choice)
            return self._choice

    def is_holding(self) -> bool:
        """Whether commands are confined well enough to run without approval."""
        return self.choice.tier in CONFINING_TIERS

    def get_sandbox(self) -> Sandbox | None:
        return self._sandbox if self.choice.tier != "none" else None

    async def open_sandbox(self) -> Sandbox | None:
        """Return the sandbox without blocking the event loop. Raise `WorldFault` if a read-only workspace has none."""
        if self._read_only and not await asyncio.to_thread(self.is_holding):
            raise WorldFault("sandbox.read_only_unconfined")
        return await asyncio.to_thread(self.get_sandbox)

    def reach(self) -> tuple[str, ...] | None:
        """Return the hosts that every command can reach. None means all hosts, because no sandbox holds."""
        if not self.is_holding():
            return None
        return self.egress_proxy.hosts if self.choice.tier == "bubblewrap" else ()

    async def close(self) -> None:
        """Remove the sandbox and stop the egress proxy."""
        self.close_sandbox()
        await self.egress_proxy.close()

    def close_sandbox(self) -> None:
        """Remove the sandbox, but keep the egress proxy."""
        for closable in (self._sandbox, self._links):
            if closable is not None:
                closable.close()

    def _set_up(self, choice: SandboxChoice) -> None:
        """Set up the sandbox. If the folder is too wide or unreachable in it, use none, so that a person is asked."""
        try:
            view = SandboxView(
                root=self._root,
                at=self._root,
                home=Path.home(),
                scratch=_find_scratch_folder(),
                hidden=(config_folder(),),
                read_only=self._read_only,
            )
            if choice.tier == "bubblewrap":
                view = evolve(view, at=self._at, mounts=self._mounts)
            elif choice.tier == "landlock":
                view = evolve(view, mounts=self._list_links())
            self._sandbox = make_sandbox(choice.tier, view, CommandLimits(), choice.program)
        except (WorldFault, OSError) as fault:
            self._choice = SandboxChoice(tier="none", why=(*choice.why, f"{choice.tier}: {fault}"))
        if self._sandbox is None or self._sandbox.tier == "seatbelt":
            self._links = FolderLinks(self._root, self._list_links())

    def _list_links(self) -> tuple[SandboxMount, ...]:
        """Return the layered mounts, relative to the workspace."""
        mounts_with_paths = [(mount, self._at / mount.at) for mount in self._mounts if mount.layer]
        return tuple(
            replace(mount, at=str(path.relative_to(self._at)))
            for mount, path in mounts_with_paths
            if path.is_relative_to(self._at)
        )


def _find_scratch_folder() -> Path:
    """Return the scratch folder: in the person's cache, or for root in a folder that other users can reach."""
    if os.geteuid() != 0:
        return user_cache_path("greenroom", appauthor=False) / "scratch"
    folder = Path(tempfile.gettempdir(), "greenroom-scratch")
    folder.mkdir(mode=0o711, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != 0:
        raise WorldFault("toolset.folder_of_another_user", folder=str(folder))
    return folder


NO_AGENT: Final = AgentId("")
EGRESS_CARD: Final = ToolCard(spec=ToolSpec(name="gate", description="Network access."), group="web")
"""Stands for all network access. Rules about hosts do not depend on the tool."""


def make_host_blocker(
    policy: Policy,
    host_names: Collection[str] | None = None,
    grants: Collection[str] = (),
    limits: Collection[str] = (),
) -> HostBlocker:
    """Return a check whether a host is blocked by a rule. With `host_names`, a host that needs approval and is not
    among them is blocked too, because a running command cannot ask."""
    lowered_names = None if host_names is None else {name.lower() for name in host_names}

    def explain_blocked(requested: Host) -> str:
        ruling = policy.decide(NO_AGENT, EGRESS_CARD, (Target(kind="host", value=str(requested)),), grants, limits)
        if ruling.verdict == "deny":
            return ruling.why
        if (
            lowered_names is None
            or lowered_names & {requested.name, str(requested)}
            or not ruling.rule.startswith("ask ")
        ):
            return ""
        return f"{ruling.why} A running command cannot ask: name the host {requested.name!r} beforehand."

    return explain_blocked


def make_step_host_blocker(policy: Policy, state: TeamState, step: Step, host_names: Sequence[str]) -> HostBlocker:
    """Return the check for a step, with the rules of its agent and of those on whose behalf it works."""
    limits = frozenset(rule for agent in bound_agents(state, step) for rule in state.agents[agent].spec.rules)
    return make_host_blocker(policy, host_names, state.grants, limits)


MAX_REFUSALS: Final = 20
MAX_HOSTS_PER_COMMAND: Final = 8
RETRY_ADVICE: Final = "Run it again with hosts={hosts} and why: that asks a person."
SETTINGS_ADVICE: Final = "(They can open it to every command: `hosts = {hosts}` below [sandbox] in their settings.)"


class HostRefusals:
    """The refused hosts of one command, with the hosts open to all commands and to this one."""

    def __init__(self, *, shared_hosts: Sequence[str], own_hosts: Sequence[str]) -> None:
        self.shared_hosts = tuple(shared_hosts)
        self.own_hosts = tuple(own_hosts)
        self._hosts: dict[str, None] = {}
        self._reasons: dict[str, None] = {}

    def add(self, visit: ProxyVisit) -> None:
        """Add a refusal. The proxy's reason is kept if it says more than that a host is not open."""
        if len(self._hosts) + len(self._reasons) >= MAX_REFUSALS:
            return
        if visit.verdict == "refused" and visit.host and "none of the hosts" in visit.why:
            self._hosts[visit.host.removesuffix(":443").removesuffix(":80")] = None
        else:
            self._reasons[visit.why] = None

    def describe(self) -> str:
        """Describe all refusals, one per line."""
        lines = [f"greenroom: {why}" for why in self._reasons]
        if self._hosts:
            open_hosts = ", ".join((*self.shared_hosts, *self.own_hosts))
            hosts = f"{'host' if len(self._hosts) == 1 else 'hosts'} {', '.join(map(repr, self._hosts))}"
            verb = "is" if len(self._hosts) == 1 else "are"
            hosts_to_name = [*self.own_hosts, *self._hosts]  # earlier hosts must be named again
            advice = _render_advice(hosts_to_name[:MAX_HOSTS_PER_COMMAND], list(self._hosts))
            lines.append(
                f"greenroom: the {hosts} {verb} not open{f', only {open_hosts}' if open_hosts else ''}. {advice}"
            )
        return "\n".join(lines)


def _render_advice(again: Sequence[str], for_good: Sequence[str]) -> str:
    return f"{RETRY_ADVICE.format(hosts=json.dumps(again))} {SETTINGS_ADVICE.format(hosts=json.dumps(for_good))}"


NO_NETWORK: Final = f"greenroom: commands have no network here by themselves. {_render_advice(['HOST'], ['HOST'])}"
NO_EGRESS: Final = (
    "greenroom: commands have no network here, even if it is allowed: this sandbox ({tier}) has no "
    "way out. Do without it, or say what is missing. (`greenroom doctor` tells a person how to get a better one.)"
)

NO_NETWORK_PATTERN: Final = re.compile(
    r"could ?n[o']t resolve|name or service not known|temporary failure in name resolution|network is unreachable"
    r"|nodename nor servname|getaddrinfo|dns error|name resolution",
    re.IGNORECASE,
)

HostBlockerFactory: TypeAlias = Callable[[Sequence[str]], HostBlocker]
"""Makes a host check for a command with these host names."""


class EgressProxy:
    """The `EgressGateway` of commands: to `hosts` for all of them, and to approved hosts for a single one.

    Blocked hosts are never reached. Local hosts and ports follow the settings of `web`. Only the `bubblewrap` tier has
    network access.
    """

    def __init__(self, hosts: Sequence[str], web: WebSettings, tier: Callable[[], Tier]) -> None:
        self.hosts = tuple(hosts)
        self.make_blocker: HostBlockerFactory = lambda _: block_no_host
        self._web = web
        self._tier = tier
        self._folder: TemporaryFolder | None = None
        self._proxy: Proxy | None = None
        self._opening = asyncio.Lock()
        self._routes: dict[int, EgressRoute] = {}
        self._callers: dict[int, set[int]] = {}
        self._refusals: dict[int, HostRefusals] = {}

    async def get_socket(self, hosts: tuple[str, ...] = ()) -> str:
        """Start the proxy and return its socket, or "" for a command without network."""
        if self._tier() != "bubblewrap" or not (self.hosts or hosts):
            return ""
        tuple(map(_parse_host_name, hosts))
        async with self._opening:
            if self._folder is None:
                self._folder = TemporaryFolder(_find_socket_folder())
            door = self._folder.place / "door"
            if self._proxy is None:
                proxy = Proxy(
                    self._make_filter(self.hosts), self.hosts, route_of=self._find_route, on_visit=self._record_visit
                )
                await proxy.listen(door)
                self._proxy = proxy
        return str(door)

    def allow_hosts(self, supervisor_pid: int, hosts: tuple[str, ...]) -> None:
        """Open hosts to a command until it ends. Its process id may be reused, so old permissions are dropped."""
        self.revoke_hosts(supervisor_pid)
        self._refusals[supervisor_pid] = HostRefusals(shared_hosts=self.hosts, own_hosts=hosts)
        if hosts:
            named = (*self.hosts, *hosts)
            patterns = (*map(parse_pattern, self.hosts), *map(_parse_host_name, hosts))
            self._routes[supervisor_pid] = EgressRoute(hosts=patterns, address_filter=self._make_filter(named))

    def describe_refusals(self, supervisor_pid: int, printed: str) -> str:
        """Return the text to add to a command's output: the refused hosts and what to do."""
        tier, refusals = self._tier(), self._refusals.get(supervisor_pid)
        if tier == "none":
            return ""
        if tier != "bubblewrap":
            if supervisor_pid in self._routes or NO_NETWORK_PATTERN.search(printed):
                return NO_EGRESS.format(tier=tier)
            return ""
        if refusals is None or not (refusals.shared_hosts or refusals.own_hosts):
            return NO_NETWORK if NO_NETWORK_PATTERN.search(printed) else ""
        return refusals.describe()

    def revoke_hosts(self, supervisor_pid: int) -> None:
        """Close a command's hosts and cut its open connections."""
        self._routes.pop(supervisor_pid, None)
        self._refusals.pop(supervisor_pid, None)
        callers = self._callers.pop(supervisor_pid, None)
        if callers and self._proxy is not None:
            self._proxy.cut(callers)

    async def close(self) -> None:
        proxy, folder = self._proxy, self._folder
        self._proxy = self._folder = None
        if proxy is not None:
            await proxy.close()
        if folder is not None:
            folder.close()

    def _make_filter(self, host_names: Sequence[str]) -> AddressFilter:
        return AddressFilter(self._web.local, ports=self._web.ports, closed=self.make_blocker(host_names))

    def _find_route(self, caller: int) -> EgressRoute | None:
        """Return the route of a client that can reach more than all commands can."""
        supervisor_pid = _read_parent_pid(caller)
        if supervisor_pid in self._refusals:
            self._callers.setdefault(supervisor_pid, set()).add(caller)
        return self._routes.get(supervisor_pid)

    def _record_visit(self, visit: ProxyVisit) -> None:
        refusals = self._refusals.get(_read_parent_pid(visit.caller))
        if refusals is not None and visit.verdict != "allowed":
            refusals.add(visit)


def _parse_host_name(text: str) -> Host:
    """Parse a single host. A pattern would allow more than the person approved."""
    try:
        return parse_host(text)
    except BadHost as reason:
        raise WorldFault("toolset.invalid_host", text=text, reason=reason) from None


def _read_parent_pid(pid: int) -> int:
    """Return a process's parent. Clients of a command are children of its supervisor."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
    return 0


def _find_socket_folder() -> Path:
    """Return a private folder with a short name, because a socket's path has at most 108 bytes."""
    folder = Path(tempfile.gettempdir(), f"greenroom-doors-{os.geteuid()}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise WorldFault("toolset.folder_of_another_user", folder=str(folder))
    return folder
