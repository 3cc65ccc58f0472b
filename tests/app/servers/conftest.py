from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.servers.places import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return a home, a workspace in it, and a folder whose name is unique to this test."""
    home = tmp_path / "home"
    root, folder = home / "workspace", tmp_path / f"probe-{tmp_path.parent.name}-{tmp_path.name}"
    for one in (root / ".git", folder):
        one.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    return Place(home=home, root=root, folder=folder)
