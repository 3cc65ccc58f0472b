"""The sandbox of namespaces that bubblewrap makes: a command sees its workspace and the machine's programs only."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.ground import NAME, SYSTEM, Ground, Identity, identity, secrets_in
from greenroom.adapters.sandbox.layers import copied, keeps_upper, open_layer
from greenroom.adapters.sandbox.programs import IN_WHEEL, Program, system_program
from greenroom.adapters.sandbox.protection import COMMON, FOLDERS, GIT, outer_git, path_of, sockets_in
from greenroom.adapters.sandbox.seccomp import seccomp
from greenroom.adapters.sandbox.session import ETC_FOLDER, SandboxSession, furnish
from greenroom.core.ports.sandbox import Bridge, Enclosed, Limits, Shown, Staged, Tier

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
ON_STAGE: Final = "bwrap"

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


class Mounts:
    """The mounts of one command, in order. Another user cannot go where we can, so all of it is put on a stage first.
    `nothing` is an empty file."""

    def __init__(self, who: Identity, stage: str, nothing: Path) -> None:
        self._who = who
        self._stage = stage
        self._nothing = nothing
        self._staged: list[Staged] = []
        self._places: list[tuple[str, tuple[str, ...]]] = []
        self._closed: list[str] = []
        self._sources: dict[Path, str] = {}

    def program(self, program: Program) -> str:
        """Where bubblewrap itself is started from."""
        if not self._who.changes or not program.folder:
            return program.path
        self._staged.append(Staged(source=program.folder, place=ON_STAGE))
        return f"{self._stage}/{ON_STAGE}/{IN_WHEEL}"

    @property
    def staged(self) -> tuple[Staged, ...]:
        """What is to be put on the stage."""
        return tuple(self._staged)

    def writable(self, source: Path, at: str, *, owned: bool) -> None:
        """To be read and written."""
        self._add(at, "--bind", self._source(source, owned=owned), at)

    def readable(self, source: Path, at: str, *, owned: bool = False) -> None:
        """To be read only."""
        self._add(at, "--ro-bind", self._source(source, owned=owned), at)

    def overlay(self, source: Path, at: str, layer: Path | None) -> None:
        """To be read and written; what is written is kept in the layer, or in memory."""
        below = self._source(source, owned=True)
        if layer is None:
            self._add(at, "--overlay-src", below, "--tmp-overlay", at)
        else:
            kept = self._source(layer, owned=True)
            self._add(at, "--overlay-src", below, "--overlay", f"{kept}/upper", f"{kept}/work", at)

    def as_it_is(self, at: str) -> None:
        """What everybody can reach and read, where it is: that needs no stage."""
        self._add(at, "--ro-bind", at, at)

    def inside(self, root: Path, at: Path, place: Path, *, writable: bool = False) -> None:
        """Something in a folder that is there already, put on itself: so it cannot be moved, nor written."""
        within = place.relative_to(root)
        source = Path(self._sources[root]) / within
        self._add(str(at / within), "--bind" if writable else "--ro-bind", str(source), str(at / within))

    def empty(self, at: str) -> None:
        """A folder with nothing in it but what is put there, in which nothing can be made."""
        self._add(at, "--tmpfs", at)
        self._closed.append(at)

    def nothing(self, at: str) -> None:
        """A file with nothing in it."""
        self._add(at, "--ro-bind", self._sources.get(self._nothing) or self._source(self._nothing, owned=False), at)

    def has(self, at: str) -> bool:
        """Whether something is put there."""
        return any(place == at for place, _ in self._places)

    def arguments(self) -> Iterator[str]:
        """Parents come before what is in them."""
        for _, words in sorted(self._places, key=lambda one: Path(one[0]).parts):
            yield from words
        for at in self._closed:
            yield from ("--remount-ro", at)

    def _add(self, at: str, *words: str) -> None:
        self._places.append((at, words))

    def _source(self, source: Path, *, owned: bool) -> str:
        if not self._who.changes:
            self._sources[source] = str(source)
            return str(source)
        place = str(len(self._staged))
        self._staged.append(Staged(source=str(source), place=place, owned=owned and self._who.swapped))
        self._sources[source] = f"{self._stage}/{place}"
        return self._sources[source]


class Bubblewrap(SandboxSession):
    """Around one workspace: a command in namespaces of its own, as somebody who is not root."""

    tier: Tier = "bubblewrap"

    def __init__(self, ground: Ground, limits: Limits, *, program: Program) -> None:
        super().__init__(ground, limits, identity(ground.root, swaps=True))
        self._program = program
        self.scratch.give(self.who)
        self._everybodys = furnish(self.scratch.etc, self.who, ground.home)
        self._filter = seccomp(network=True)

    def enclosed(self, token: str, words: tuple[str, ...], folder: str, env: Mapping[str, str], door: str) -> Enclosed:
        """The command with these mounts and the filter of calls."""
        mounts = Mounts(self.who, STAGE, self.scratch.nothing)
        program = mounts.program(self._program)
        arguments = [*NAMESPACES, *self._system(), *self._world(mounts, env), *CLOSED, *(BRIDGED if door else ())]
        arguments += ["--seccomp", str(FILTER), "--chdir", self.ground.seen(folder)]
        return Enclosed(
            words=(program, "--args", str(ARGUMENTS), "--", *self._inside(), *words),
            folder="/",
            env=self._environment(env, door),
            token=token,
            uid=self.who.uid if self.who.changes else None,
            gid=self.who.gid if self.who.changes else None,
            rlimits=self.rlimits,
            tasks=self.limits.processes,
            stage=STAGE if self.who.changes else "",
            staged=mounts.staged,
            contents={ARGUMENTS: b"".join(os.fsencode(word) + b"\0" for word in arguments), FILTER: self._filter},
            outer=True,
            verdict=VERDICT,
            bridge=Bridge(port=PORT, socket=door, told=TOLD, gate=GATE) if door else None,
        )

    def _system(self) -> Iterator[str]:
        for place in map(Path, SYSTEM):
            if place.is_symlink():
                yield from ("--symlink", str(place.readlink()), str(place))
            elif place.is_dir():
                yield from ("--ro-bind", str(place), str(place))
        yield from ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev")
        for name in IN_MEMORY:
            yield from ("--size", str(self.limits.temporary), "--tmpfs", name)

    def _world(self, mounts: Mounts, env: Mapping[str, str]) -> Iterator[str]:
        """The workspace where it is, read and write; tools where they are, to be read; a home and a /tmp of its own."""
        ground = self.ground
        for name in ("/tmp", "/var/tmp"):
            mounts.writable(self.scratch.tmp, name, owned=True)
        mounts.readable(self.scratch.etc, ETC_FOLDER)
        for name in self._everybodys:
            mounts.as_it_is(f"{ETC_FOLDER}/{name}")
        mounts.writable(self.scratch.home, str(ground.home), owned=True)
        for place in self.tools(env):
            mounts.readable(place, str(place))
            for secret in secrets_in(place):
                (mounts.empty if secret.is_dir() else mounts.nothing)(str(secret))
        if not any(shown.at == ".git" for shown in ground.lent):
            for place in outer_git(ground.root):
                mounts.readable(place, str(place), owned=True)
        mounts.writable(ground.root, str(ground.at), owned=True)
        for one in ground.lent:
            self._lend(mounts, one)
        self._pinned(mounts)
        for place in ground.hidden:
            if place.is_relative_to(ground.root) and place.is_dir():
                mounts.empty(str(ground.at / place.relative_to(ground.root)))
        return mounts.arguments()

    def _lend(self, mounts: Mounts, shown: Shown) -> None:
        """Something of elsewhere: to be read, or written, or written into a layer."""
        source, at = Path(shown.source), str(self.ground.at / shown.at)
        if not shown.layer:
            (mounts.writable if shown.writable else mounts.readable)(source, at, owned=True)
            return
        if self._program.overlays:
            layer = open_layer(shown)
            self._give(layer)
            mounts.overlay(source, at, layer if keeps_upper(layer) else None)
        elif (copy := copied(shown)) is not None:
            self._give(copy)
            mounts.writable(copy, at, owned=True)
            return
        else:
            mounts.readable(source, at, owned=True)
        for name in shown.hidden:
            if (source / name).is_file():
                mounts.nothing(f"{at}/{name}")

    def _give(self, folder: Path) -> None:
        """What we made for commands belongs to who they are."""
        who = self.who
        if who.changes and not who.swapped and folder.stat().st_uid != who.uid:
            for place in (folder, *folder.rglob("*")):
                os.chown(place, who.uid, who.gid, follow_symlinks=False)

    def _pinned(self, mounts: Mounts) -> None:
        """What is protected cannot be changed; a repository can be worked in, but not exchanged."""
        ground = self.ground
        for git in self.protection.git_folders():
            self._steady(mounts, git / COMMON)
            for path in (git / name for name in GIT):
                if path.parent.is_dir() and (os.path.lexists(path) or path.name != COMMON):
                    self._steady(mounts, path)
                    self._closed(mounts, path, folder=path.name in FOLDERS)
        sign = self.protection.git_sign()
        if sign is not None and not sign.is_symlink():
            mounts.inside(ground.root, ground.at, sign)
        for key, folder in self.protection.before.led.items():
            self._steady(mounts, path_of(key))
            self._closed(mounts, path_of(key), folder=folder)
        for path in sockets_in(ground.root):
            mounts.nothing(self._seen(path))
        for path in self.protection.governing():
            self._kept(mounts, path)

    def _closed(self, mounts: Mounts, path: Path, *, folder: bool) -> None:
        """What is there cannot be changed, what is not there cannot be made."""
        if os.path.lexists(path):
            mounts.inside(self.ground.root, self.ground.at, path)
        else:
            (mounts.empty if folder else mounts.nothing)(self._seen(path))

    def _steady(self, mounts: Mounts, path: Path) -> None:
        """No folder above it can be moved, to put another one with other contents in its place."""
        ground = self.ground
        for above in list(path.relative_to(ground.root).parents)[:-1]:
            if (ground.root / above).is_dir() and not mounts.has(str(ground.at / above)):
                mounts.inside(ground.root, ground.at, ground.root / above, writable=True)

    def _seen(self, path: Path) -> str:
        return str(self.ground.at / path.relative_to(self.ground.root))

    def _kept(self, mounts: Mounts, path: Path) -> None:
        """What is not there is not there to be made either."""
        ground = self.ground
        shown = ground.shown.get(path.name)
        if shown is None:
            self._steady(mounts, path)
            self._closed(mounts, path, folder=not path.suffix)
        else:
            mounts.empty(self._seen(path))
            for name in shown:
                if os.path.lexists(path / name) and not (path / name).is_symlink():
                    mounts.inside(ground.root, ground.at, path / name)

    def _environment(self, env: Mapping[str, str], door: str) -> dict[str, str]:
        own = {**env, "HOME": str(self.ground.home), "TMPDIR": "/tmp"}
        if self.who.changes:
            own |= {"USER": NAME, "LOGNAME": NAME}
        if door:
            address = f"http://127.0.0.1:{PORT}"
            names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
            own |= {name: address for upper in names for name in (upper, upper.lower())}
            own |= {"NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1"}
        return own

    def _inside(self) -> tuple[str, ...]:
        kernel = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
        processes = str(self.limits.processes) if kernel >= OWN_COUNT else "unlimited"
        return str(system_program("bash") or "/bin/sh"), "-c", INSIDE.format(processes=processes), NAME
