"""Where the log is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.app.settings import home_folder
from greenroom.core.base.errors import WorldFault


def test_what_is_given_wins_over_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREENROOM_HOME", str(tmp_path / "named"))
    assert home_folder() == tmp_path / "named"
    assert home_folder(tmp_path / "given") == tmp_path / "given"
    monkeypatch.setenv("GREENROOM_HOME", " ")
    with pytest.raises(WorldFault, match="set but empty"):
        home_folder()


def test_a_folder_that_nobody_can_find_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorldFault, match="names a person whose folder is not known here"):
        home_folder(Path("~nobody-of-this-name/x"))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(WorldFault, match="The current folder is gone"):
        home_folder(Path("here"))
