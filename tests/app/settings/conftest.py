from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.settings.places import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return a home with a git project in it."""
    home = tmp_path / "home"
    project = home / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    return Place(home=home, project=project)
