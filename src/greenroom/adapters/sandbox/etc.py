"""The /etc of commands: what programs need of the machine's, who they are themselves, and nothing of others."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

from greenroom.adapters.sandbox.ground import ETC, NAME, Identity

ETC_FOLDER: Final = "/etc"
ENTERED: Final = stat.S_IROTH | stat.S_IXOTH
"""Others may list a folder, and reach what is in it."""


def furnish(folder: Path, who: Identity, home: Path, *, machine: str = ETC_FOLDER) -> tuple[str, ...]:
    """Make it in `folder`, for this one; returns which folders in it are empty, and to be seen as the machine has them.

    Of a folder all of which everybody may read, nothing is copied: a thousand links and certificates are a fifth of a
    second, for which every command would wait that is the first behind its walls.
    """
    folder.mkdir(mode=0o755)
    seen: list[str] = []
    with _opened(machine) as there, _opened(str(folder)) as here:
        for name in ETC:
            seen.extend(_taken(PurePosixPath(name), there, here))
    name = NAME if who.changes else _name(who.uid)
    people = f"{name}:x:{who.uid}:{who.gid}::{home}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
    (folder / "passwd").write_text(people, encoding="utf-8")
    (folder / "group").write_text(f"{name}:x:{who.gid}:\nnogroup:x:65534:\n", encoding="utf-8")
    (folder / "hosts").write_text("127.0.0.1 localhost greenroom\n::1 localhost\n", encoding="utf-8")
    return tuple(seen)


def _name(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return NAME


@contextmanager
def _opened(folder: str, within: int | None = None) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)
    try:
        yield number
    finally:
        os.close(number)


def _taken(path: PurePosixPath, there: int, here: int) -> Iterator[str]:
    """What everybody may read. Links stay links: what they lead to is seen, or nobody's business."""
    name = path.name
    with suppress(OSError):
        kind = os.stat(name, dir_fd=there, follow_symlinks=False).st_mode
        if stat.S_ISLNK(kind):
            os.symlink(os.readlink(name, dir_fd=there), name, dir_fd=here)
        elif stat.S_ISDIR(kind) and _others(kind, ENTERED):
            yield from _taken_folder(path, there, here)
        elif stat.S_ISREG(kind) and _others(kind, stat.S_IROTH):
            _copied(name, there, here)


def _taken_folder(path: PurePosixPath, there: int, here: int) -> Iterator[str]:
    os.mkdir(path.name, dir_fd=here)
    with _opened(path.name, there) as source, _opened(path.name, here) as target:
        if _is_everybodys(source):
            yield str(path)
            return
        for one in os.scandir(source):
            yield from _taken(path / one.name, source, target)


def _is_everybodys(folder: int) -> bool:
    """Whether others may read it, and all that is in it."""
    if not _others(os.fstat(folder).st_mode, ENTERED):
        return False
    with os.scandir(folder) as inside:
        return all(_is_open(one, folder) for one in inside)


def _is_open(one: os.DirEntry[str], folder: int) -> bool:
    if one.is_symlink():
        return True
    if one.is_dir():
        with _opened(one.name, folder) as inner:
            return _is_everybodys(inner)
    return one.is_file() and _others(one.stat(follow_symlinks=False).st_mode, stat.S_IROTH)


def _others(mode: int, rights: int) -> bool:
    return mode & rights == rights


def _copied(name: str, there: int, here: int) -> None:
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=there)
    with os.fdopen(source, "rb") as content:
        target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=here)
        with os.fdopen(target, "wb") as copy:
            shutil.copyfileobj(content, copy)


def readable_by_all(place: Path) -> Iterator[Path]:
    """What of a file or folder everybody may read, as few paths as possible."""
    with suppress(OSError):
        kind = place.stat().st_mode
        if stat.S_ISDIR(kind) and _others(kind, ENTERED):
            with _opened(str(place.resolve())) as folder:
                whole = _is_everybodys(folder)
            for one in [place] if whole else sorted(place.iterdir()):
                yield from [one] if whole else readable_by_all(one)
        elif stat.S_ISREG(kind) and _others(kind, stat.S_IROTH):
            yield place
