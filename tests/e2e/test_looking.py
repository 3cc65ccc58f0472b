"""Commands that only look: they make nothing, they change nothing, and a folder that cannot be written is enough."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.storage.read_only import make_read_only, make_writable
from tests.e2e.terminal import contents, greenroom

IDS = ("show", "events", "replay", "pause", "resume", "cancel", "fork", "forget")


@pytest.mark.parametrize("words", ["runs", "du", "gc", "doctor", "doctor --accept-loss"])
def test_a_home_that_is_not_there_is_empty_and_is_not_made(tmp_path: Path, words: str) -> None:
    home = tmp_path / "a" / "home"
    ended = greenroom(home, *words.split())
    assert ended.code == 0
    told = greenroom(home, *words.split(), "--output-format", "json").json
    assert (told["type"], told["exit_code"]) == ("result", 0)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("command", IDS)
def test_an_id_where_nothing_ran_is_unknown_and_nothing_is_made(tmp_path: Path, command: str) -> None:
    ended = greenroom(tmp_path / "home", command, "last")
    assert ended.code == 2
    assert ended.err == "Error: There is no team 'last': nothing has run here yet. Start a run with `greenroom run`.\n"
    assert not (tmp_path / "home").exists()


@pytest.fixture
def read_only(home: Path) -> Iterator[Path]:
    """A home with one team that cannot be written any more."""
    make_read_only(home)
    try:
        yield home
    finally:
        make_writable(home)


def test_a_read_only_home_is_not_changed_and_that_is_said(read_only: Path) -> None:
    before = contents(read_only)
    for words in (
        ("demo", "--org", "--pace", "0"),
        ("fork", "last"),
        ("forget", "last", "--yes"),
        ("gc",),
        ("resume", "last"),
    ):
        ended = greenroom(read_only, *words)
        assert ended.code == 3, words
        assert "is read-only. You can still read it. To change it" in ended.err
        assert str(read_only) in ended.err
    assert contents(read_only) == before


def test_a_current_folder_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()
    ended = greenroom(tmp_path, "--home", "below", "runs", cwd=".")
    assert ended.code == 3
    assert "Error: The current folder is gone, so 'below' cannot be found." in ended.err
    assert "Error: The current folder is gone. " in greenroom(tmp_path, "agents", "list", cwd=".").err
    assert greenroom(tmp_path, "runs").code == 0
