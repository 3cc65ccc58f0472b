"""Show folders of elsewhere in a workspace where nothing can be mounted over them: by links, or by copies."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.ports.sandbox import Shown

SMALL: Final = 20 * 1024 * 1024
"""Bytes of a folder that is copied where there are no overlays; a larger one can only be read."""

NO_UPPER: Final = ("overlay", "nfs", "9p", "fuse", "cifs", "smb", "virtiofs", "vfat", "exfat", "ntfs", "ecryptfs")
"""File systems on which the kernel keeps no changes of an overlay."""


PACKAGES: Final = "node_modules"
CACHE: Final = ".cache"


class Links:
    """Ignored folders in a worktree where nothing can be mounted, for as long as commands may run there.

    A virtual environment is a link; `node_modules` is a folder of links, so that tools can keep a cache in it. Any
    other folder is copied if it is small, since commands write there, and left out if it is large.
    """

    def __init__(self, root: Path, shown: Iterable[Shown]) -> None:
        self._made: list[tuple[Path, str]] = []
        for folder in shown:
            place, source = root / folder.at, Path(folder.source)
            with suppress(OSError):  # a file in the way of a parent: there is nothing to show it in
                place.parent.mkdir(parents=True, exist_ok=True)
                if source.name == PACKAGES:
                    self._link_entries(place, source, folder.hidden)
                elif (source / "pyvenv.cfg").is_file():
                    self._link(place, str(source))
                elif not os.path.lexists(place) and _size(source) <= SMALL:
                    shutil.copytree(source, place, symlinks=True, ignore=_leave_out(source, folder.hidden))

    def _link_entries(self, place: Path, source: Path, hidden: Iterable[str]) -> None:
        place.mkdir(exist_ok=True)
        for entry in source.iterdir():
            if entry.name not in (CACHE, *hidden):
                self._link(place / entry.name, str(entry))

    def _link(self, place: Path, source: str) -> None:
        if not os.path.lexists(place):
            place.symlink_to(source)
        self._made.append((place, source))

    def close(self) -> None:
        """Take the links away; what a command has put in their place stays."""
        for place, source in self._made:
            with suppress(OSError):
                if str(place.readlink()) == source:
                    place.unlink()
        self._made.clear()


def _leave_out(root: Path, hidden: Iterable[str]) -> Callable[[str, list[str]], set[str]]:
    """Leaves these files out of a copy."""
    left_out = {root / name for name in hidden}
    return lambda folder, names: {name for name in names if Path(folder, name) in left_out}


def open_layer(shown: Shown) -> Path:
    """The folder of a layer, with what an overlay needs in it."""
    layer = Path(shown.layer)
    for name in ("upper", "work"):
        (layer / name).mkdir(parents=True, exist_ok=True)
    return layer


def copied(shown: Shown) -> Path | None:
    """A copy of a small folder in its layer, made once; None for a large one."""
    target = Path(shown.layer) / "copy"
    if not target.exists():
        if _size(Path(shown.source)) > SMALL:
            return None
        draft = target.with_name(f"draft-{os.getpid()}")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(shown.source, draft, symlinks=True)
        for name in shown.hidden:
            (draft / name).unlink(missing_ok=True)
            (draft / name).touch()
        draft.rename(target)
    return target


def readable_parts(folder: Path, hidden: Iterable[str]) -> Iterator[Path]:
    """What of a folder is left without these files: as few paths as possible."""
    names = [Path(name).parts for name in hidden]
    if not names:
        yield folder
        return
    below: dict[str, list[str]] = {}
    for first, *rest in filter(None, names):
        below.setdefault(first, []).extend([str(Path(*rest))] if rest else [])
    for entry in folder.iterdir():
        if entry.name not in below:
            yield entry
        elif below[entry.name] and not entry.is_symlink() and entry.is_dir():
            yield from readable_parts(entry, below[entry.name])


def keeps_upper(place: Path) -> bool:
    """Whether changes of an overlay can be kept in this folder, by the kind of its file system."""
    with suppress(OSError, ValueError):
        device = place.stat().st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.split(" ")[2] == number:
                return not line.partition(" - ")[2].startswith(NO_UPPER)
    return True


def _size(folder: Path) -> int:
    """Bytes in it, or a few more than are small."""
    size = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                size += Path(place, name).lstat().st_size
        if size > SMALL:
            break
    return size
