"""Small real projects and their checks: real files, real commands, no sandbox."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.app.runs.checks import FolderReader
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check, CheckObserver, CheckRun
from greenroom.core.ports.executor import LiveEvent
from greenroom.core.state.step import PreparedEffect
from greenroom.runs.checker import ProjectChecks
from greenroom.runs.checkout import Checkout, OpenCheckout
from greenroom.runs.discovery import find_checks

RUN = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable}"
"""Disable our own plugins, which would only slow down the checks."""

PYTEST = Check(name="pytest", line=f"{RUN} -m pytest", kind="test", why="pyproject.toml sets up pytest.")
NEVER = ("__pycache__", ".pytest_cache")


class Shelf:
    """Stores what checks leave, in memory."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.shown = ""
        self.prepared: list[PreparedEffect] = []

    async def prepare(self, *prepared: PreparedEffect) -> None:
        self.prepared += prepared

    async def keep(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self.blobs[name] = data
        return name

    async def fetch(self, name: str) -> bytes:
        return self.blobs[name]

    def show(self, event: LiveEvent) -> None:
        self.shown += getattr(event, "text", "")


def written(root: Path, files: dict[str, str]) -> Path:
    """Write these files. An empty file named `-x` deletes `x`."""
    for name, text in files.items():
        if name.startswith("-"):
            (root / name[1:]).unlink()
            continue
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def lies_in(root: Path) -> set[str]:
    """Return the names of all files and folders."""
    return {path.name for path in root.rglob("*")}


def name_of(root: Path) -> str:
    """Return a digest of the whole folder."""
    name = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and not any(part in NEVER for part in path.parts):
            name.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return name.hexdigest()


def opened_over(root: Path) -> OpenCheckout:
    """Open copies of a folder for commands, in place of worktrees."""

    @asynccontextmanager
    async def opened(paths: Sequence[str], _: CheckObserver) -> AsyncIterator[Checkout]:
        assert not paths, "only git can put files back"
        with TemporaryDirectory() as folder:
            copy = Path(shutil.copytree(root, Path(folder, "tree"), symlinks=True))
            commands = LocalCommands(copy)
            try:
                yield Checkout(copy, root, name_of(root), commands)
            finally:
                commands.close()

    return opened


def checker(root: Path, *checks: Check, base: Mapping[str, CheckRun] | None = None) -> ProjectChecks:
    """Return the checks of a folder: the given ones, or those found, in the current Python."""
    return ProjectChecks(checks or found_here(root), opened_over(root), base=base)


def found_here(root: Path) -> tuple[Check, ...]:
    """Return the checks found, run by a Python that has pytest."""
    every = find_checks(FolderReader(root))
    return tuple(evolve(check, line=check.line.replace("python3 ", f"{RUN} ")) for check in every)
