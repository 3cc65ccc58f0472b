"""What commands may not change in a workspace: git's hooks and settings, `.greenroom`, `.claude`, `.mcp.json`.

bubblewrap mounts them read-only. Landlock cannot: there they are remembered before the first command and put back after
the last one, in a record that all processes share that run commands in one workspace. One that is killed cannot put
anything back: the next one does, because it finds the record. Repositories that a command makes itself are not looked
at (docs/howto/sandbox.md, known limits).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.adapters.sandbox.ground import Ground
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve, record

MOST: Final = 16 * 1024 * 1024
"""Bytes that are remembered of one file."""

BEAT: Final = 1.0
LATE: Final = 5.0
"""Seconds after the last beat in which a command may still have been alive."""


@record
class Kept:
    """One file, link or folder as it was. A folder has what was in it, by name (its bytes as Latin-1)."""

    mode: int
    content: bytes = b""
    entries: Mapping[str, Kept] | None = None


@record
class Before:
    """What was there when no command ran, by the keys of paths: contents, or None for nothing.

    What was `absent` is removed if it is empty afterwards. Settings `led` git to files, and (True) folders, of the
    workspace. `git` is the inode of `.git`; in `stood_in` folders a `commondir` of ours stands for one that was not
    there.
    """

    kept: Mapping[str, Kept | None] = {}
    absent: tuple[str, ...] = ()
    led: Mapping[str, bool] = {}
    git: int = 0
    stood_in: tuple[str, ...] = ()


class SharedRecord:
    """A file in `folder`, locked by every process that runs commands in the workspace at `root`."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._path = folder / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:32]}.before"
        self._file = -1

    def enter(self, look: Callable[[], Before], mend: Callable[[Before], None]) -> Before:
        """What all go by. Who is alone looks, after having mended what a killed process left."""
        while True:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            alone = self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not alone:
                self._lock(fcntl.LOCK_SH)
            if self._is_current():
                known = self._read()
                if alone:
                    return self._begin(known and self._of_the_dead(known), look, mend)
                if known is not None:
                    return known
            self._close()  # another one is just leaving, or just coming

    def beat(self) -> None:
        """Commands still run: who finds the record later knows until when."""
        if self._file >= 0 and time.time() - os.fstat(self._file).st_mtime > BEAT:
            os.utime(self._file)

    def leave(self, mend: Callable[[Before], None], before: Before) -> None:
        """Our last command has ended: if no other process's runs, everything is mended."""
        try:
            if self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB):
                mend(before)
                self._path.unlink(missing_ok=True)
        finally:
            self._close()

    def _begin(self, left: Before | None, look: Callable[[], Before], mend: Callable[[Before], None]) -> Before:
        try:
            if left is not None:
                mend(left)
            before = look()
            content = msgspec.msgpack.encode(before)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, content, 0)
        except BaseException:
            self._path.unlink(missing_ok=True)
            self._close()
            raise
        self._lock(fcntl.LOCK_SH)
        return before

    def _of_the_dead(self, left: Before) -> Before:
        """What they left, without what was changed when they were dead."""
        died = os.fstat(self._file).st_mtime + LATE
        kept = {path: state for path, state in left.kept.items() if _changed(path_of(path)) <= died}
        return evolve(left, kept=kept)

    def _lock(self, how: int) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(self._file, how)
            return True
        return False

    def _is_current(self) -> bool:
        """Whether the file was not taken away while we waited for it."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        return False

    def _read(self) -> Before | None:
        with suppress(msgspec.DecodeError, ValueError):
            return msgspec.msgpack.decode(os.pread(self._file, os.fstat(self._file).st_size, 0), type=Before)
        return None

    def _close(self) -> None:
        os.close(self._file)
        self._file = -1


def remember(place: Path) -> Kept | None:
    """What is there now; None where nothing is."""
    try:
        mode = os.lstat(place).st_mode
        if stat.S_ISLNK(mode):
            return Kept(mode=mode, content=os.fsencode(place.readlink()))
        if stat.S_ISDIR(mode):
            inner = {key_of(entry.name): remember(entry) for entry in place.iterdir()}
            return Kept(mode=mode, entries={name: kept for name, kept in inner.items() if kept is not None})
        if not stat.S_ISREG(mode):
            return Kept(mode=mode)
        with place.open("rb") as file:
            return Kept(mode=mode, content=file.read(MOST))
    except OSError:
        return None


def put_back(before: Mapping[str, Kept | None]) -> None:
    """Make it what it was, while no command runs. Where the folder is a link by now there is nothing to put it into."""
    places = {path_of(path): kept for path, kept in before.items()}
    for place, kept in places.items():
        if kept is not None and not os.path.lexists(place.parent) and _is_real(place.parent.parent):
            place.parent.mkdir()
    for place, kept in places.items():
        if _is_real(place.parent) and remember(place) != kept:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
            if kept is not None:
                _restore(place, kept)


def _is_real(folder: Path) -> bool:
    return folder.is_dir() and folder.resolve() == folder


def _restore(place: Path, kept: Kept) -> None:
    if stat.S_ISLNK(kept.mode):
        place.symlink_to(os.fsdecode(kept.content))
    elif kept.entries is not None:
        place.mkdir()
        for name, one in kept.entries.items():
            _restore(place / path_of(name), one)
        place.chmod(stat.S_IMODE(kept.mode))
    elif stat.S_ISREG(kept.mode):
        place.write_bytes(kept.content)
        place.chmod(stat.S_IMODE(kept.mode))


def key_of(path: Path | str) -> str:
    """A path, or name, as text that can be stored: names need not be UTF-8."""
    return os.fsencode(path).decode("latin-1")


def path_of(key: str) -> Path:
    """The path of a key."""
    return Path(os.fsdecode(key.encode("latin-1")))


def _changed(place: Path) -> float:
    """When it, or something in it, was changed; of what is gone, when it may have gone. The kernel dates that."""
    with suppress(OSError):
        inner = place.iterdir() if place.is_dir() and not place.is_symlink() else ()
        return max(os.lstat(one).st_ctime for one in (place, *inner))
    with suppress(OSError):
        return os.lstat(place.parent).st_ctime
    return 0.0


GIT: Final = ("config", "config.worktree", "hooks", "commondir", "info/attributes")
"""What of a git folder decides which programs git runs."""

FOLDERS: Final = ("hooks",)
"""Those that are folders; the others are files."""

COMMON: Final = "commondir"
ITSELF: Final = b".\n"
"""A `commondir` that says what git does without one. An empty one would be a broken repository to git."""

LINK: Final = "gitdir:"
LEADING: Final = (b"hookspath", b"include")
PERSONAL: Final = ("/etc/gitconfig", ".gitconfig", ".config/git/config")
PATIENCE: Final = 5.0
LISTENING: Final = Path("/proc/net/unix")
ASIDE: Final = ".left-by-a-command"


class Protection:
    """Of one workspace, over all commands in it. With `weak` nothing but us keeps commands from changing it."""

    def __init__(self, ground: Ground, *, weak: bool) -> None:
        self._ground = ground
        self._git = ground.root / ".git"
        self._weak = weak
        self._record = SharedRecord(ground.scratch, ground.root)
        self._running = 0
        self._lent = any(one.at == ".git" for one in ground.lent)
        self.before = Before()

    def begin(self) -> None:
        """A command is about to run."""
        if self._running == 0:
            self.before = self._record.enter(self._look, self._mend)
        self._running += 1

    def end(self) -> None:
        """A command has ended; after the last one everything is what it was."""
        self._running -= 1
        if self._running == 0:
            self._record.leave(self._mend, self.before)

    def beat(self) -> None:
        """One still runs. A fresh `commondir` exchanges all of a person's settings at once, so it does not wait."""
        self._record.beat()
        name = key_of(self._git / COMMON)
        if self._weak and name in self.before.kept and self.before.kept[name] is None:
            with suppress(OSError):
                folder = os.open(self._git, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    os.unlink(COMMON, dir_fd=folder)
                finally:
                    os.close(folder)

    def governing(self) -> Iterator[Path]:
        """What governs agents, whether it is there or not. Of a link that is what it leads to, if that is in the
        workspace; `WorldFault` where our own folder is one."""
        for path in self._names():
            if not path.is_symlink():
                yield path
            elif path.name in self._ground.shown:
                raise WorldFault(f"{str(path)!r} is a link, so it cannot be protected. Put a real folder in its place.")
            elif (target := _target(path)).is_relative_to(self._ground.root) and target != self._ground.root:
                yield target

    def git_folders(self) -> list[Path]:
        """The workspace's own git folder, and those of its submodules and worktrees in it."""
        git = self._git.resolve()
        if self._lent or not git.is_dir() or not git.is_relative_to(self._ground.root):
            return []
        inner = [one for kind in ("modules/*", "modules/*/*", "worktrees/*") for one in git.glob(kind)]
        return [git, *(one for one in inner if (one / "HEAD").is_file() and not one.is_symlink())]

    def git_sign(self) -> Path | None:
        """The file, or link, that stands for a git folder elsewhere."""
        return self._git if not self._lent and (self._git.is_symlink() or self._git.is_file()) else None

    def _names(self) -> list[Path]:
        return [self._ground.root / name for name in self._ground.kept]

    def _look(self) -> Before:
        """While no command runs."""
        governing, git = [*self.governing()], self.git_folders()
        stood_in = () if self._weak else tuple(key_of(one) for one in git if _stand_in(one))
        own = [one / name for one in git for name in GIT]
        led = settings_lead_to(self._ground) if git else {}
        every = [*governing, *own, *led]
        return Before(
            kept={key_of(path): remember(path) for path in self._remembered([*own, *led])},
            absent=tuple(key_of(path) for path in every if path.name != COMMON and not os.path.lexists(path)),
            led={key_of(path): folder for path, folder in led.items()},
            git=_inode(self._git),
            stood_in=stood_in,
        )

    def _remembered(self, of_git: list[Path]) -> Iterator[Path]:
        """All of it, or what mounts cannot keep: links, and files that have a second name to be changed by."""
        sign = self.git_sign()
        links = [path for path in (*self._names(), self._git) if path.is_symlink()]
        if not self._weak:
            yield from (*links, *filter(_has_second_name, of_git))
            return
        for path in self.governing():
            shown = self._ground.shown.get(path.name)
            yield from [path] if shown is None else (path / name for name in shown)
        yield from (*links, *([sign] if sign is not None else ()), *of_git)

    def _mend(self, before: Before) -> None:
        """While no command runs any more."""
        if self._weak:
            self._restore_folders(before)
        put_back(before.kept)
        for path in (path_of(folder) / COMMON for folder in before.stood_in):
            with suppress(OSError):
                if not path.is_symlink() and path.stat().st_size == len(ITSELF) and path.read_bytes() == ITSELF:
                    path.unlink()
        for path in map(path_of, before.absent):
            with suppress(OSError):  # bubblewrap leaves a file or folder where it has mounted something
                if path.is_dir() and not path.is_symlink():
                    path.rmdir()
                elif os.lstat(path).st_size == 0:
                    path.unlink()

    def _restore_folders(self, before: Before) -> None:
        """Our own folder is no link; the git folder is the one that it was, or aside."""
        for path in self._names():
            with suppress(OSError):
                if path.name in self._ground.shown and not stat.S_ISDIR(os.lstat(path).st_mode):
                    path.unlink()
        if before.git in (0, _folder_inode(self._git)) or key_of(self._git) in before.kept:
            return
        with suppress(OSError):
            if os.path.lexists(self._git):
                names = (self._git.with_name(f".git{ASIDE}{number or ''}") for number in range(1000))
                self._git.rename(next(name for name in names if not os.path.lexists(name)))
            for entry in self._ground.root.iterdir():
                if _folder_inode(entry) == before.git:
                    entry.rename(self._git)


def settings_lead_to(ground: Ground) -> dict[Path, bool]:
    """Files (False) and folders (True) of the workspace that git reads because settings name them; git is asked."""
    own = [ground.root / ".git" / name for name in ("config", "config.worktree")]
    if not any(_mentions(path) for path in (*own, *(ground.home / name for name in PERSONAL))):
        return {}
    words = ("git", "-c", "safe.directory=*", "config", "--list", "--show-origin", "-z")
    env = {"HOME": str(ground.home), "PATH": os.defpath}
    try:
        listed = subprocess.run(
            words, cwd=ground.root, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise WorldFault(f"git cannot list the settings of {str(ground.root)!r}: {error}") from None
    fields = os.fsdecode(listed).split("\0")
    found = {}
    for origin, setting in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = setting.partition("\n")
        hooks = key == "core.hookspath"
        if value and (hooks or (key.startswith("include") and key.endswith(".path"))):
            base = ground.root if hooks else ground.root / Path(origin.removeprefix("file:")).parent
            target = Path(os.path.normpath(base / (ground.home / value[2:] if value.startswith("~/") else value)))
            with suppress(OSError, RuntimeError):
                target = target.resolve()
            inside = target.is_relative_to(ground.root) and target != ground.root
            if inside and not target.is_relative_to(ground.root / ".git"):  # what is there is kept anyway
                found[target] = hooks
    return found


def outer_git(root: Path) -> list[Path]:
    """Git folders outside, of a workspace that is a worktree or submodule: commands may read them.

    A file of the workspace can say anything, so the repository has to say the same: that this is a worktree of its own.
    """
    try:
        text = (root / ".git").read_text(encoding="utf-8") if (root / ".git").is_file() else ""
        if not text.startswith(LINK):
            return []
        own = (root / text.removeprefix(LINK).strip()).resolve(strict=True)
        if not _knows(own, root):
            return []
        shared = own / COMMON
        common = (own / shared.read_text(encoding="utf-8").strip()).resolve(strict=True) if shared.is_file() else own
    except (OSError, ValueError, RuntimeError):
        return []
    outside = [one for one in dict.fromkeys((common, own)) if not one.is_relative_to(root) and (one / "HEAD").is_file()]
    return [one for one in outside if not any(one != other and one.is_relative_to(other) for other in outside)]


def _knows(own: Path, root: Path) -> bool:
    """Whether the repository knows this workspace: as a worktree, or as the place of a submodule."""
    with suppress(OSError, ValueError, RuntimeError):
        if (own / "gitdir").is_file():
            return (own / (own / "gitdir").read_text(encoding="utf-8").strip()).resolve() == root.resolve() / ".git"
        for line in (own / "config").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            if key.strip().lower() == "worktree":
                return (own / value.strip().strip('"')).resolve() == root.resolve()
    return False


def sockets_in(root: Path) -> Iterator[Path]:
    """Sockets in the workspace behind which a process of the machine is, which is no part of the workspace."""
    with suppress(OSError):
        for line in LISTENING.read_text(encoding="utf-8", errors="surrogateescape").splitlines()[1:]:
            path = Path(line.split(maxsplit=7)[-1])
            if path.is_absolute() and path.is_relative_to(root) and path.is_socket():
                yield path


def _stand_in(git: Path) -> bool:
    """Put a harmless `commondir` where there is none: while it is there, and mounted, no other can be made."""
    place = git / COMMON
    with suppress(OSError):
        whole = (git / "HEAD").is_file() and (git / "refs").is_dir() and (git / "objects").is_dir()
        if not whole or os.path.lexists(place):
            return False
        draft, owner = place.with_name(f"{COMMON}.by-greenroom"), git.stat()
        draft.unlink(missing_ok=True)
        draft.write_bytes(ITSELF)
        if os.geteuid() == 0:
            os.chown(draft, owner.st_uid, owner.st_gid)
        draft.rename(place)  # at once: git takes half of one for a broken repository
        return True
    return False


def _target(link: Path) -> Path:
    """What a link leads to; the top of all where that is nothing."""
    with suppress(OSError, RuntimeError):
        return link.resolve(strict=True)
    return Path("/")


def _mentions(settings: Path) -> bool:
    with suppress(OSError):
        text = settings.read_bytes().lower()
        return any(word in text for word in LEADING)
    return False


def _inode(path: Path) -> int:
    with suppress(OSError):
        return os.lstat(path).st_ino
    return 0


def _folder_inode(path: Path) -> int:
    """Of a folder only: a disk gives the number of one that was removed to the next file that is made."""
    return _inode(path) if path.is_dir() and not path.is_symlink() else 0


def _has_second_name(path: Path) -> bool:
    with suppress(OSError):
        kind = os.lstat(path)
        return stat.S_ISREG(kind.st_mode) and kind.st_nlink > 1
    return False
