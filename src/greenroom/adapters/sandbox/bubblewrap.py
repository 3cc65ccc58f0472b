"""Walls of namespaces, put up by bubblewrap: a command sees its workspace and the machine's programs, nothing else."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.cgroups import Cgroups
from greenroom.adapters.sandbox.etc import ETC_FOLDER, furnish
from greenroom.adapters.sandbox.ground import SYSTEM, Ground, secrets_in
from greenroom.adapters.sandbox.identity import NAME, identity
from greenroom.adapters.sandbox.mounts import Mounts
from greenroom.adapters.sandbox.seccomp import seccomp
from greenroom.adapters.sandbox.standing import Joined, Standing, system_program
from greenroom.core.ports.sandbox import Bridge, Enclosed, Limits, Tier

NAMESPACES: Final = (
    *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "greenroom"),
)
IN_MEMORY: Final = ("/dev/shm", "/run")
CLOSED: Final = ("--remount-ro", "/dev", "--remount-ro", "/")
"""What lies in memory and is not limited is not written either."""

VERDICT: Final = 3
ARGUMENTS: Final = 40
FILTER: Final = 41
TOLD: Final = 45
GATE: Final = 46
BRIDGED: Final = ("--info-fd", str(TOLD), "--block-fd", str(GATE))
PORT: Final = 3128
STAGE: Final = "/tmp"

INSIDE: Final = """\
trap : TERM INT HUP
ulimit -u {processes} 2>/dev/null
exec 4>&2 2>&3
"$@" 2>&4 3>&- 4>&-
exit $?
"""
"""Says of which signal a command died, which bubblewrap cannot, and is not in the way when it is told to end."""

OWN_COUNT: Final = (5, 14)
"""Since this kernel processes are counted for each user namespace; before, for all that a person runs."""


class Bubblewrap:
    """Around one workspace."""

    def __init__(self, ground: Ground, limits: Limits, *, cgroups: Cgroups, program: str = "bwrap") -> None:
        self._ground = ground
        self._program = program
        self._who = identity(ground.root)
        self._standing = Standing(ground, limits, cgroups, self._who)
        self._scratch = self._standing.scratch
        self._scratch.give(self._who)
        self._everybodys = furnish(self._scratch.etc, self._who, ground.home)
        self._guarding = self._standing.guarding
        self._filter = seccomp(network=True)

    @property
    def tier(self) -> Tier:
        """Namespaces."""
        return "walled"

    def around(self, words: tuple[str, ...], folder: str, env: Mapping[str, str], door: str = "") -> Enclosed:
        """The command in namespaces of its own, with limits, as somebody who is not root."""
        joined = self._standing.begin()
        try:
            return self._enclosed(joined, words, folder, env, door)
        except BaseException:
            self._standing.end(joined.token)
            raise

    def overrun(self, enclosed: Enclosed, guard: int) -> str:
        """Why it has used too much."""
        return self._standing.overrun(enclosed.token, guard)

    def tidy(self, enclosed: Enclosed) -> None:
        """Its control groups, its mount points, and whatever it left that could run something."""
        self._standing.end(enclosed.token)

    def close(self) -> None:
        """What commands had for themselves goes with the walls."""
        self._standing.close()

    def _enclosed(
        self, joined: Joined, words: tuple[str, ...], folder: str, env: Mapping[str, str], door: str
    ) -> Enclosed:
        mounts = Mounts(self._who, STAGE, self._scratch.nothing)
        arguments = [*NAMESPACES, *self._system(), *self._world(mounts, env), *CLOSED, *(BRIDGED if door else ())]
        arguments += ["--seccomp", str(FILTER), "--chdir", self._ground.seen(folder)]
        return Enclosed(
            words=(self._program, "--args", str(ARGUMENTS), "--", *self._inside(), *words),
            folder="/",
            env=self._environment(env, door),
            token=joined.token,
            uid=self._who.uid if self._who.changes else None,
            gid=self._who.gid if self._who.changes else None,
            cgroups=joined.cgroups,
            rlimits=self._standing.rlimits,
            tasks=self._standing.tasks,
            stage=STAGE if self._who.changes else "",
            staged=mounts.staged,
            contents={ARGUMENTS: _joined(arguments), FILTER: self._filter},
            outer=True,
            verdict=VERDICT,
            bridge=Bridge(port=PORT, socket=door, told=TOLD, gate=GATE) if door else None,
        )

    # ------------------------------------------------------------------------------------------- what is to be seen

    def _system(self) -> Iterator[str]:
        for place in map(Path, SYSTEM):
            if place.is_symlink():
                yield from ("--symlink", str(place.readlink()), str(place))
            elif place.is_dir():
                yield from ("--ro-bind", str(place), str(place))
        yield from ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev")
        for name in IN_MEMORY:
            yield from ("--size", str(self._standing.limits.temporary), "--tmpfs", name)

    def _world(self, mounts: Mounts, env: Mapping[str, str]) -> Iterator[str]:
        """The workspace where it is, read and write; tools where they are, to be read; a home and a /tmp of its own."""
        ground = self._ground
        for name in ("/tmp", "/var/tmp"):
            mounts.writable(self._scratch.tmp, name, owned=True)
        mounts.readable(self._scratch.etc, ETC_FOLDER)
        for name in self._everybodys:
            mounts.as_it_is(f"{ETC_FOLDER}/{name}")
        mounts.writable(self._scratch.home, str(ground.home), owned=True)
        for place in self._standing.tools(env):
            mounts.readable(place, str(place))
            for secret in secrets_in(place):
                (mounts.empty if secret.is_dir() else mounts.nothing)(str(secret))
        for place in self._guarding.facts.outer:
            mounts.readable(place, str(place), owned=True)
        mounts.writable(ground.root, str(ground.at), owned=True)
        for one in ground.lent:
            put = mounts.writable if one.writable else mounts.readable
            put(Path(one.source), str(ground.at / one.at), owned=True)
        self._pinned(mounts)
        for place in ground.hidden:
            if place.is_relative_to(ground.root) and place.is_dir():
                mounts.empty(str(ground.at / place.relative_to(ground.root)))
        return mounts.arguments()

    def _has_lent_git(self) -> bool:
        return any(one.at == ".git" for one in self._ground.lent)

    def _pinned(self, mounts: Mounts) -> None:
        """What governs cannot be changed; a repository can be worked in, but not exchanged."""
        ground, facts = self._ground, self._guarding.facts
        for place, names in facts.known.items():
            if not place.is_dir():
                continue  # a person has taken it away meanwhile
            mounts.inside(ground.root, ground.at, place, writable=True)
            for name in (one for one in names if os.path.lexists(place / one)):
                mounts.inside(ground.root, ground.at, place / name)
        for path in self._guarding.masked():
            if path.parent.is_dir():
                self._closed(mounts, path, folder=path.name == "hooks")
        git = ground.root / ".git"
        if git.is_file() and not git.is_symlink() and not self._has_lent_git():
            mounts.inside(ground.root, ground.at, git)
        for path, folder in facts.led.items():
            self._steady(mounts, path)
            self._closed(mounts, path, folder=folder)
        for path in filter(Path.is_socket, facts.sockets):
            mounts.nothing(self._seen(path))
        for path in self._guarding.governing():
            self._kept(mounts, path)

    def _closed(self, mounts: Mounts, path: Path, *, folder: bool) -> None:
        """What is there cannot be changed, what is not there cannot be made."""
        if os.path.lexists(path):
            mounts.inside(self._ground.root, self._ground.at, path)
        else:
            (mounts.empty if folder else mounts.nothing)(self._seen(path))

    def _steady(self, mounts: Mounts, path: Path) -> None:
        """No folder above it can be moved, to put another one with other contents in its place."""
        ground = self._ground
        for above in list(path.relative_to(ground.root).parents)[:-1]:
            if (ground.root / above).is_dir() and not mounts.has(str(ground.at / above)):
                mounts.inside(ground.root, ground.at, ground.root / above, writable=True)

    def _seen(self, path: Path) -> str:
        return str(self._ground.at / path.relative_to(self._ground.root))

    def _kept(self, mounts: Mounts, path: Path) -> None:
        """What is not there is not there to be made either."""
        ground = self._ground
        shown = ground.shown.get(path.name)
        if shown is None:
            self._steady(mounts, path)
            self._closed(mounts, path, folder=not path.suffix)
        else:
            mounts.empty(self._seen(path))
            for name in shown:
                if os.path.lexists(path / name) and not (path / name).is_symlink():
                    mounts.inside(ground.root, ground.at, path / name)

    # ------------------------------------------------------------------------------------------- what else it is given

    def _environment(self, env: Mapping[str, str], door: str) -> dict[str, str]:
        own = {**env, "HOME": str(self._ground.home), "TMPDIR": "/tmp"}
        if self._who.changes:
            own |= {"USER": NAME, "LOGNAME": NAME}
        if door:
            address = f"http://127.0.0.1:{PORT}"
            names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
            own |= {name: address for upper in names for name in (upper, upper.lower())}
            own |= {"NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1"}
        return own

    def _inside(self) -> tuple[str, ...]:
        processes = str(self._standing.limits.processes) if _kernel() >= OWN_COUNT else "unlimited"
        return str(system_program("bash") or "/bin/sh"), "-c", INSIDE.format(processes=processes), NAME


def _joined(arguments: list[str]) -> bytes:
    return b"".join(os.fsencode(one) + b"\0" for one in arguments)


def _kernel() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
