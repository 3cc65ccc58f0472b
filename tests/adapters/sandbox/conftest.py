"""A workspace that somebody else than root can reach: pytest's own folders are closed to others."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="greenroom-test-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        yield folder
