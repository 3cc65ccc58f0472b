"""A workspace that users other than root can reach: pytest's own folders are closed to others."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.sandbox.walls import git


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="greenroom-test-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def root(open_folder: Path) -> Path:
    found = open_folder / "work"
    found.mkdir()
    return found


@pytest.fixture
def repository(root: Path) -> Path:
    git(root, "init", "-q")
    (root / "file").write_text("x")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root
