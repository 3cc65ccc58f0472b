from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.agents.folders import Folders


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """Return a home with a git project in it."""
    home = tmp_path / "home"
    project = home / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return Folders(home=home, project=project)
