"""The sandbox: how to confine a process before it becomes a command, as data. Nothing is done here.

A `Sandbox` describes the confinement (`SandboxedCommand`). The command runner applies it in the process itself, after
the fork and before the exec. So neither depends on the other, and no helper program is needed in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

Tier = Literal["bubblewrap", "landlock", "seatbelt", "none"]
"""What confines a command. *bubblewrap* uses namespaces; *landlock* works where those are forbidden; both filter system
calls. *seatbelt* is for macOS; *none* means no sandbox."""

CONFINING_TIERS: Final[frozenset[Tier]] = frozenset({"bubblewrap", "landlock"})
"""Tiers in which a command runs without approval, because it is confined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLimits:
    """Limits of one command. Memory, processes and CPU time are measured four times a second.

    `temporary` limits files in memory, per place. `quota` limits the bytes in the workspace, `entries` its files and
    folders.
    """

    memory: int = 4 * 1024**3
    processes: int = 512
    file_size: int = 4 * 1024**3
    open_files: int = 4096
    cpu_seconds: int = 3600
    temporary: int = 1024**3
    quota: int = 10 * 1024**3
    entries: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxMount:
    """An outside file or folder that a command sees `at` a path, relative to the workspace or absolute.

    With a `layer` (a folder, made if missing) a command may write there: its changes go to the layer, never to the
    source. A sandbox that cannot mount shows a readable link instead. `hidden` files, relative to the source, appear
    empty.
    """

    source: str
    at: str
    writable: bool = False
    layer: str = ""
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedPath:
    """A folder or file placed where a user without rights on its parent folders can reach it, in a private view.

    With `owned`, root's files belong to the command's user in that view only: files that it makes there are root's
    outside.
    """

    source: str
    place: str
    owned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LandlockRuleset:
    """A Landlock ruleset: rights in `files` and `network` are denied except those that `rules` (path, rights) grant.

    `scopes` are outside resources that it may not reach: abstract sockets, signals.
    """

    files: int
    network: int = 0
    scopes: int = 0
    rules: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressBridge:
    """A connection out of a sandbox without network: `port` inside leads to the unix socket `socket`.

    `info` and `gate` are file descriptors: on the first the outermost program names its process, on the second it
    waits.
    """

    port: int
    socket: str
    info: int
    gate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxedCommand:
    """A confined command.

    The process first gets `rlimits`, the `staged` folders, and `contents` as files with these descriptors. It becomes
    `uid` and `gid` (root without capabilities), gets `landlock` and the filter `seccomp`, and executes `words`.

    `tasks` is how many processes may exist beyond those that run now. An outermost program that is not the command
    itself (`outer`) does not get the signal to end. A write to its `signal_fd` means that a signal killed the command:
    the program itself reports only an exit code above 128. `token` identifies the command.
    """

    words: tuple[str, ...]
    folder: str
    env: Mapping[str, str]
    token: str
    uid: int | None = None
    gid: int | None = None
    rlimits: Mapping[str, int] = field(default_factory=dict)
    tasks: int | None = None
    stage: str = ""
    staged: tuple[StagedPath, ...] = ()
    contents: Mapping[int, bytes] = field(default_factory=dict)
    landlock: LandlockRuleset | None = None
    seccomp: bytes = b""
    outer: bool = False
    signal_fd: int | None = None
    bridge: EgressBridge | None = None


class Sandbox(Protocol):
    """Confines the commands of one workspace."""

    @property
    def tier(self) -> Tier:
        """The tier of the sandbox."""

    def confine(
        self, words: tuple[str, ...], folder: str, env: Mapping[str, str], egress_socket: str = ""
    ) -> SandboxedCommand:
        """Return the confined command, for one run. Raise `WorldFault` if it cannot be confined. Nothing runs yet.

        With an egress socket (a unix socket) the command reaches the network through it only. Not all tiers support it.
        """

    def get_pause(self, supervisor_pid: int) -> float:
        """Return the seconds until the next check of the limits: the fewer, the less room is left in the workspace. If
        there may be none, stop the processes until that check."""

    def find_exceeded_limit(self, command: SandboxedCommand, supervisor_pid: int) -> str:
        """Return why the command has to end: it or the workspace exceeds a limit that no kernel enforces. Else empty.

        All its processes are below the supervisor. Cheap: it is called often.
        """

    def clean_up(self, command: SandboxedCommand) -> str:
        """Remove what was set up for the command, after all its processes have ended. Return what to append to its
        output."""

    def close(self) -> None:
        """Release the sandbox."""


class EgressGateway(Protocol):
    """Gives commands network access, each to its own hosts. A command is identified by its supervisor process."""

    async def get_socket(self, hosts: tuple[str, ...]) -> str:
        """Return the socket for a command with these allowed hosts; empty if it gets none. Raise `WorldFault` for an
        invalid host."""

    def allow_hosts(self, supervisor_pid: int, hosts: tuple[str, ...]) -> None:
        """Allow this command these hosts, in addition to those that all commands may reach."""

    def describe_refusals(self, supervisor_pid: int, printed: str) -> str:
        """Return what to append to the output of an ended command; `printed` is the end of that output."""

    def revoke_hosts(self, supervisor_pid: int) -> None:
        """Revoke the hosts of an ended command."""
