"""Where Greenroom keeps its log, where a person keeps what is theirs, and how files there are changed."""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import msgspec
from platformdirs import user_cache_path, user_config_path, user_data_path

from greenroom.core.base.errors import WorldFault

VARIABLE: Final = "GREENROOM_HOME"


def config_folder() -> Path:
    """The person's own folder: agents, tools, callbacks, keys, and what they agreed to.

    $GREENROOM_CONFIG names one file and does not move it: else whatever lies beside that file would be run.
    """
    return user_config_path("greenroom", appauthor=False)


def worktrees_folder() -> Path:
    """Where the worktrees of runs are: in the user's cache, never inside a repository."""
    return user_cache_path("greenroom", appauthor=False) / "worktrees"


def home_folder(given: Path | None = None) -> Path:
    """The folder of the log, from the root: what is given, else $GREENROOM_HOME, else the user's data folder."""
    if given is None:
        named = os.environ.get(VARIABLE)
        if named is not None and not named.strip():
            raise WorldFault(f"${VARIABLE} is set but empty. Name a folder, or unset it for your data folder.")
        given = Path(named) if named is not None else user_data_path("greenroom", appauthor=False)
    try:
        return given.expanduser().absolute()
    except RuntimeError:
        raise WorldFault(f"{str(given)!r} names a person whose folder is not known here. Write it out.") from None
    except FileNotFoundError:
        raise WorldFault(
            f"The current folder is gone, so nobody knows where {str(given)!r} is. Go elsewhere."
        ) from None


def read_inside(path: Path, root: Path | None, longest: int) -> bytes:
    """The content of a plain file of at most `longest` bytes; with a `root`, only if no link leads out of it.

    `WorldFault` says what is wrong and what to do: the end of a sentence that begins with the file, without its stop.
    """
    try:
        if root is not None and not path.resolve().is_relative_to(root.resolve()):
            raise WorldFault("is a link that leads outside. Put the file itself there")
        if not path.is_file():
            raise WorldFault("is no plain file. Move it away")
        with path.open("rb") as file:
            content = file.read(longest + 1)
    except (OSError, RuntimeError) as error:  # a link that leads to itself is the latter
        why = getattr(error, "strerror", None) or str(error)
        raise WorldFault(f"cannot be read: {why}. Make it readable, or move it away") from None
    if len(content) > longest:
        raise WorldFault(f"is longer than {longest // 1024} KB. Shorten it")
    return content


def create(path: Path, text: str) -> None:
    """A file that was not there before; `FileExistsError` where something is."""
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


OTHERS: Final = 0o022


class Versioned(Protocol):
    """A record that says which version of its file it is."""

    @property
    def version(self) -> int:
        """The version."""
        ...


R = TypeVar("R", bound=Versioned)


def change(path: Path, made: Callable[[], str | None]) -> None:
    """Put what `made` makes in its place; None leaves it as it is. `made` reads the file itself, when it is its turn.

    `WorldFault` where nothing can be written. A link stays a link. What `made` raises is its own business.
    """
    with ExitStack() as turn:
        with _writing(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            turn.enter_context(locked(path.parent))
        text = made()
        with _writing(path):
            if text is not None:
                replace(path.resolve(), text)
            turn.close()


def refuse_writable(path: Path, mode: int, what: str) -> None:
    """`WorldFault` if others can write a file that says `what`."""
    if mode & OTHERS:
        told = f"chmod 600 {shlex.quote(str(path))}"
        raise WorldFault(f"{path} says {what}, and others can write it. Look at it, then type: {told}")


class RecordFile(Generic[R]):
    """A JSON file of the person's that holds one record, and says `what`. It is read anew each time: it is short, and
    may have been changed elsewhere. `advice` is what to do about one that cannot be read."""

    def __init__(self, path: Path, kind: type[R], what: str, advice: str) -> None:
        self.path = path
        self._kind = kind
        self._what = what
        self._advice = advice

    def read(self) -> R:
        """The record, the default one if there is no file.

        `WorldFault` for a file that cannot be read, is of another version, or that others can write.
        """
        known = self._kind()
        try:
            content = self.path.read_bytes()
            refuse_writable(self.path, self.path.stat().st_mode, self._what)
            found = msgspec.json.decode(content, type=self._kind)
        except FileNotFoundError:
            return known
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._unreadable(str(error)) from None
        if found.version != known.version:
            raise self._unreadable(f"it has version {found.version}, and this Greenroom knows {known.version}")
        return found

    def change(self, changes: Callable[[R], R]) -> None:
        """Put in its place what `changes` makes of it."""
        change(self.path, lambda: msgspec.json.format(msgspec.json.encode(changes(self.read()))).decode() + "\n")

    def _unreadable(self, why: str) -> WorldFault:
        return WorldFault(f"{self.path} cannot be read: {why}. {self._advice}")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else who asks for the same writes in this folder meanwhile."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
        os.fsync(handle)
    finally:
        os.close(handle)


def replace(path: Path, text: str, mode: int = 0o600) -> None:
    """A new file in the place of the old one, whole or not at all; only its owner reads it unless `mode` says more."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorldFault(f"{path} cannot be written: {error.strerror or error}. Nothing was changed.") from None


SHARED: Final = """\
# Only settings, agents, teams, tools, callbacks and rules are shared.
*
!.gitignore
!config.toml
!agents/
!agents/*.md
!teams/
!teams/*.toml
!tools/
!tools/*.py
!callbacks/
!callbacks/*.py
!permissions
"""


def tell_git(folder: Path) -> None:
    """Say so in the folder, unless somebody has said something there."""
    told = folder / ".gitignore"
    if not told.exists() and not told.is_symlink():
        told.write_text(SHARED, encoding="utf-8")
