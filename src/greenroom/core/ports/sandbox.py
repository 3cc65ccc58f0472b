"""Walls around commands: what is to be done to a process before it becomes a command, as data. Nothing is done here.

Whoever puts up walls says what they are made of (`Enclosed`); whoever runs commands applies it in the process itself,
after the fork and before the exec. So neither knows the other, and no program stands in between that could be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

Tier = Literal["bubblewrap", "landlock", "seatbelt", "none"]
"""What confines a command: namespaces made by bubblewrap; Landlock where those are forbidden; both with a filter of
system calls. *seatbelt* is what macOS has; *none* is no sandbox."""

HOLDING: Final[frozenset[Tier]] = frozenset({"bubblewrap", "landlock"})
"""Tiers in which a command runs unasked: it cannot hurt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one command may use. At memory, processes and time of the processor somebody looks four times a second.

    `temporary` is what may lie in memory as files, in one place. `quota` is for all that lies in the workspace,
    `entries` for the number of files and folders in it.
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
class Shown:
    """Something of elsewhere that a command finds `at` a place: seen from the workspace, or from the top of all.

    With a `layer` (a folder, made if missing) a command may write there, and what it writes is kept in the layer and
    never in the source; a sandbox that can mount nothing shows a link that can be read. `hidden` files, named from the
    source, are empty.
    """

    source: str
    at: str
    writable: bool = False
    layer: str = ""
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A folder or file that is put where somebody without rights on the way to it can reach it, in a view of its own.

    With `owned` what belongs to root belongs to the one who becomes the command, in that view only: what it makes
    there is root's again outside.
    """

    source: str
    place: str
    owned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruleset:
    """What Landlock is told: everything in `files` and `network` is forbidden but what the `rules` (path, rights) let.

    `scopes` are what it may not reach outside: abstract sockets, signals.
    """

    files: int
    network: int = 0
    scopes: int = 0
    rules: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """A way out of walls without a network: what connects to `port` inside comes out at the unix socket `socket`.

    `told` and `gate` are the numbers at which the outermost program says who is inside, and waits for us.
    """

    port: int
    socket: str
    told: int
    gate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosed:
    """A command behind walls. In this order: it gets `rlimits`, `staged` folders, `contents` as files
    with these numbers, becomes `uid` and `gid` (root without capabilities), gets `landlock` and the filter `seccomp`,
    and is the program `words`.

    `tasks` are the processes that there may be on top of all that run now. An outermost program that is not the
    command itself (`outer`) is not told to end when the rest is; where it has a `verdict`, something is written to that
    number if the command died of a signal, of which such a program makes an exit code above 128. `token` is its name.
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
    staged: tuple[Staged, ...] = ()
    contents: Mapping[int, bytes] = field(default_factory=dict)
    landlock: Ruleset | None = None
    seccomp: bytes = b""
    outer: bool = False
    verdict: int | None = None
    bridge: Bridge | None = None


class Wall(Protocol):
    """Walls around the commands of one workspace."""

    @property
    def tier(self) -> Tier:
        """How strong it is."""

    def around(self, words: tuple[str, ...], folder: str, env: Mapping[str, str], door: str = "") -> Enclosed:
        """This command behind walls, once; `WorldFault` where they cannot be put up. Nothing runs yet.

        With a `door` (a unix socket) there is a way out, and it is the only one; not all walls can have one.
        """

    def overrun(self, enclosed: Enclosed, guard: int) -> str:
        """Why this command has to end: it, or the workspace, is over a limit that no kernel knows. Else empty.

        All its processes are below `guard`. Cheap: it is asked often.
        """

    def tidy(self, enclosed: Enclosed) -> None:
        """Take down what was put up for it. All of it is dead by then."""

    def close(self) -> None:
        """No more walls are needed."""


class Outlet(Protocol):
    """Who lets commands out of their walls, each to its own hosts. A command is known by its guard, the process that
    looks after it and nothing else."""

    async def door(self, hosts: tuple[str, ...]) -> str:
        """Where a command gets out that was allowed these hosts; empty where it does not. `WorldFault` for a host that
        is none."""

    def let(self, guard: int, hosts: tuple[str, ...]) -> None:
        """From now on this command reaches these hosts, on top of what all may reach."""

    def remarks(self, guard: int, printed: str) -> str:
        """What to add to the output of a command that has ended; `printed` is the end of it."""

    def end(self, guard: int) -> None:
        """It is dead: whatever it was let is over."""
