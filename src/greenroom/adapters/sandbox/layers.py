"""Show outside folders in a workspace without mounts: by links or copies."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.ports.sandbox import SandboxMount

MAX_COPY_BYTES: Final = 20 * 1024 * 1024
"""Largest folder in bytes that is copied where overlays are missing. A larger folder is read-only."""

NO_OVERLAY_FILESYSTEMS: Final = (
    "overlay",
    "nfs",
    "9p",
    "fuse",
    "cifs",
    "smb",
    "virtiofs",
    "vfat",
    "exfat",
    "ntfs",
    "ecryptfs",
)
"""File systems that cannot store the changes of an overlay."""


NODE_MODULES: Final = "node_modules"


class FolderLinks:
    """Ignored folders in a worktree without mounts, as long as commands may run there.

    A virtual environment becomes a link. `node_modules` becomes a folder of links, so that tools can keep a cache in
    it. Any other folder is copied if it is small, because commands write there. A large folder is left out.
    """

    def __init__(self, root: Path, mounts: Iterable[SandboxMount]) -> None:
        self._created: list[tuple[Path, str]] = []
        for mount in mounts:
            place, source = root / mount.at, Path(mount.source)
            with suppress(OSError):  # a file occupies the path of a parent folder
                place.parent.mkdir(parents=True, exist_ok=True)
                if source.name == NODE_MODULES:
                    self._link_entries(place, source, mount.hidden)
                elif (source / "pyvenv.cfg").is_file():
                    self._link(place, str(source))
                elif not os.path.lexists(place) and _measure_size(source) <= MAX_COPY_BYTES:
                    shutil.copytree(source, place, symlinks=True, ignore=_make_copy_filter(source, mount.hidden))

    def _link_entries(self, place: Path, source: Path, hidden: Iterable[str]) -> None:
        place.mkdir(exist_ok=True)
        for entry in source.iterdir():
            if entry.name not in (".cache", *hidden):
                self._link(place / entry.name, str(entry))

    def _link(self, place: Path, source: str) -> None:
        if not os.path.lexists(place):
            place.symlink_to(source)
        self._created.append((place, source))

    def close(self) -> None:
        """Remove the links. Files that a command put in their place stay."""
        for place, source in self._created:
            with suppress(OSError):
                if str(place.readlink()) == source:
                    place.unlink()
        self._created.clear()


def find_editable_paths(root: Path, mounts: Iterable[SandboxMount]) -> Iterator[str]:
    """Yield the folders below the worktree `root` that stand for editable installs in a person's virtual environment.

    The `.pth` files of such an install name folders of the person, which commands cannot read. Not the root itself: in
    PYTHONPATH its files would come before the standard library.
    """
    for mount in mounts:
        owner = Path(mount.source.removesuffix(f"/{mount.at}"))
        files = sorted(Path(mount.source).glob("lib/python*/site-packages/*.pth"))
        lines = (line for file in files for line in file.read_text(encoding="utf-8", errors="replace").splitlines())
        yield from (str(root / Path(line).relative_to(owner)) for line in lines if owner in Path(line).parents)


def _make_copy_filter(root: Path, hidden: Iterable[str]) -> Callable[[str, list[str]], set[str]]:
    left_out = {root / name for name in hidden}
    return lambda folder, names: {name for name in names if Path(folder, name) in left_out}


def open_layer(mount: SandboxMount) -> Path:
    """Return the folder of a layer, with the subfolders that an overlay needs."""
    layer = Path(mount.layer)
    for name in ("upper", "work"):
        (layer / name).mkdir(parents=True, exist_ok=True)
    return layer


def copy_small_folder(mount: SandboxMount) -> Path | None:
    """Copy a small folder into its layer, once; return None for a large folder."""
    target = Path(mount.layer) / "copy"
    if not target.exists():
        if _measure_size(Path(mount.source)) > MAX_COPY_BYTES:
            return None
        draft = target.with_name(f"draft-{os.getpid()}")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(mount.source, draft, symlinks=True)
        for name in mount.hidden:
            (draft / name).unlink(missing_ok=True)
            (draft / name).touch()
        draft.rename(target)
    return target


def list_readable_parts(folder: Path, hidden: Iterable[str]) -> Iterator[Path]:
    """Yield the parts of a folder without the hidden files, as few paths as possible."""
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
            yield from list_readable_parts(entry, below[entry.name])


def can_keep_overlay(place: Path) -> bool:
    """Return whether the file system of this folder can store the changes of an overlay."""
    with suppress(OSError, ValueError):
        device = place.stat().st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.split(" ")[2] == number:
                return not line.partition(" - ")[2].startswith(NO_OVERLAY_FILESYSTEMS)
    return True


def _measure_size(folder: Path) -> int:
    """Return the size in bytes. Counting stops above `MAX_COPY_BYTES`."""
    size = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                size += Path(place, name).lstat().st_size
        if size > MAX_COPY_BYTES:
            break
    return size
