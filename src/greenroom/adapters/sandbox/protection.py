"""What commands may not change in a workspace: git's hooks and settings, `.greenroom`, `.claude`, `.mcp.json`.

bubblewrap mounts them read-only. Landlock cannot: there they are remembered before the first command and put back after
the last one. Repositories that a command makes itself are not looked at (docs/howto-sandbox.md, known limits).
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.ground import Ground
from greenroom.adapters.sandbox.kept import Before, SharedRecord, key_of, path_of, put_back, remember
from greenroom.core.base.errors import WorldFault

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
        for place in map(path_of, before.stood_in):
            _take_away(place / COMMON, ITSELF)
        for path in map(path_of, before.absent):
            _remove_empty(path)

    def _restore_folders(self, before: Before) -> None:
        """Our own folder is no link; the git folder is the one that it was, or aside."""
        for path in self._names():
            with suppress(OSError):
                if path.name in self._ground.shown and not stat.S_ISDIR(os.lstat(path).st_mode):
                    path.unlink()
        if before.git in (0, _inode(self._git)) or key_of(self._git) in before.kept:
            return
        with suppress(OSError):
            if os.path.lexists(self._git):
                self._git.rename(_free_name(self._git))
            for one in self._ground.root.iterdir():
                if _inode(one) == before.git:
                    one.rename(self._git)


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
            if target.is_relative_to(ground.root) and target not in (ground.root, *_git_parents(target, ground.root)):
                found[target] = hooks
    return found


def _git_parents(target: Path, root: Path) -> Iterable[Path]:
    """The path itself, where it lies in the git folder: what is there is kept anyway."""
    return (target,) if target.is_relative_to(root / ".git") else ()


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


def _take_away(path: Path, content: bytes) -> None:
    with suppress(OSError):
        if not path.is_symlink() and path.stat().st_size == len(content) and path.read_bytes() == content:
            path.unlink()


def _remove_empty(path: Path) -> None:
    """What was not there before: bubblewrap leaves a file or folder where it has mounted something."""
    with suppress(OSError):
        kind = os.lstat(path)
        if stat.S_ISDIR(kind.st_mode):
            path.rmdir()
        elif kind.st_size == 0:
            path.unlink()


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}{ASIDE}{number or ''}") for number in range(1000))
    return next(one for one in names if not os.path.lexists(one))


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


def _has_second_name(path: Path) -> bool:
    with suppress(OSError):
        kind = os.lstat(path)
        return stat.S_ISREG(kind.st_mode) and kind.st_nlink > 1
    return False
