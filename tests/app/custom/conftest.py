from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.custom.bench import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return a person and a project without custom tools."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return Place(config=tmp_path / "config" / "greenroom", root=tmp_path / "project", packages=tmp_path / "site")
