"""Files that commands must not change in a workspace: git's hooks and settings, and those that configure agents.

bubblewrap mounts them read-only. Landlock cannot: there they are recorded before the first command and restored after
the last. Then, in both, a new file that configures agents is set aside: a running command could swap its folder with a
link. All processes that run commands in a workspace share one record. If a process is killed, the next one finds the
record and restores the files. Repositories that a command creates are not protected (docs/howto/sandbox.md).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

from greenroom.adapters.sandbox.view import SandboxView
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.files import GOVERNING_NAMES, is_governing

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
"""How many bytes of a file are recorded."""

HEARTBEAT_S: Final = 1.0
MAX_HEARTBEAT_AGE_S: Final = 5.0
"""How long after the last heartbeat a command may still have run, in seconds."""


@record
class PathState:
    """The recorded state of a file, link or folder. A folder has its entries by name (bytes as Latin-1)."""

    mode: int
    content: bytes = b""
    entries: Mapping[str, PathState] | None = None


@record
class ProtectedState:
    """The recorded state before the first command, by encoded path: contents, or None if missing.

    `absent` paths are removed afterwards if they are empty. `led` are paths in the workspace that git's settings name;
    True means a folder. `git` is the inode of `.git`. In the folders `stood_in`, Greenroom placed a `commondir`. The
    `governing` files configured agents. After a kill, only what changed until `died` is restored.
    """

    kept: Mapping[str, PathState | None] = {}
    absent: tuple[str, ...] = ()
    led: Mapping[str, bool] = {}
    git: int = 0
    stood_in: tuple[str, ...] = ()
    governing: tuple[str, ...] = ()
    died: float = 0.0


class SharedRecord:
    """A file in `folder` that every process with commands in the workspace `root` locks."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._path = folder / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:32]}.before"
        self._file = -1

    def enter(
        self, take_snapshot: Callable[[], ProtectedState], restore: Callable[[ProtectedState], None]
    ) -> ProtectedState:
        """Return the shared state. The only process restores what a killed one left, then records the state."""
        while True:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            is_alone = self._try_lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not is_alone:
                self._try_lock(fcntl.LOCK_SH)
            if self._is_current():
                recorded = self._read()
                if is_alone:
                    return self._begin(recorded and self._drop_later_changes(recorded), take_snapshot, restore)
                if recorded is not None:
                    return recorded
            self._close()  # another process is leaving or entering

    def exists(self) -> bool:
        """Return whether commands run in the workspace, or a killed process left its record."""
        return self._path.exists()

    def touch(self) -> None:
        """Update the heartbeat, which shows until when commands ran."""
        if self._file >= 0 and time.time() - os.fstat(self._file).st_mtime > HEARTBEAT_S:
            os.utime(self._file)

    def leave(self, restore: Callable[[ProtectedState], None], before: ProtectedState) -> None:
        """Leave after the last command. If no other process has commands, restore the files."""
        try:
            if self._try_lock(fcntl.LOCK_EX | fcntl.LOCK_NB):
                restore(before)
                self._path.unlink(missing_ok=True)
        finally:
            self._close()

    def _begin(
        self,
        leftover: ProtectedState | None,
        take_snapshot: Callable[[], ProtectedState],
        restore: Callable[[ProtectedState], None],
    ) -> ProtectedState:
        try:
            if leftover is not None:
                restore(leftover)
            before = take_snapshot()
            content = msgspec.msgpack.encode(before)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, content, 0)
        except BaseException:
            self._path.unlink(missing_ok=True)
            self._close()
            raise
        self._try_lock(fcntl.LOCK_SH)
        return before

    def _drop_later_changes(self, leftover: ProtectedState) -> ProtectedState:
        """Drop the files that were changed after the killed process had ended."""
        died = os.fstat(self._file).st_mtime + MAX_HEARTBEAT_AGE_S
        unchanged = {
            path: state for path, state in leftover.kept.items() if _read_change_time(decode_path(path)) <= died
        }
        return evolve(leftover, kept=unchanged, died=died)

    def _try_lock(self, operation: int) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(self._file, operation)
            return True
        return False

    def _is_current(self) -> bool:
        """Return whether the file was not removed while waiting for its lock."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        return False

    def _read(self) -> ProtectedState | None:
        with suppress(msgspec.DecodeError, ValueError):
            return msgspec.msgpack.decode(os.pread(self._file, os.fstat(self._file).st_size, 0), type=ProtectedState)
        return None

    def _close(self) -> None:
        os.close(self._file)
        self._file = -1


def read_path_state(place: Path) -> PathState | None:
    """Return the current state of a path; None if it is missing."""
    try:
        mode = os.lstat(place).st_mode
        if stat.S_ISLNK(mode):
            return PathState(mode=mode, content=os.fsencode(place.readlink()))
        if stat.S_ISDIR(mode):
            inner = {encode_path(entry.name): read_path_state(entry) for entry in place.iterdir()}
            return PathState(mode=mode, entries={name: state for name, state in inner.items() if state is not None})
        if not stat.S_ISREG(mode):
            return PathState(mode=mode)
        with place.open("rb") as file:
            return PathState(mode=mode, content=file.read(MAX_FILE_BYTES))
    except OSError:
        return None


def _is_real_folder(folder: Path) -> bool:
    return folder.is_dir() and folder.resolve() == folder


def _restore_path(place: Path, state: PathState) -> None:
    if stat.S_ISLNK(state.mode):
        place.symlink_to(os.fsdecode(state.content))
    elif state.entries is not None:
        place.mkdir()
        for name, entry in state.entries.items():
            _restore_path(place / decode_path(name), entry)
        place.chmod(stat.S_IMODE(state.mode))
    elif stat.S_ISREG(state.mode):
        place.write_bytes(state.content)
        place.chmod(stat.S_IMODE(state.mode))


def encode_path(path: Path | str) -> str:
    """Encode a path or name as text; names may not be UTF-8."""
    return os.fsencode(path).decode("latin-1")


def decode_path(key: str) -> Path:
    return Path(os.fsdecode(key.encode("latin-1")))


def _read_change_time(place: Path) -> float:
    """Return when a path or its entries changed, by the kernel's clock; if it is gone, when its parent changed."""
    with suppress(OSError):
        inner = place.iterdir() if place.is_dir() and not place.is_symlink() else ()
        return max(os.lstat(path).st_ctime for path in (place, *inner))
    with suppress(OSError):
        return os.lstat(place.parent).st_ctime
    return 0.0


GIT_CONTROL_FILES: Final = ("config", "config.worktree", "hooks", "commondir", "info/attributes")
"""Entries of a git folder that decide which programs git runs."""

GIT_CONTROL_FOLDERS: Final = ("hooks",)
"""Those of the entries that are folders."""

COMMONDIR: Final = "commondir"
HARMLESS_COMMONDIR: Final = b".\n"
"""A `commondir` with git's default. An empty file would break the repository."""

GITDIR_PREFIX: Final = "gitdir:"
INCLUDING_SETTINGS: Final = (b"hookspath", b"include")
PERSONAL_GIT_CONFIGS: Final = ("/etc/gitconfig", ".gitconfig", ".config/git/config")
GIT_TIMEOUT_S: Final = 5.0
UNIX_SOCKET_TABLE: Final = Path("/proc/net/unix")
PUT_BACK_FOLDER: Final = "put-back"
"""The folder in the scratch folder for the versions that were not kept."""

UNSEARCHED_FOLDERS: Final = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox"})
"""Folders of other people's files, which agents do not work in."""


class Protection:
    """Protects one workspace during all its commands. With `weak`, nothing prevents changes; they are restored."""

    def __init__(self, view: SandboxView, *, weak: bool) -> None:
        self._view = view
        self._git = view.root / ".git"
        self._is_weak = weak
        self._record = SharedRecord(view.scratch, view.root)
        self._running = 0
        self._is_git_mounted = any(mount.at == ".git" for mount in view.mounts)
        self._found: list[Path] = []
        self._put_back: list[str] = []
        self.before = ProtectedState()

    def recover(self) -> None:
        """Restore what a killed process left, before anything reads the workspace."""
        if self._record.exists():
            self.begin()
            self.end()

    def begin(self) -> None:
        """Prepare for a command; record the state before the first."""
        if self._running == 0:
            self._found = [*self._find_governing()]
            self.before = self._record.enter(self._take_snapshot, self._restore)
        self._running += 1

    def end(self) -> list[str]:
        """Note the end of a command; restore everything after the last. Return the paths that were put back."""
        self._running -= 1
        self._put_back = []
        if self._running == 0:
            self._record.leave(self._restore, self.before)
        return sorted(self._put_back)

    def keep_alive(self) -> None:
        """Update the heartbeat. Remove a new `commondir` immediately, because it replaces all git settings."""
        self._record.touch()
        name = encode_path(self._git / COMMONDIR)
        if self._is_weak and name in self.before.kept and self.before.kept[name] is None:
            with suppress(OSError):
                folder = os.open(self._git, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    os.unlink(COMMONDIR, dir_fd=folder)
                finally:
                    os.close(folder)

    def list_governing(self) -> Iterator[Path]:
        """Yield the paths that control agents, whether they exist or not. A link counts as its target if that is in the
        workspace.

        Raise `WorldFault` if `.greenroom` is a link.
        """
        for path in self._list_protected():
            if not path.is_symlink():
                yield path
            elif path.name in self._view.visible_names:
                raise WorldFault("sandbox.protected_link", path=str(path))
            elif (target := _resolve_link(path)).is_relative_to(self._view.root) and target != self._view.root:
                yield target

    def find_git_folders(self) -> list[Path]:
        """Return the git folder of the workspace, and those of its submodules and worktrees."""
        git = self._git.resolve()
        if self._is_git_mounted or not git.is_dir() or not git.is_relative_to(self._view.root):
            return []
        inner = [folder for kind in ("modules/*", "modules/*/*", "worktrees/*") for folder in git.glob(kind)]
        return [git, *(folder for folder in inner if (folder / "HEAD").is_file() and not folder.is_symlink())]

    def find_git_file(self) -> Path | None:
        """Return the `.git` file or link to a git folder elsewhere; None if there is none."""
        return self._git if not self._is_git_mounted and (self._git.is_symlink() or self._git.is_file()) else None

    def _list_protected(self) -> list[Path]:
        return list(dict.fromkeys((*(self._view.root / name for name in self._view.protected), *self._found)))

    def _find_governing(self) -> Iterator[Path]:
        """Yield the existing files and folders that configure agents, except in `UNSEARCHED_FOLDERS`."""
        for here, folders, names in os.walk(self._view.root):
            above = "" if here == str(self._view.root) else here.rpartition(os.sep)[2]
            likely = [name for name in (*folders, *names) if name.lower() in GOVERNING_NAMES or not name.isascii()]
            found = {name for name in likely if is_governing(f"{above}/{name}")}
            yield from (Path(here, name) for name in sorted(found))
            folders[:] = [name for name in folders if name not in found | UNSEARCHED_FOLDERS]

    def _restore_paths(self, before: ProtectedState) -> None:
        """Restore the recorded paths, and set new files that configure agents aside. A path below a link is skipped."""
        known, died = {*before.governing, *before.absent, *before.kept}, before.died
        found = {encode_path(path): path for path in self._find_governing()}
        new = [key for key in found if key not in known and (not died or _read_change_time(found[key]) <= died)]
        places = {decode_path(key): state for key, state in {**before.kept, **dict.fromkeys(new)}.items()}
        for place, state in places.items():
            if state is not None and not os.path.lexists(place.parent) and _is_real_folder(place.parent.parent):
                place.parent.mkdir()
        for place, state in places.items():
            if _is_real_folder(place.parent) and read_path_state(place) != state:
                self._replace(place, state)

    def _replace(self, place: Path, state: PathState | None) -> None:
        """Set a path aside, and write its recorded state. If it cannot be set aside, it stays."""
        name = str(place.relative_to(self._view.root))
        try:
            if os.path.lexists(place):
                self._set_aside(place, name)
        except OSError as error:
            self._put_back.append(f"{name!r} (failed: {error.strerror})")
            return
        if state is not None:
            _restore_path(place, state)
        self._put_back.append(repr(name))

    def _set_aside(self, place: Path, name: str) -> None:
        """Move a path out of the workspace, or beside itself if it is on another disk: a person may have written it."""
        _make_movable(place)
        try:
            shelf = self._view.scratch / PUT_BACK_FOLDER
            shelf.mkdir(mode=0o700, exist_ok=True)
            place.rename(Path(tempfile.mkdtemp(dir=shelf), f"{self._view.root.name}+{name.replace('/', '+')}"))
        except OSError:
            _rename_beside(place)

    def _take_snapshot(self) -> ProtectedState:
        """Record the state. No command may run."""
        governing, git = [*self.list_governing()], self.find_git_folders()
        stood_in = (
            ()
            if self._is_weak
            else tuple(encode_path(git_folder) for git_folder in git if _place_commondir(git_folder))
        )
        control_files = [git_folder / name for git_folder in git for name in GIT_CONTROL_FILES]
        included = find_included_settings(self._view) if git else {}
        protected = [*governing, *control_files, *included]
        return ProtectedState(
            kept={
                encode_path(path): read_path_state(path)
                for path in self._list_recorded_paths([*control_files, *included])
            },
            absent=tuple(
                encode_path(path) for path in protected if path.name != COMMONDIR and not os.path.lexists(path)
            ),
            led={encode_path(path): folder for path, folder in included.items()},
            git=_read_inode(self._git),
            stood_in=stood_in,
            governing=tuple(map(encode_path, self._found)),
        )

    def _list_recorded_paths(self, of_git: list[Path]) -> Iterator[Path]:
        """Yield all paths to record. With mounts, only links and files with hard links."""
        git_file = self.find_git_file()
        links = [path for path in (*self._list_protected(), self._git) if path.is_symlink()]
        if not self._is_weak:
            yield from (*links, *filter(_has_hard_links, of_git))
            return
        for path in self.list_governing():
            visible = self._view.visible_names.get(path.name)
            yield from [path] if visible is None else (path / name for name in (*visible, "memory"))
        yield from (*links, *([git_file] if git_file is not None else ()), *of_git)

    def _restore(self, before: ProtectedState) -> None:
        """Restore the state. No command may run."""
        if self._is_weak:
            self._restore_folders(before)
        self._restore_paths(before)
        for path in (decode_path(folder) / COMMONDIR for folder in before.stood_in):
            state = read_path_state(path)
            if state is not None and state.content == HARMLESS_COMMONDIR and _is_real_folder(path.parent):
                with suppress(OSError):
                    path.unlink()
        for path in (path for path in map(decode_path, before.absent) if _is_real_folder(path.parent)):
            with suppress(OSError):  # bubblewrap leaves an empty file or folder as mount point
                if path.is_dir() and not path.is_symlink():
                    path.rmdir()
                elif os.lstat(path).st_size == 0:
                    path.unlink()

    def _restore_folders(self, before: ProtectedState) -> None:
        """Remove a link in place of `.greenroom`. Bring back the original git folder, and set a new one aside."""
        for path in self._list_protected():
            with suppress(OSError):
                if path.name in self._view.visible_names and not stat.S_ISDIR(os.lstat(path).st_mode):
                    path.unlink()
        if before.git in (0, _read_folder_inode(self._git)) or encode_path(self._git) in before.kept:
            return
        with suppress(OSError):
            original = next(
                (entry for entry in self._view.root.iterdir() if _read_folder_inode(entry) == before.git), None
            )
            if original is None and before.died and _read_change_time(self._git) > before.died:
                return  # after a kill: the person has made another repository here
            if os.path.lexists(self._git):
                _rename_beside(self._git)
            if original is not None:
                original.rename(self._git)


def _rename_beside(place: Path) -> None:
    names = (place.with_name(f"{place.name}.left-by-a-command{number or ''}") for number in count())
    _move(place, next(name for name in names if not os.path.lexists(name)))


def _move(place: Path, target: Path) -> None:
    """Rename a path; a folder of a container's image only entry by entry."""
    _make_movable(place)
    try:
        place.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV or place.is_symlink() or not place.is_dir():
            raise
        target.mkdir()
        for entry in place.iterdir():
            _move(entry, target / entry.name)
        place.rmdir()


def _make_movable(place: Path) -> None:
    for folder in (place.parent, place):
        if stat.S_ISDIR(mode := os.lstat(folder).st_mode) and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            folder.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)


def find_included_settings(view: SandboxView) -> dict[Path, bool]:
    """Ask git which paths of the workspace its settings name: False for files, True for folders."""
    configs = [view.root / ".git" / name for name in ("config", "config.worktree")]
    if not any(_has_includes(path) for path in (*configs, *(view.home / name for name in PERSONAL_GIT_CONFIGS))):
        return {}
    words = ("git", "-c", "safe.directory=*", "config", "--list", "--show-origin", "-z")
    env = {"HOME": str(view.home), "PATH": os.defpath}
    try:
        listed = subprocess.run(
            words,
            cwd=view.root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise WorldFault("sandbox.git_settings_unreadable", root=str(view.root), error=error) from None
    fields = os.fsdecode(listed).split("\0")
    included = {}
    for origin, setting in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = setting.partition("\n")
        hooks = key == "core.hookspath"
        if value and (hooks or (key.startswith("include") and key.endswith(".path"))):
            base = view.root if hooks else view.root / Path(origin.removeprefix("file:")).parent
            target = Path(os.path.normpath(base / (view.home / value[2:] if value.startswith("~/") else value)))
            with suppress(OSError, RuntimeError):
                target = target.resolve()
            inside = target.is_relative_to(view.root) and target != view.root
            if inside and not target.is_relative_to(view.root / ".git"):  # the git folder is protected anyway
                included[target] = hooks
    return included


def find_outer_git(root: Path) -> list[Path]:
    """Return the outside git folders of a worktree or submodule. Commands may read them.

    The workspace's `.git` file is not trusted: the repository must list this worktree too.
    """
    try:
        text = (root / ".git").read_text(encoding="utf-8") if (root / ".git").is_file() else ""
        if not text.startswith(GITDIR_PREFIX):
            return []
        git_folder = (root / text.removeprefix(GITDIR_PREFIX).strip()).resolve(strict=True)
        if not _is_registered_worktree(git_folder, root):
            return []
        shared = git_folder / COMMONDIR
        common = (
            (git_folder / shared.read_text(encoding="utf-8").strip()).resolve(strict=True)
            if shared.is_file()
            else git_folder
        )
    except (OSError, ValueError, RuntimeError):
        return []
    outside = [
        folder
        for folder in dict.fromkeys((common, git_folder))
        if not folder.is_relative_to(root) and (folder / "HEAD").is_file()
    ]
    return [
        folder for folder in outside if not any(folder != other and folder.is_relative_to(other) for other in outside)
    ]


def _is_registered_worktree(git_folder: Path, root: Path) -> bool:
    """Return whether the repository lists this workspace as a worktree or submodule."""
    with suppress(OSError, ValueError, RuntimeError):
        if (git_folder / "gitdir").is_file():
            return (
                git_folder / (git_folder / "gitdir").read_text(encoding="utf-8").strip()
            ).resolve() == root.resolve() / ".git"
        for line in (git_folder / "config").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            if key.strip().lower() == "worktree":
                return (git_folder / value.strip().strip('"')).resolve() == root.resolve()
    return False


def find_sockets(root: Path) -> Iterator[Path]:
    """Yield sockets in the workspace on which a process outside the sandbox listens."""
    with suppress(OSError):
        for line in UNIX_SOCKET_TABLE.read_text(encoding="utf-8", errors="surrogateescape").splitlines()[1:]:
            path = Path(line.split(maxsplit=7)[-1])
            if path.is_absolute() and path.is_relative_to(root) and path.is_socket():
                yield path


def _place_commondir(git: Path) -> bool:
    """Place a harmless `commondir` if there is none. While it is mounted, no other can be created."""
    place = git / COMMONDIR
    with suppress(OSError):
        whole = (git / "HEAD").is_file() and (git / "refs").is_dir() and (git / "objects").is_dir()
        if not whole or os.path.lexists(place):
            return False
        draft, owner = place.with_name(f"{COMMONDIR}.by-greenroom"), git.stat()
        draft.unlink(missing_ok=True)
        draft.write_bytes(HARMLESS_COMMONDIR)
        if os.geteuid() == 0:
            os.chown(draft, owner.st_uid, owner.st_gid)
        draft.rename(place)  # atomic: git reports half a file as a broken repository
        return True
    return False


def _resolve_link(link: Path) -> Path:
    """Return the target of a link; `/` if there is none."""
    with suppress(OSError, RuntimeError):
        return link.resolve(strict=True)
    return Path("/")


def _has_includes(settings: Path) -> bool:
    with suppress(OSError):
        text = settings.read_bytes().lower()
        return any(word in text for word in INCLUDING_SETTINGS)
    return False


def _read_inode(path: Path) -> int:
    with suppress(OSError):
        return os.lstat(path).st_ino
    return 0


def _read_folder_inode(path: Path) -> int:
    """Return the inode of a folder; 0 for anything else, because inodes of removed folders are reused for files."""
    return _read_inode(path) if path.is_dir() and not path.is_symlink() else 0


def _has_hard_links(path: Path) -> bool:
    with suppress(OSError):
        kind = os.lstat(path)
        return stat.S_ISREG(kind.st_mode) and kind.st_nlink > 1
    return False
