"""The bubblewrap tier: namespaces in which a command sees only its workspace and the system's programs."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.layers import can_keep_overlay, copy_small_folder, open_layer
from greenroom.adapters.sandbox.programs import PATH_IN_WHEEL, BubblewrapProgram, find_system_program
from greenroom.adapters.sandbox.protection import (
    COMMONDIR,
    GIT_CONTROL_FILES,
    GIT_CONTROL_FOLDERS,
    decode_path,
    find_outer_git,
    find_sockets,
)
from greenroom.adapters.sandbox.seccomp import build_filter
from greenroom.adapters.sandbox.session import ETC_FOLDER, SandboxSession, make_etc
from greenroom.adapters.sandbox.view import (
    COMMAND_USER,
    SYSTEM_FOLDERS,
    Identity,
    SandboxView,
    find_identity,
    find_secrets,
)
from greenroom.core.ports.sandbox import CommandLimits, EgressBridge, SandboxedCommand, SandboxMount, StagedPath, Tier

NAMESPACE_OPTIONS: Final = (
    *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "greenroom"),
)
TMPFS_FOLDERS: Final = ("/dev/shm", "/run")
READ_ONLY_OPTIONS: Final = ("--remount-ro", "/dev", "--remount-ro", "/")
"""Makes folders in memory without a size limit read-only."""

SIGNAL_FD: Final = 3
ARGUMENTS_FD: Final = 40
FILTER_FD: Final = 41
INFO_FD: Final = 45
BLOCK_FD: Final = 46
BRIDGE_OPTIONS: Final = ("--info-fd", str(INFO_FD), "--block-fd", str(BLOCK_FD))
PROXY_PORT: Final = 3128
STAGE_FOLDER: Final = "/tmp"
STAGED_PROGRAM: Final = "bwrap"

WRAPPER_SCRIPT: Final = """\
trap : TERM INT HUP
ulimit -u {processes} 2>/dev/null
exec 4>&2 2>&3
"$@" 2>&4 3>&- 4>&-
exit $?
"""
"""Reports which signal ended a command, which bubblewrap cannot. It ignores the signals that end the command."""

NAMESPACE_LIMITS_KERNEL: Final = (5, 14)
"""From this kernel on, processes are counted per user namespace; before, for all processes of a user."""


class Mounts:
    """The mounts of one command, in order. Another user may not reach our folders, so they are staged first.
    `_empty_file` is an empty file."""

    def __init__(self, identity: Identity, stage: str, empty_file: Path) -> None:
        self._identity = identity
        self._stage = stage
        self._empty_file = empty_file
        self._staged: list[StagedPath] = []
        self._places: list[tuple[str, tuple[str, ...]]] = []
        self._read_only: list[str] = []
        self._sources: dict[Path, str] = {}

    def stage_program(self, program: BubblewrapProgram) -> str:
        """Stage bubblewrap if necessary and return its path."""
        if not self._identity.changes or not program.folder:
            return program.path
        self._staged.append(StagedPath(source=program.folder, place=STAGED_PROGRAM))
        return f"{self._stage}/{STAGED_PROGRAM}/{PATH_IN_WHEEL}"

    @property
    def staged_paths(self) -> tuple[StagedPath, ...]:
        return tuple(self._staged)

    def bind(self, source: Path, at: str, *, owned: bool = False, read_only: bool = False) -> None:
        """Mount a path for reading and writing, or read-only."""
        self._add(at, "--ro-bind" if read_only else "--bind", self._stage_source(source, owned=owned), at)

    def overlay(self, source: Path, at: str, layer: Path | None, *, read_only: bool) -> None:
        """Mount an overlay. Changes go into the layer, or into memory without one."""
        lower = self._stage_source(source, owned=True)
        if layer is None:
            self._add(at, "--overlay-src", lower, "--tmp-overlay", at)
        else:
            layer_path = self._stage_source(layer, owned=True)
            self._add(at, "--overlay-src", lower, "--overlay", f"{layer_path}/upper", f"{layer_path}/work", at)
        if read_only:
            self._read_only.append(at)

    def bind_system_path(self, at: str) -> None:
        """Mount a system path read-only in its place. Every user can read it, so it needs no stage."""
        self._add(at, "--ro-bind", at, at)

    def bind_inside(self, root: Path, at: Path, place: Path, *, writable: bool = False) -> None:
        """Mount a path inside a mounted folder onto itself, so that it cannot be moved or written."""
        within = place.relative_to(root)
        source = Path(self._sources[root]) / within
        self._add(str(at / within), "--bind" if writable else "--ro-bind", str(source), str(at / within))

    def mount_empty_folder(self, at: str) -> None:
        """Mount an empty folder in which nothing can be created."""
        self._add(at, "--tmpfs", at)
        self._read_only.append(at)

    def mount_empty_file(self, at: str) -> None:
        self._add(
            at,
            "--ro-bind",
            self._sources.get(self._empty_file) or self._stage_source(self._empty_file, owned=False),
            at,
        )

    def has_mount(self, at: str) -> bool:
        """Return whether something is mounted at this path."""
        return any(place == at for place, _ in self._places)

    def render_arguments(self) -> Iterator[str]:
        """Yield the arguments of bubblewrap, parents before their contents."""
        for _, words in sorted(self._places, key=lambda mount: Path(mount[0]).parts):
            yield from words
        for at in self._read_only:
            yield from ("--remount-ro", at)

    def _add(self, at: str, *words: str) -> None:
        self._places.append((at, words))

    def _stage_source(self, source: Path, *, owned: bool) -> str:
        if not self._identity.changes:
            self._sources[source] = str(source)
            return str(source)
        place = str(len(self._staged))
        self._staged.append(StagedPath(source=str(source), place=place, owned=owned and self._identity.swapped))
        self._sources[source] = f"{self._stage}/{place}"
        return self._sources[source]


class Bubblewrap(SandboxSession):
    """A sandbox for one workspace: commands run in their own namespaces, never as root."""

    tier: Tier = "bubblewrap"

    def __init__(self, view: SandboxView, limits: CommandLimits, *, program: BubblewrapProgram) -> None:
        super().__init__(view, limits, find_identity(view.root, swaps=True))
        self._program = program
        self.scratch.change_owner(self.identity)
        self._public_etc_folders = make_etc(self.scratch.etc, self.identity, view.home)
        self._filter = build_filter(network=True)

    def build_command(
        self, token: str, words: tuple[str, ...], folder: str, env: Mapping[str, str], egress_socket: str
    ) -> SandboxedCommand:
        """Return the command with its mounts and the system call filter."""
        mounts = Mounts(self.identity, STAGE_FOLDER, self.scratch.empty_file)
        program = mounts.stage_program(self._program)
        arguments = [
            *NAMESPACE_OPTIONS,
            *self._mount_system(),
            *self._mount_view(mounts, env),
            *READ_ONLY_OPTIONS,
            *(BRIDGE_OPTIONS if egress_socket else ()),
        ]
        arguments += ["--seccomp", str(FILTER_FD), "--chdir", self.view.inside_path(folder)]
        return SandboxedCommand(
            words=(program, "--args", str(ARGUMENTS_FD), "--", *self._build_wrapper(), *words),
            folder="/",
            env=self._build_environment(env, egress_socket),
            token=token,
            uid=self.identity.uid if self.identity.changes else None,
            gid=self.identity.gid if self.identity.changes else None,
            rlimits=self.rlimits,
            tasks=self.limits.processes,
            stage=STAGE_FOLDER if self.identity.changes else "",
            staged=mounts.staged_paths,
            contents={ARGUMENTS_FD: b"".join(os.fsencode(word) + b"\0" for word in arguments), FILTER_FD: self._filter},
            outer=True,
            signal_fd=SIGNAL_FD,
            bridge=EgressBridge(port=PROXY_PORT, socket=egress_socket, info=INFO_FD, gate=BLOCK_FD)
            if egress_socket
            else None,
        )

    def _mount_system(self) -> Iterator[str]:
        for place in map(Path, SYSTEM_FOLDERS):
            if place.is_symlink():
                yield from ("--symlink", str(place.readlink()), str(place))
            elif place.is_dir():
                yield from ("--ro-bind", str(place), str(place))
        yield from ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev")
        for name in TMPFS_FOLDERS:
            yield from ("--size", str(self.limits.temporary), "--tmpfs", name)

    def _mount_view(self, mounts: Mounts, env: Mapping[str, str]) -> Iterator[str]:
        """Mount the workspace, tools read-only, and a separate home and /tmp."""
        view = self.view
        for name in ("/tmp", "/var/tmp"):
            mounts.bind(self.scratch.tmp, name, owned=True)
        mounts.bind(self.scratch.etc, ETC_FOLDER, read_only=True)
        for name in self._public_etc_folders:
            mounts.bind_system_path(f"{ETC_FOLDER}/{name}")
        mounts.bind(self.scratch.home, str(view.home), owned=True)
        for place in self.find_tools(env):
            mounts.bind(place, str(place), read_only=True)
            for secret in find_secrets(place):
                (mounts.mount_empty_folder if secret.is_dir() else mounts.mount_empty_file)(str(secret))
        if not any(shown.at == ".git" for shown in view.mounts):
            for place in find_outer_git(view.root):
                mounts.bind(place, str(place), owned=True, read_only=True)
        mounts.bind(view.root, str(view.at), owned=True, read_only=view.read_only)
        for mount in view.mounts:
            self._make_mount_point(mount)
            self._mount_shared(mounts, mount)
        self._mount_protected(mounts)
        for place in view.hidden:
            if place.is_relative_to(view.root) and place.is_dir():
                mounts.mount_empty_folder(str(view.at / place.relative_to(view.root)))
        return mounts.render_arguments()

    def _mount_shared(self, mounts: Mounts, mount: SandboxMount) -> None:
        """Mount an outside folder: read-only, writable, or with a layer for changes."""
        source, at, read_only = Path(mount.source), str(self.view.at / mount.at), self.view.read_only
        if not mount.layer:
            mounts.bind(source, at, owned=True, read_only=read_only or not mount.writable)
            return
        if self._program.overlays:
            layer = open_layer(mount)
            self._change_owner(layer)
            mounts.overlay(source, at, layer if can_keep_overlay(layer) else None, read_only=read_only)
        elif (copy := copy_small_folder(mount)) is not None:
            self._change_owner(copy)
            mounts.bind(copy, at, owned=True, read_only=read_only)
            return
        else:
            mounts.bind(source, at, owned=True, read_only=True)
        for name in mount.hidden:
            if (source / name).is_file():
                mounts.mount_empty_file(f"{at}/{name}")

    def _make_mount_point(self, mount: SandboxMount) -> None:
        """Create the place of a mount: bubblewrap can create nothing in a read-only workspace."""
        at = self.view.at / mount.at
        place = self.view.root / at.relative_to(self.view.at) if at.is_relative_to(self.view.at) else self.view.root
        missing = [path for path in (place, *place.parents) if not os.path.lexists(path)]
        if self.view.read_only and missing and place.resolve() == place:
            with suppress(OSError):  # bubblewrap says what is in the way
                place.parent.mkdir(parents=True, exist_ok=True)
                (place.mkdir if Path(mount.source).is_dir() else place.touch)()
                self._change_owner(missing[-1])

    def _change_owner(self, folder: Path) -> None:
        """Give a folder that Greenroom created to the user of the commands."""
        identity = self.identity
        if identity.changes and not identity.swapped and folder.stat().st_uid != identity.uid:
            for place in (folder, *folder.rglob("*")):
                os.chown(place, identity.uid, identity.gid, follow_symlinks=False)

    def _mount_protected(self, mounts: Mounts) -> None:
        """Make protected paths read-only. Commands can use a repository, but not replace it."""
        view = self.view
        for git in self.protection.find_git_folders():
            self._pin_parents(mounts, git / COMMONDIR)
            for path in (git / name for name in GIT_CONTROL_FILES):
                if path.parent.is_dir() and (os.path.lexists(path) or path.name != COMMONDIR):
                    self._pin_parents(mounts, path)
                    self._make_read_only(mounts, path, folder=path.name in GIT_CONTROL_FOLDERS)
        git_file = self.protection.find_git_file()
        if git_file is not None and not git_file.is_symlink():
            mounts.bind_inside(view.root, view.at, git_file)
        for key, folder in self.protection.before.led.items():
            self._pin_parents(mounts, decode_path(key))
            self._make_read_only(mounts, decode_path(key), folder=folder)
        for path in find_sockets(view.root):
            mounts.mount_empty_file(self._inside_path(path))
        for path in self.protection.list_governing():
            self._mount_governing(mounts, path)

    def _make_read_only(self, mounts: Mounts, path: Path, *, folder: bool) -> None:
        """Make an existing path read-only, and prevent the creation of a missing one."""
        if os.path.lexists(path):
            mounts.bind_inside(self.view.root, self.view.at, path)
        elif not self.view.read_only:
            (mounts.mount_empty_folder if folder else mounts.mount_empty_file)(self._inside_path(path))

    def _pin_parents(self, mounts: Mounts, path: Path) -> None:
        """Pin all parents of a path, so that none can be moved and replaced."""
        view = self.view
        for above in list(path.relative_to(view.root).parents)[:-1]:
            if not view.read_only and (view.root / above).is_dir() and not mounts.has_mount(str(view.at / above)):
                mounts.bind_inside(view.root, view.at, view.root / above, writable=True)

    def _inside_path(self, path: Path) -> str:
        return str(self.view.at / path.relative_to(self.view.root))

    def _mount_governing(self, mounts: Mounts, path: Path) -> None:
        """Mount a governing path read-only. If it is missing, prevent its creation."""
        view = self.view
        visible = view.visible_names.get(path.name)
        if visible is None:
            self._pin_parents(mounts, path)
            self._make_read_only(mounts, path, folder=not path.suffix)
        elif path.exists() or not view.read_only:
            mounts.mount_empty_folder(self._inside_path(path))
            for name in visible:
                if os.path.lexists(path / name) and not (path / name).is_symlink():
                    mounts.bind_inside(view.root, view.at, path / name)

    def _build_environment(self, env: Mapping[str, str], egress_socket: str) -> dict[str, str]:
        variables = {**env, "HOME": str(self.view.home), "TMPDIR": "/tmp"}
        if self.identity.changes:
            variables |= {"USER": COMMAND_USER, "LOGNAME": COMMAND_USER}
        if egress_socket:
            address = f"http://127.0.0.1:{PROXY_PORT}"
            names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
            variables |= {name: address for upper in names for name in (upper, upper.lower())}
            variables |= {"NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1"}
        return variables

    def _build_wrapper(self) -> tuple[str, ...]:
        kernel = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
        processes = str(self.limits.processes) if kernel >= NAMESPACE_LIMITS_KERNEL else "unlimited"
        return (
            str(find_system_program("bash") or "/bin/sh"),
            "-c",
            WRAPPER_SCRIPT.format(processes=processes),
            COMMAND_USER,
        )
