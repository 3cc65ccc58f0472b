from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the config folder of a person without agents."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return tmp_path / "config" / "greenroom"


@pytest.fixture
def project(tmp_path: Path, config: Path) -> Path:
    """Return an empty repository."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"
