"""Small real projects and what runs their checks: real files, real commands, no sandbox."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from greenroom.adapters.processes.plain import PlainCommands
from greenroom.app.runs.checks import FolderLook
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check, Ran, Witness
from greenroom.core.ports.executor import Live
from greenroom.core.state.step import Prepared
from greenroom.runs.checker import ProjectChecks
from greenroom.runs.checkout import Checkout, Opened
from greenroom.runs.discover import find_checks

RUN = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable}"
"""What is installed here for our own tests would only make theirs slow."""

PYTEST = Check(name="pytest", line=f"{RUN} -m pytest", kind="test", why="pyproject.toml sets up pytest.")
NEVER = ("__pycache__", ".pytest_cache")


class Shelf:
    """Keeps what checks leave, in memory."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.shown = ""
        self.prepared: list[Prepared] = []

    async def prepare(self, *prepared: Prepared) -> None:
        """Remember it."""
        self.prepared += prepared

    async def keep(self, data: bytes) -> str:
        """Keep it."""
        name = hashlib.sha256(data).hexdigest()
        self.blobs[name] = data
        return name

    async def fetch(self, name: str) -> bytes:
        """What was kept."""
        return self.blobs[name]

    def show(self, event: Live) -> None:
        """Remember it."""
        self.shown += getattr(event, "text", "")


def written(root: Path, files: dict[str, str]) -> Path:
    """These files in this folder; an empty one of the name `-x` takes `x` away."""
    for name, text in files.items():
        if name.startswith("-"):
            (root / name[1:]).unlink()
            continue
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def lies_in(root: Path) -> set[str]:
    """The names of all files and folders there."""
    return {path.name for path in root.rglob("*")}


def name_of(root: Path) -> str:
    """The name of all that lies there."""
    name = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and not any(part in NEVER for part in path.parts):
            name.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return name.hexdigest()


def opened_over(root: Path) -> Opened:
    """Copies of a folder in which commands run, as worktrees of it would be."""

    @asynccontextmanager
    async def opened(paths: Sequence[str], _: Witness) -> AsyncIterator[Checkout]:
        assert not paths, "only git can put files back"
        with TemporaryDirectory() as folder:
            copy = Path(shutil.copytree(root, Path(folder, "tree"), symlinks=True))
            commands = PlainCommands(copy)
            try:
                yield Checkout(copy, root, name_of(root), commands)
            finally:
                commands.close()

    return opened


def checker(root: Path, *checks: Check, base: Mapping[str, Ran] | None = None) -> ProjectChecks:
    """The checks of a folder: these, or those that are found, in the Python that runs this."""
    return ProjectChecks(checks or found_here(root), opened_over(root), base=base)


def found_here(root: Path) -> tuple[Check, ...]:
    """What is found, run by a Python that has pytest."""
    every = find_checks(FolderLook(root))
    return tuple(evolve(check, line=check.line.replace("python3 ", f"{RUN} ")) for check in every)
