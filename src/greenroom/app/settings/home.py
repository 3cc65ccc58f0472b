"""Greenroom's folders, and safe reading and writing of files in them."""

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

from greenroom.app.messages import translate
from greenroom.core.base.errors import WorldFault

HOME_VARIABLE: Final = "GREENROOM_HOME"


def config_folder() -> Path:
    """Return the person's configuration folder: agents, tools, callbacks, keys and trust records. $GREENROOM_CONFIG
    names one file and does not move this folder. Otherwise code beside that file would run."""
    return user_config_path("greenroom", appauthor=False)


def worktrees_folder() -> Path:
    """Return the folder of run worktrees. It is in the user's cache, never inside a repository."""
    return user_cache_path("greenroom", appauthor=False) / "worktrees"


def home_folder(given: Path | None = None) -> Path:
    """Return the absolute folder of the log: `given`, else $GREENROOM_HOME, else the user's data folder."""
    if given is None:
        named = os.environ.get(HOME_VARIABLE)
        if named is not None and not named.strip():
            raise WorldFault("settings.home_variable_empty", home_variable=HOME_VARIABLE)
        given = Path(named) if named is not None else user_data_path("greenroom", appauthor=False)
    try:
        return given.expanduser().absolute()
    except RuntimeError:
        raise WorldFault("settings.unknown_user_home", given=str(given)) from None
    except FileNotFoundError:
        raise WorldFault("settings.current_folder_gone", given=str(given)) from None


def read_inside(path: Path, root: Path | None, max_bytes: int) -> bytes:
    """Return the content of a plain file of at most `max_bytes`. With a `root`, the file must be inside it. The
    `WorldFault` continues a sentence that starts with the file name, without the final period."""
    try:
        if root is not None and not path.resolve().is_relative_to(root.resolve()):
            raise WorldFault("files.link_outside")
        if not path.is_file():
            raise WorldFault("files.not_plain")
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except (OSError, RuntimeError) as error:  # a link to itself raises RuntimeError
        why = getattr(error, "strerror", None) or str(error)
        raise WorldFault("files.unreadable", why=why) from None
    if len(content) > max_bytes:
        raise WorldFault("files.too_long", limit=max_bytes // 1024)
    return content


def create_file(path: Path, text: str) -> None:
    """Create a file. Raise `FileExistsError` if it exists."""
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


WRITABLE_BY_OTHERS: Final = 0o022


class VersionedRecord(Protocol):
    """A record with the version of its file format."""

    @property
    def version(self) -> int:
        """The version of the file format."""
        ...


R = TypeVar("R", bound=VersionedRecord)


def change_file(path: Path, render: Callable[[], str | None]) -> None:
    """Replace a file with the text from `render`, under a lock. None leaves the file unchanged.

    `render` reads the file itself, inside the lock; its errors pass through. A symbolic link stays a link. Raise
    `WorldFault` if the file cannot be written.
    """
    with ExitStack() as lock:
        with _report_write_errors(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock.enter_context(lock_folder(path.parent))
        text = render()
        with _report_write_errors(path):
            if text is not None:
                replace_file(path.resolve(), text)
            lock.close()


def refuse_writable(path: Path, mode: int, what: str) -> None:
    """Raise `WorldFault` if other users can write the file. The message `what` names its content."""
    if mode & WRITABLE_BY_OTHERS:
        command = f"chmod 600 {shlex.quote(str(path))}"
        raise WorldFault("settings.writable_by_others", path=path, what=translate(what), command=command)


class RecordFile(Generic[R]):
    """A JSON file of the person with one record. The message `what` names its content, the message `advice` says how to
    repair it. The file is short and can change elsewhere, so every access reads it again."""

    def __init__(self, path: Path, kind: type[R], what: str, advice: str) -> None:
        self.path = path
        self._kind = kind
        self._what = what
        self._advice = advice

    def read(self) -> R:
        """Return the record, or the default record if there is no file. Raise `WorldFault` if the file cannot be read,
        has another version, or is writable by other users."""
        default = self._kind()
        try:
            content = self.path.read_bytes()
            refuse_writable(self.path, self.path.stat().st_mode, self._what)
            stored = msgspec.json.decode(content, type=self._kind)
        except FileNotFoundError:
            return default
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._unreadable(str(error)) from None
        if stored.version != default.version:
            raise self._unreadable(
                translate("settings.other_version", stored=stored.version, supported=default.version)
            )
        return stored

    def change(self, update: Callable[[R], R]) -> None:
        """Replace the record with the result of `update`."""
        change_file(self.path, lambda: msgspec.json.format(msgspec.json.encode(update(self.read()))).decode() + "\n")

    def _unreadable(self, why: str) -> WorldFault:
        return WorldFault("settings.record_unreadable", path=self.path, why=why, advice=translate(self._advice))


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder against other writers that use this lock."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_file(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace a file atomically. Only its owner can read it unless `mode` allows more."""
    new_path = path.with_name(f".{path.name}.new")
    new_path.unlink(missing_ok=True)
    handle = os.open(new_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new_path.replace(path)


@contextmanager
def _report_write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorldFault("settings.file_not_written", path=path, strerror=error.strerror or error) from None


GITIGNORE: Final = """\
# Only settings, agents, skills, teams, tools, callbacks, rules and shared memories are shared.
*
!.gitignore
!config.toml
!agents/
!agents/*.md
!skills/
!skills/**
!teams/
!teams/*.toml
!tools/
!tools/*.py
!callbacks/
!callbacks/*.py
!permissions
!memory/
!memory/*.json
"""


def write_gitignore(folder: Path) -> None:
    """Write `.gitignore` into the folder, unless there is one."""
    path = folder / ".gitignore"
    if not path.exists() and not path.is_symlink():
        path.write_text(GITIGNORE, encoding="utf-8")
