"""A home in which the demo ran once, copied for every test that needs one."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.terminal import Ended, greenroom


@pytest.fixture(scope="session")
def ran_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """Return a read-only home in which the demo ran, and the demo's output."""
    home = tmp_path_factory.mktemp("ran")
    ended = greenroom(home, "demo", "--org", "--pace", "0")
    assert ended.code == 0
    return home, ended


@pytest.fixture
def home(ran_once: tuple[Path, Ended], tmp_path: Path) -> Path:
    """Return a copy of that home, with one finished team."""
    copy = tmp_path / "home"
    shutil.copytree(ran_once[0], copy)
    return copy
