"""A home in which the demo ran once, copied for every test that wants one."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.terminal import greenroom


@pytest.fixture(scope="session")
def _ran_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("ran")
    assert greenroom(home, "demo", "--pace", "0").code == 0
    return home


@pytest.fixture
def home(_ran_once: Path, tmp_path: Path) -> Path:
    """A home of one's own, with one finished team in it."""
    copy = tmp_path / "home"
    shutil.copytree(_ran_once, copy)
    return copy
