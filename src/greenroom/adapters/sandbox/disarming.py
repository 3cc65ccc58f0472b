"""Repositories of git made harmless: what would run a program is put aside, nothing is deleted.

A command may make repositories, and has to be able to: tests do, and so does `git clone`. But nothing that it wrote
there may run when a person, or the house, asks git something outside of the walls.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

HELD: Final = ".held-by-greenroom"
"""Behind the name of what was put aside."""

PROTECTED: Final = ("config", "config.worktree", "hooks", "commondir", "gitdir")
HARMLESS: Final[Mapping[str, frozenset[str]]] = {
    "core": frozenset(
        {
            *("repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "symlinks"),
            "precomposeunicode",
        }
    ),
    "remote": frozenset({"url", "fetch", "pushurl"}),
    "branch": frozenset({"remote", "merge", "rebase"}),
    "user": frozenset({"name", "email"}),
    "submodule": frozenset({"url", "active", "path", "branch"}),
    "extensions": frozenset({"objectformat", "refstorage"}),
}
"""Settings that name no program, no file and no other place for settings."""

SECTION: Final = re.compile(r'\s*\[\s*([A-Za-z0-9-]+)(?:\s+"(?:[^"\\]|\\.)*")?\s*\]\s*')
SETTING: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?")
ELSEWHERE: Final = re.compile(r"^-|::|^\s*!|[\"\\]")
"""A value with which an address, or a name, is a program."""

SAMPLE: Final = ".sample"
OF_WORKTREE: Final = "../.."
LARGEST: Final = 1024 * 1024


def disarm(root: Path, place: Path, names: Iterable[str] = PROTECTED) -> list[str]:
    """Put aside what could run something, of these names in the folder of a repository; returns what it was.

    Other commands may still run, and change what is where while we look: so each step goes from an open folder to what
    is in it, never over a link, and `OSError` says that somebody was quicker.
    """
    with folder_in(root, place) as folder:
        return [f"{place}/{one}" for name in names for one in _disarmed(folder, name, place)]


def _disarmed(folder: int, name: str, place: Path) -> Iterator[str]:
    try:
        kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    match name:
        case "hooks" if stat.S_ISDIR(kind):
            yield from _hooks(folder)
        case "config" | "config.worktree" if stat.S_ISREG(kind):
            yield from _settings(folder, name)
        case "commondir" if stat.S_ISREG(kind) and _is_of_worktree(folder, place):
            return
        case "gitdir" if stat.S_ISREG(kind):
            return  # it only says where the files of a worktree are
        case _:
            _put_aside(folder, name)
            yield name


def _hooks(folder: int) -> Iterator[str]:
    with _opened(folder, "hooks", os.O_DIRECTORY) as hooks:
        for name in sorted(_names(hooks)):
            if not name.endswith(SAMPLE) and HELD not in name:
                _put_aside(hooks, name)
                yield f"hooks/{name}"


def _is_of_worktree(folder: int, place: Path) -> bool:
    return place.parent.name == "worktrees" and _text(folder, "commondir").strip() == OF_WORKTREE


def _settings(folder: int, name: str) -> Iterator[str]:
    text = _text(folder, name)
    harmless = "".join(harmless_lines(text))
    if harmless == text:
        return
    _put_aside(folder, name)
    fresh = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder)
    with os.fdopen(fresh, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(harmless)
    yield name


def harmless_lines(text: str) -> Iterator[str]:
    """The lines of settings that run nothing. What is not understood is left out."""
    known: frozenset[str] | None = None
    for line in text.splitlines(keepends=True):
        if section := SECTION.fullmatch(line):
            known = HARMLESS.get(section[1].lower())
            if known is not None:
                yield line
        elif line.lstrip().startswith("["):
            known = None
        elif known is not None and _is_harmless(line, known):
            yield line


def _is_harmless(line: str, known: frozenset[str]) -> bool:
    setting = SETTING.fullmatch(line.rstrip("\r\n"))
    return setting is not None and setting[1].lower() in known and not ELSEWHERE.search(setting[2] or "")


def _text(folder: int, name: str) -> str:
    with (
        _opened(folder, name, os.O_NONBLOCK) as number,
        open(number, encoding="utf-8", errors="surrogateescape", newline="", closefd=False) as file,
    ):
        return file.read(LARGEST)


def _put_aside(folder: int, name: str) -> None:
    """Under another name beside it; a name that is taken is not given twice."""
    taken = _names(folder)
    number = next(number for number in count() if f"{name}{HELD}{_numbered(number)}" not in taken)
    os.rename(name, f"{name}{HELD}{_numbered(number)}", src_dir_fd=folder, dst_dir_fd=folder)


def _names(folder: int) -> set[str]:
    with os.scandir(folder) as entries:
        return {entry.name for entry in entries}


def _numbered(number: int) -> str:
    return f"-{number}" if number else ""


@contextmanager
def folder_in(root: Path, place: Path) -> Iterator[int]:
    """A folder below another one, open, and reached without a link on the way."""
    number = os.open(root, os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in place.relative_to(root).parts:
            inner = os.open(name, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=number)
            os.close(number)
            number = inner
        yield number
    finally:
        os.close(number)


@contextmanager
def _opened(folder: int, name: str, flags: int) -> Iterator[int]:
    number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=folder)
    try:
        yield number
    finally:
        os.close(number)
