"""The sandbox of Landlock, where namespaces are forbidden: files by a list, no network, the same filter of calls.

It sees no changed modes and dates, hides no processes, and cannot keep a command from git's settings; those are put
back after it. What else it cannot do is said in docs/howto/sandbox.md.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.ground import ETC, NAME, SYSTEM, Ground, identity, refuse_unreachable, secrets_in
from greenroom.adapters.sandbox.layers import Links, readable_parts
from greenroom.adapters.sandbox.protection import outer_git
from greenroom.adapters.sandbox.seccomp import seccomp
from greenroom.adapters.sandbox.session import SandboxSession, readable_by_all
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.sandbox import Enclosed, Limits, Ruleset, Tier

LEAST: Final = 3
"""The first Landlock that sees a file being cut short."""

WITH_NETWORK: Final = 4
WITH_DEVICES: Final = 5
WITH_SCOPES: Final = 6

LOOK: Final = 0b1101  # execute, read files, read folders
LIST: Final = 0b1000
ALL: Final = 0x7FFF
DEVICES: Final = 0x8000
NETWORK: Final = 0b11
SCOPES: Final = 0b11
USE: Final = 0b110 | 1 << 14

CREATE_RULESET: Final = 444
TELL_VERSION: Final = 1

HARMLESS_DEVICES: Final = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
OPTIONAL: Final = "/opt"
OTHERS: Final = 0o005
PEOPLE: Final = ("/etc/passwd", "/etc/group", "/etc/hosts")


class Landlock(SandboxSession):
    """Around one workspace; `version` is which Landlock the kernel has."""

    tier: Tier = "landlock"

    def __init__(self, ground: Ground, limits: Limits, *, version: int) -> None:
        if version < LEAST or ground.at != ground.root:
            raise WorldFault("Landlock cannot be used for this: it is too old, or the workspace is to be elsewhere.")
        who = identity(ground.root, swaps=False)
        refuse_unreachable(ground.root, who)
        super().__init__(ground, limits, who, weak=True)
        self._version = version
        self.scratch.give(who)
        self._filter = seccomp(network=False)
        self._links = Links(ground.root, (one for one in ground.lent if one.layer))

    def enclosed(self, token: str, words: tuple[str, ...], folder: str, env: Mapping[str, str], _: str) -> Enclosed:
        """The command with rules and limits, as the owner of the workspace and without capabilities."""
        # What the machine has set for git may not be read here, and a git that may not read it refuses to work.
        own = {**env, "HOME": str(self.scratch.home), "TMPDIR": str(self.scratch.tmp), "GIT_CONFIG_NOSYSTEM": "1"}
        return Enclosed(
            words=words,
            folder=folder,
            env=own | ({"USER": NAME, "LOGNAME": NAME} if self.who.uid and self.who.changes else {}),
            token=token,
            uid=self.who.uid if self.who.changes else None,
            gid=self.who.gid if self.who.changes else None,
            rlimits=self.rlimits,
            tasks=self.limits.processes,
            landlock=self._rules(env),
            seccomp=self._filter,
        )

    def close(self) -> None:
        """What commands had for themselves goes with it."""
        self._links.close()
        super().close()

    def _rules(self, env: Mapping[str, str]) -> Ruleset:
        everything = ALL | (DEVICES if self._version >= WITH_DEVICES else 0)
        return Ruleset(
            files=everything,
            network=NETWORK if self._version >= WITH_NETWORK else 0,
            scopes=SCOPES if self._version >= WITH_SCOPES else 0,
            rules=tuple(self._let(env, everything)),
        )

    def _let(self, env: Mapping[str, str], everything: int) -> Iterator[tuple[str, int]]:
        for place in (self.ground.root, self.scratch.home, self.scratch.tmp):
            yield str(place), everything
        for place in self._machine():
            yield str(place), LOOK
        for place in self.tools(env):
            # The folder as a whole, or what is in it: Landlock cannot take anything out of what it has given.
            hidden = secrets_in(place)
            shown = [entry for entry in place.iterdir() if entry not in hidden] if hidden else [place]
            yield from ((str(entry), LOOK) for entry in shown)
        for place in outer_git(self.ground.root):
            yield str(place), LOOK
        for one in self.ground.lent:
            if one.layer:
                yield one.source, LIST
                yield from ((str(part), LOOK) for part in readable_parts(Path(one.source), one.hidden))
        for name in HARMLESS_DEVICES:
            yield name, USE | LOOK

    def _machine(self) -> Iterator[Path]:
        """The machine's programs and what they need. Who is root would read there what is root's alone."""
        etc = [Path("/etc", name) for name in ETC]
        if self.who.uid != 0:
            yield from (*map(Path, SYSTEM), *etc)
        else:
            yield from (Path(name) for name in SYSTEM if name != OPTIONAL)
            entries = Path(OPTIONAL).iterdir() if Path(OPTIONAL).is_dir() else ()
            yield from (entry for entry in entries if entry.exists() and entry.stat().st_mode & OTHERS == OTHERS)
            for place in etc:
                yield from readable_by_all(place)
        yield from map(Path, (*PEOPLE, "/proc"))


def landlock_version() -> int:
    """Which Landlock the kernel has; 0 for none."""
    return max(0, int(ctypes.CDLL(None).syscall(ctypes.c_long(CREATE_RULESET), None, ctypes.c_long(0), TELL_VERSION)))
