"""What every tier shares: protected files, usage, and scratch folders for commands.

Scratch folders are /tmp, /etc and home. They exist while the process lives: a lock shows that, and leftovers are
removed. Their /etc has what programs need and the command's own user, but no other users.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import secrets
import shutil
import signal
import stat
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.limits import Quota, UsageMeter, find_exceeded_limit, signal_descendants
from greenroom.adapters.sandbox.protection import PUT_BACK_FOLDER, Protection
from greenroom.adapters.sandbox.view import (
    COMMAND_USER,
    ETC_ENTRIES,
    Identity,
    SandboxView,
    check_view,
    find_tool_folders,
)
from greenroom.core.ports.sandbox import CommandLimits, SandboxedCommand

ETC_FOLDER: Final = "/etc"
OTHERS_READ_AND_ENTER: Final = stat.S_IROTH | stat.S_IXOTH
"""The permission bits with which others may list and enter a folder."""


def make_etc(folder: Path, identity: Identity, home: Path, *, machine: str = ETC_FOLDER) -> tuple[str, ...]:
    """Create an /etc in `folder` for this user. Return the folders in it that the system's own folders must cover.

    A folder that every user can read is not copied. Copying a thousand links and certificates takes 0.2 s, and the
    first command would wait for it.
    """
    folder.mkdir(mode=0o755)
    public_folders = [shown for name in ETC_ENTRIES for shown in _copy_public(Path(machine), folder, name)]
    name = COMMAND_USER if identity.changes else _find_user_name(identity.uid)
    people = f"{name}:x:{identity.uid}:{identity.gid}::{home}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
    (folder / "passwd").write_text(people, encoding="utf-8")
    (folder / "group").write_text(f"{name}:x:{identity.gid}:\nnogroup:x:65534:\n", encoding="utf-8")
    (folder / "hosts").write_text("127.0.0.1 localhost greenroom\n::1 localhost\n", encoding="utf-8")
    return tuple(public_folders)


def _find_user_name(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return COMMAND_USER


def _copy_public(machine: Path, folder: Path, name: str) -> Iterator[str]:
    """Copy what every user can read, and yield the folders to mount instead. Links stay links."""
    source, target = machine / name, folder / name
    with suppress(OSError):
        kind = source.lstat().st_mode
        if stat.S_ISLNK(kind):
            target.symlink_to(source.readlink())
        elif stat.S_ISDIR(kind) and _has_rights(kind, OTHERS_READ_AND_ENTER):
            target.mkdir()
            if _is_public(source):
                yield name
                return
            for child in source.iterdir():
                yield from _copy_public(machine, folder, f"{name}/{child.name}")
        elif stat.S_ISREG(kind) and _has_rights(kind, stat.S_IROTH):
            shutil.copyfile(source, target)


def _is_public(folder: Path) -> bool:
    """Return whether every user can read a folder and its contents."""
    for place in (folder, *folder.rglob("*")):
        kind = place.lstat().st_mode
        if not stat.S_ISLNK(kind) and not _has_rights(
            kind, OTHERS_READ_AND_ENTER if stat.S_ISDIR(kind) else stat.S_IROTH
        ):
            return False
    return True


def _has_rights(mode: int, rights: int) -> bool:
    return mode & rights == rights


def list_public_paths(place: Path) -> Iterator[Path]:
    """Yield the parts of a path that every user can read, as few paths as possible."""
    with suppress(OSError):
        kind = place.stat().st_mode
        if stat.S_ISDIR(kind) and _has_rights(kind, OTHERS_READ_AND_ENTER):
            whole = _is_public(place)
            for path in [place] if whole else sorted(place.iterdir()):
                yield from [path] if whole else list_public_paths(path)
        elif stat.S_ISREG(kind) and _has_rights(kind, stat.S_IROTH):
            yield place


LOCK_NAME: Final = "in-use"


PUT_BACK_KEPT_S: Final = 30 * 24 * 3600
"""How long the versions that were not kept can be found, in seconds."""


class TemporaryFolder:
    """A temporary folder below `folder`. Other users can pass through it, but list nothing."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        with _lock_folder(folder):  # so that no other process removes the folder before it is locked
            _remove_leftovers(folder)
            self.place = folder / secrets.token_hex(8)
            self.place.mkdir(mode=0o711)
            self._lock = os.open(self.place / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        if self._lock >= 0:
            shutil.rmtree(self.place, onerror=_unlock_and_retry)
            os.close(self._lock)
            self._lock = -1


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _remove_leftovers(folder: Path) -> None:
    for place in folder.iterdir():
        with suppress(OSError):
            lock = os.open(place / LOCK_NAME, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place, onerror=_unlock_and_retry)
            finally:
                os.close(lock)
    for place in (folder / PUT_BACK_FOLDER).glob("*"):
        with suppress(OSError):
            if place.lstat().st_mtime < time.time() - PUT_BACK_KEPT_S:
                shutil.rmtree(place, onerror=_unlock_and_retry)


def _unlock_and_retry(_: object, path: str, __: object) -> None:
    """Make a folder writable and remove its contents again: a command may have changed its permissions."""
    with suppress(OSError):
        place = Path(path)
        place.parent.chmod(0o700)
        if place.is_dir() and not place.is_symlink():
            place.chmod(0o700)
            shutil.rmtree(place)
        else:
            place.unlink()


GIT_CONFIG: Final = """\
[user]
\tname = {name}
\temail = {email}
[init]
\tdefaultBranch = main
"""
GIT_IGNORE: Final = "/.mcp.json\n"
"""Placeholders of the sandbox that must not be committed."""

PUT_BACK_NOTE: Final = "Put back: {names}. Commands cannot change what configures agents or tools; file tools can."


class CommandScratch(TemporaryFolder):
    """The private folders of commands: a home, a /tmp and an /etc."""

    def __init__(self, folder: Path, *, name: str = "Greenroom agent", email: str = "agent@greenroom.invalid") -> None:
        super().__init__(folder)
        self.home = self.place / "home"
        self.tmp = self.place / "tmp"
        self.etc = self.place / "etc"
        self.empty_file = self.place / "nothing"
        for path in (self.home, self.tmp):
            path.mkdir(mode=0o700)
        self.empty_file.touch(mode=0o444)
        ignored = self.home / ".config" / "git"
        ignored.mkdir(parents=True)
        (ignored / "ignore").write_text(GIT_IGNORE, encoding="utf-8")
        clean = {"name": name.replace("\n", " "), "email": email.replace("\n", " ")}
        (self.home / ".gitconfig").write_text(GIT_CONFIG.format(**clean), encoding="utf-8")

    def change_owner(self, identity: Identity) -> None:
        """Give the writable folders to this user."""
        if identity.changes and not identity.swapped:
            for path in (self.tmp, self.home, *self.home.rglob("*")):
                os.chown(path, identity.uid, identity.gid)


class SandboxSession(ABC):
    """The base of every tier, for one workspace. With `weak` there are no mounts: protected files are recorded and
    restored."""

    def __init__(self, view: SandboxView, limits: CommandLimits, identity: Identity, *, weak: bool = False) -> None:
        self.view = check_view(view)
        self.limits = limits
        self.identity = identity
        self.scratch = CommandScratch(view.scratch)
        self.protection = Protection(view, weak=weak)
        self.protection.recover()
        self._tools: list[Path] | None = None
        self._lock = threading.Lock()
        """Commands start and end in threads."""

        layers = [] if weak else [Path(mount.layer) for mount in view.mounts if mount.layer]
        for layer in layers:
            layer.mkdir(parents=True, exist_ok=True)
        self._quota = Quota((view.root, self.scratch.place, *layers), limits)
        self._meter = UsageMeter(limits)
        self._stopped: set[int] = set()
        """Supervisors whose processes are stopped until the workspace is counted."""

    def confine(
        self, words: tuple[str, ...], folder: str, env: Mapping[str, str], egress_socket: str = ""
    ) -> SandboxedCommand:
        """Return the command in its sandbox, with limits."""
        token = self.begin()
        try:
            return self.build_command(token, words, folder, env, egress_socket)
        except BaseException:
            self.end(token)
            raise

    @abstractmethod
    def build_command(
        self, token: str, words: tuple[str, ...], folder: str, env: Mapping[str, str], egress_socket: str
    ) -> SandboxedCommand:
        """Return a started command as this tier runs it."""

    def clean_up(self, command: SandboxedCommand) -> str:
        """Remove the mount points of a command and restore the protected files that it changed. Return what to say."""
        changed = self.end(command.token)
        return PUT_BACK_NOTE.format(names=", ".join(changed)) if changed else ""

    @property
    def rlimits(self) -> dict[str, int]:
        """The limits for each process."""
        limits = self.limits
        return {
            "file_size": min(limits.file_size, limits.quota),
            "open_files": limits.open_files,
            "cpu_seconds": limits.cpu_seconds,
        }

    def begin(self) -> str:
        """Prepare for a command and return its token."""
        with self._lock:
            self.protection.begin()
        return secrets.token_hex(8)

    def end(self, token: str) -> list[str]:
        """Note that a command has ended or did not start."""
        self._meter.forget(token)
        with self._lock:
            return self.protection.end()

    def find_tools(self, env: Mapping[str, str]) -> list[Path]:
        """Return the tool folders. They are searched once: a Python installed during a run is visible in the next."""
        if self._tools is None:
            self._tools = find_tool_folders(env, self.view)
        return self._tools

    def get_pause(self, supervisor_pid: int) -> float:
        """Return the seconds until the next check of the limits. If the workspace may be full, stop the processes."""
        pause = self._quota.get_pause()
        if not pause:
            self._stopped.add(supervisor_pid)
            signal_descendants(supervisor_pid, signal.SIGSTOP)
        return pause

    def find_exceeded_limit(self, command: SandboxedCommand, supervisor_pid: int) -> str:
        """Return which limit the command exceeds, of its processes or of the workspace; empty if none."""
        if full := self._quota.find_exceeded_limit():
            return full
        if supervisor_pid in self._stopped:
            self._stopped.discard(supervisor_pid)
            signal_descendants(supervisor_pid, signal.SIGCONT, slowed=self._quota.is_nearly_full())
        if not self._meter.is_due(command.token):
            return ""
        with self._lock:
            self.protection.keep_alive()
        return find_exceeded_limit(self._meter.measure(command.token, supervisor_pid), self.limits)

    def close(self) -> None:
        self.scratch.close()
