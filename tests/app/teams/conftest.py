"""The repository of a shop, and a Greenroom that keeps everything beside it."""

from pathlib import Path

import pytest

from tests.app.teams.play import make_environment, make_repository


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that is the current folder."""
    for name, value in make_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    make_repository(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"
