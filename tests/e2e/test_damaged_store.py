"""A damaged database is refused by every command that writes, and what is readable of it can be copied."""

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.provider import Beside, provider, reached
from tests.e2e.terminal import contents, greenroom
from tests.fake_openai import Answer

PAGE = 512
RUNS = 5
NOISE = random.Random(7).randbytes(8 * PAGE)
WRITING = [
    ("ask", "Why?"),
    ("resume", "last"),
    ("fork", "last"),
    ("rewind", "last", "--to", "1"),
    ("forget", "last", "--yes"),
    ("undo", "last"),
    ("discard", "last"),
    ("org", "start", "x"),
    ("send", "last", "Hello."),
    ("gc",),
    ("pause", "last"),
    ("workspaces", "clean"),
]


def spoil_middle(data: bytearray) -> None:
    start = len(data) // PAGE // 2 * PAGE
    data[start : start + PAGE] = NOISE[:PAGE]


def spoil_header(data: bytearray) -> None:
    data[:100] = NOISE[:100]


def zero_first_page(data: bytearray) -> None:
    data[:PAGE] = bytes(PAGE)


def cut(data: bytearray) -> None:
    del data[len(data) // 3 * 2 + 100 :]


SPOILS = (spoil_middle, spoil_header, zero_first_page, cut)


@pytest.fixture(scope="module")
def fake() -> Iterator[Beside]:
    with provider(Answer(text="Because. " * 200)) as server:
        yield server


@pytest.fixture(scope="module")
def sound(fake: Beside, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("sound")
    for number in range(RUNS):
        assert greenroom(home, "ask", f"Why {number}?", **reached(fake)).code == 0
    return home


@pytest.mark.parametrize("spoil", SPOILS)
def test_every_command_that_writes_refuses_a_damaged_database_and_names_the_way_out(
    tmp_path: Path, sound: Path, fake: Beside, spoil: Callable[[bytearray], None]
) -> None:
    home = _damage(sound, tmp_path, spoil)
    before, asked = contents(home), len(fake.requests)
    for words in WRITING:
        ended = greenroom(home, *words, **reached(fake))
        assert ended.code == 3, (words, ended)
        assert ended.err.count("\n") == 1
        assert "greenroom doctor --copy-to FOLDER" in ended.err
        assert contents(home) == before, words
    assert len(fake.requests) == asked, "no model was asked for what cannot be kept"


def _change_event(home: Path, change: str) -> None:
    with closing(sqlite3.connect(home / "greenroom.db")) as db:
        assert db.execute(f"{change} WHERE id = (SELECT id FROM events WHERE type = 'StepEnded' LIMIT 1)").rowcount == 1
        db.commit()


def test_a_missing_event_is_refused_like_a_damaged_page(tmp_path: Path, sound: Path, fake: Beside) -> None:
    home = _damage(sound, tmp_path, lambda _: None)
    _change_event(home, "DELETE FROM events")
    before = contents(home)
    for words in (*WRITING, ("cost",)):
        ended = greenroom(home, *words, **reached(fake))
        assert (ended.code, ended.out, ended.err.count("\n")) == (3, "", 1), (words, ended)
        assert "should have 13 events: it has 12, and 0 beyond" in ended.err
        assert "greenroom doctor --copy-to FOLDER" in ended.err
        assert contents(home) == before, words
    copy = tmp_path / "copy"
    assert f"Copied {RUNS - 1} of {RUNS} runs whole" in greenroom(home, "doctor", "--copy-to", str(copy)).out
    assert greenroom(copy, "cost").out.count("Why") >= RUNS - 1
    assert greenroom(copy, "ask", "Now?", **reached(fake)).code == 0


def test_a_cost_without_an_unreadable_run_is_not_given_as_the_whole(tmp_path: Path, sound: Path) -> None:
    home = _damage(sound, tmp_path, lambda _: None)
    _change_event(home, "UPDATE events SET data = x'ff00'")
    ended = greenroom(home, "cost", "--output-format", "json")
    assert (ended.code, ended.json["status"], ended.json["calls"]) == (3, "damaged", RUNS - 1)
    assert "cannot be read" in ended.err


@pytest.mark.parametrize("spoil", SPOILS)
def test_what_is_readable_is_copied_and_works(
    tmp_path: Path, sound: Path, fake: Beside, spoil: Callable[[bytearray], None]
) -> None:
    home, copy = _damage(sound, tmp_path, spoil), tmp_path / "copy"
    before = contents(home)
    copied = greenroom(home, "doctor", "--copy-to", str(copy))
    is_whole = f"Copied {RUNS} of {RUNS} runs" in copied.out and "missing" not in copied.out
    assert copied.code == (0 if is_whole else 3), copied
    assert contents(home) == before
    assert f"of {RUNS} runs whole to {copy}" in copied.out
    assert not list(copy.glob("damaged*"))
    assert "intact" in greenroom(copy, "doctor").out
    runs = greenroom(copy, "runs").out
    assert 2 <= runs.count("Why") <= RUNS
    assert greenroom(copy, "ask", "Now?", **reached(fake)).code == 0
    again = greenroom(home, "doctor", "--copy-to", str(copy))
    assert (again.code, "is not an empty folder" in again.err) == (3, True)


def test_a_partial_copy_is_told_with_its_numbers(tmp_path: Path, sound: Path) -> None:
    home = _damage(sound, tmp_path, cut)
    copied = greenroom(home, "doctor", "--copy-to", str(tmp_path / "copy"), "--output-format", "json")
    told = copied.json
    assert (copied.code, told["status"], told["exit_code"], told["runs"]) == (3, "partial", 3, RUNS)
    whole = told["whole_runs"]
    assert isinstance(whole, int)
    assert 0 < whole < RUNS
    copied = greenroom(sound, "doctor", "--copy-to", str(tmp_path / "whole"), "--output-format", "json")
    assert (copied.code, copied.json["status"], copied.json["whole_runs"]) == (0, "ok", RUNS)


def test_a_reading_command_shows_what_is_readable(tmp_path: Path, sound: Path) -> None:
    for spoil in (spoil_middle, cut):
        home = _damage(sound, tmp_path / spoil.__name__, spoil)
        runs = greenroom(home, "runs")
        assert runs.code == 0
        assert "finished" in runs.out
        assert "damaged" in runs.out


def test_a_file_without_a_run_is_not_copied(tmp_path: Path, sound: Path) -> None:
    def replace(data: bytearray) -> None:
        data[:] = b"no database at all\n" * 500

    home = _damage(sound, tmp_path, replace)
    ended = greenroom(home, "doctor", "--copy-to", str(tmp_path / "copy"))
    assert (ended.code, f"No run in {home / 'greenroom.db'} can be read" in ended.err) == (3, True)
    assert not (tmp_path / "copy").exists()


def test_garbage_in_an_empty_wal_loses_nothing(tmp_path: Path, sound: Path, fake: Beside) -> None:
    home = _damage(sound, tmp_path, lambda data: None)
    (home / "greenroom.db-wal").write_bytes(NOISE)
    assert greenroom(home, "ask", "Now?", **reached(fake)).code == 0
    assert greenroom(home, "runs").out.count("finished") == RUNS + 1


def _damage(sound: Path, folder: Path, spoil: Callable[[bytearray], None]) -> Path:
    home = folder / "home"
    shutil.copytree(sound, home)
    data = bytearray((home / "greenroom.db").read_bytes())
    spoil(data)
    (home / "greenroom.db").write_bytes(data)
    return home
