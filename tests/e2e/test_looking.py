"""Commands that only look: they make nothing, they change nothing, and a folder that cannot be written is enough."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.storage.read_only import make_read_only, make_writable
from tests.e2e.terminal import Running, contents, greenroom

IDS = ("show", "events", "replay", "pause", "resume", "cancel", "fork", "forget")


@pytest.mark.parametrize("words", ["tasks", "du", "gc", "doctor", "doctor --accept-loss"])
def test_a_home_that_is_not_there_is_empty_and_is_not_made(tmp_path: Path, words: str) -> None:
    home = tmp_path / "a" / "home"
    ended = greenroom(home, *words.split())
    assert ended.code == 0
    told = greenroom(home, *words.split(), "--output-format", "json").json
    assert (told["type"], told["exit_code"]) == ("result", 0)
    assert not (tmp_path / "a").exists()


def test_where_nothing_ran_that_is_said(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert greenroom(home, "tasks").err == f"Nothing has run in {home} yet. Try: greenroom demo\n"
    assert greenroom(home, "tasks", "--output-format", "json").json["tasks"] == []
    assert greenroom(home, "du").out == f"0 B in {home}\n"
    assert greenroom(home, "du", "--output-format", "json").json["teams"] == []
    assert "none yet: the first team that runs makes it" in greenroom(home, "doctor").out


@pytest.mark.parametrize("command", IDS)
def test_an_id_where_nothing_ran_is_unknown_and_nothing_is_made(tmp_path: Path, command: str) -> None:
    ended = greenroom(tmp_path / "home", command, "last")
    assert ended.code == 2
    assert ended.err == "Error: There is no team 'last': nothing has run here yet. Try `greenroom demo`.\n"
    assert not (tmp_path / "home").exists()


@pytest.fixture
def read_only(home: Path) -> Iterator[Path]:
    """A home with one team that cannot be written any more."""
    make_read_only(home)
    try:
        yield home
    finally:
        make_writable(home)


def test_a_read_only_home_is_looked_at(read_only: Path) -> None:
    before = contents(read_only)
    for words in (("tasks",), ("show", "last"), ("events", "last"), ("replay", "last", "--at", "20"), ("du",)):
        ended = greenroom(read_only, *words)
        assert (ended.code, "Error" in ended.err) == (0, False), words
        assert ended.out
    assert "✓ task t1 finished" in greenroom(read_only, "replay", "last").out
    doctor = greenroom(read_only, "doctor")
    assert doctor.code == 0
    assert "read-only" in doctor.out
    assert "sound, schema" in doctor.out
    assert contents(read_only) == before


def test_a_read_only_home_is_not_changed_and_that_is_said(read_only: Path) -> None:
    before = contents(read_only)
    for words in (
        ("demo", "--team", "--pace", "0"),
        ("fork", "last"),
        ("forget", "last", "--yes"),
        ("gc",),
        ("resume", "last"),
    ):
        ended = greenroom(read_only, *words)
        assert ended.code == 3, words
        assert "is read-only. It can be looked at; to change something" in ended.err
        assert str(read_only) in ended.err
    assert contents(read_only) == before


def test_looking_does_not_wait_for_who_runs(tmp_path: Path) -> None:
    with Running(tmp_path, "demo", "--team", "--pace", "5") as first:
        first.until("takes 'draft'")
        assert f":{first.pid}:" in greenroom(tmp_path, "tasks").out
        assert "● draft" in greenroom(tmp_path, "show", "last").out


@pytest.mark.parametrize("word", ["", " "])
def test_a_home_without_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.chdir(tmp_path)
    ended = greenroom(tmp_path / "home", "--home", word, "tasks")
    assert ended.code == 2
    assert "Invalid value for '--home': it is empty. Name a folder, or leave the option out." in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["tasks", "demo", "doctor"])
def test_a_variable_without_a_value_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    ended = greenroom(tmp_path, command, GREENROOM_HOME="")
    assert ended.code == 3
    assert ended.err == ("Error: $GREENROOM_HOME is set but empty. Name a folder, or unset it for your data folder.\n")
    assert list(tmp_path.iterdir()) == []


def test_a_person_who_is_not_known_has_no_home(tmp_path: Path) -> None:
    ended = greenroom(tmp_path, "--home", "~nobody-of-that-name/x", "tasks")
    assert ended.code == 3
    assert "'~nobody-of-that-name/x' names a person whose folder is not known here. Write it out." in ended.err


def test_a_current_folder_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()
    ended = greenroom(tmp_path, "--home", "below", "tasks", cwd=".")
    assert ended.code == 3
    assert "Error: The current folder is gone, so nobody knows where 'below' is." in ended.err
    assert greenroom(tmp_path, "tasks").code == 0


def test_following_what_nobody_runs_says_how_it_goes_on(tmp_path: Path) -> None:
    assert greenroom(tmp_path, "demo", "--team", "--ask", "--pace", "0").code == 6
    with Running(tmp_path, "events", "last", "--follow") as follower:
        assert "greenroom resume " in follower.until("Nobody runs it just now")
        follower.until("ApprovalRequested", stream="out")
        follower.send(signal.SIGINT)
        ended = follower.end(timeout=10)
    assert ended.code == 130


def test_a_task_has_no_log_of_its_own_and_that_is_said(home: Path) -> None:
    whole = greenroom(home, "events", "last").out
    some = greenroom(home, "events", "last/t1")
    assert some.out == whole
    assert "all of " in some.err
    assert "all of " in greenroom(home, "replay", "last/t1").err
    forked = greenroom(home, "fork", "last/t1")
    assert forked.code == 2
    assert "Only whole teams are forked." in forked.err
