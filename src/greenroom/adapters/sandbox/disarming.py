"""Repositories of git made harmless: what would run a program is put aside, nothing is deleted.

A command may make repositories, and has to be able to: tests do, and so does `git clone`. But nothing that it wrote
there may run when a person, or the house, asks git something outside of the walls.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.opening import LOOK, OWNER, folder_in

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
LINK: Final = "gitdir:"
LARGEST: Final = 1024 * 1024
LONGEST: Final = 4096


def disarm(root: Path, place: Path, names: Iterable[str] = PROTECTED) -> list[str]:
    """Put aside what could run something, of these names in the folder of a repository; returns what it was.

    Other commands may still run, and change what is where while we look: so each step goes from an open folder to what
    is in it, never over a link, and `OSError` says that somebody was quicker.
    """
    with folder_in(root, place) as folder:
        return [f"{place}/{one}" for name in names for one in _disarmed(folder, name, place)]


def unmake(root: Path, place: Path) -> None:
    """What cannot be made harmless is no repository any more: git finds none without a HEAD, nor by another name."""
    with suppress(OSError), folder_in(root, place) as folder:
        put_aside(folder, "HEAD")
        return
    if place != root:
        with suppress(OSError), folder_in(root, place.parent) as above:
            put_aside(above, place.name)


def put_sign_aside(root: Path, sign: Path) -> None:
    """Something called `.git` that is no folder, and leads where nobody sees what it leads to."""
    with suppress(OSError), folder_in(root, sign.parent) as above:
        put_aside(above, sign.name)


def lead(sign: Path) -> str:
    """What a sign says, and where that really is; other than anything else for what cannot be understood."""
    with suppress(OSError, ValueError, RuntimeError):
        kind = os.lstat(sign)
        if stat.S_ISREG(kind.st_mode) and kind.st_size <= LONGEST:
            with sign.open("rb") as file:
                text = os.fsdecode(file.read(LONGEST))
            if text.startswith(LINK):
                return f"{LINK}{(sign.parent / text.removeprefix(LINK).strip()).resolve()}"
        if stat.S_ISLNK(kind.st_mode):
            return f"-> {sign.readlink()} {sign.resolve()}"
    return ""


def leads_inside(root: Path, told: str) -> bool:
    """Whether a sign is one as git itself makes them, to a folder in the workspace, where all is looked at."""
    return told.startswith(LINK) and Path(told.removeprefix(LINK)).is_relative_to(root)


def _disarmed(folder: int, name: str, place: Path) -> Iterator[str]:
    try:
        kind = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    alone = stat.S_ISREG(kind.st_mode) and kind.st_nlink == 1
    match name:
        case "hooks" if stat.S_ISDIR(kind.st_mode):
            yield from _hooks(folder, closed=kind.st_mode & LOOK != LOOK)
        case "config" | "config.worktree" if stat.S_ISREG(kind.st_mode):
            yield from _settings(folder, name, alone=alone)
        case "commondir" if alone and _is_of_worktree(folder, place):
            return
        case "gitdir" if alone:
            return  # it only says where the files of a worktree are
        case _:
            put_aside(folder, name)
            yield name


def _hooks(folder: int, *, closed: bool) -> Iterator[str]:
    if closed:
        put_aside(folder, "hooks")
        yield "hooks"
        return
    with _opened(folder, "hooks", os.O_DIRECTORY) as hooks:
        for name in sorted(_names(hooks)):
            if not name.endswith(SAMPLE) and HELD not in name:
                put_aside(hooks, name)
                yield f"hooks/{name}"


def _is_of_worktree(folder: int, place: Path) -> bool:
    return place.parent.name == "worktrees" and (_text(folder, "commondir") or "").strip() == OF_WORKTREE


def _settings(folder: int, name: str, *, alone: bool) -> Iterator[str]:
    """What is too long to be looked at has nothing harmless in it. A file with a second name may be changed by that."""
    text = _text(folder, name)
    harmless = "".join(harmless_lines(text or ""))
    if harmless == text and alone:
        return
    put_aside(folder, name)
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


def _text(folder: int, name: str) -> str | None:
    """All of a file; None if it is too long, or nobody may read it."""
    with (
        suppress(PermissionError),
        _opened(folder, name, os.O_NONBLOCK) as number,
        open(number, encoding="utf-8", errors="surrogateescape", newline="", closefd=False) as file,
    ):
        text = file.read(LARGEST + 1)
        return text if len(text) <= LARGEST else None
    return None


def put_aside(folder: int, name: str) -> None:
    """Under another name beside it; a name that is taken is not given twice."""
    mode = os.fstat(folder).st_mode
    if mode & OWNER != OWNER and os.fstat(folder).st_uid == os.geteuid():
        os.fchmod(folder, stat.S_IMODE(mode) | OWNER)
    taken = _names(folder)
    number = next(number for number in count() if f"{name}{HELD}{_numbered(number)}" not in taken)
    os.rename(name, f"{name}{HELD}{_numbered(number)}", src_dir_fd=folder, dst_dir_fd=folder)


def _names(folder: int) -> set[str]:
    with os.scandir(folder) as entries:
        return {entry.name for entry in entries}


def _numbered(number: int) -> str:
    return f"-{number}" if number else ""


@contextmanager
def _opened(folder: int, name: str, flags: int) -> Iterator[int]:
    number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=folder)
    try:
        yield number
    finally:
        os.close(number)
