"""What must not hurt: broken stores, full disks, wrong words. A clear sentence, the right code, nothing changed."""

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from tests.disks import fill, mounted
from tests.e2e.terminal import Running, contents, greenroom

PAGE = 512


def noise(home: Path) -> None:
    data = bytearray((home / "greenroom.db").read_bytes())
    for page in range(2, len(data) // PAGE):
        data[page * PAGE : page * PAGE + 200] = os.urandom(200)
    (home / "greenroom.db").write_bytes(data)


def text(home: Path) -> None:
    (home / "greenroom.db").write_text("This is my diary.\n" * 500)


def cut(home: Path) -> None:
    (home / "greenroom.db").write_bytes((home / "greenroom.db").read_bytes()[: 2 * PAGE])


def foreign(home: Path) -> None:
    (home / "greenroom.db").unlink()
    with closing(sqlite3.connect(home / "greenroom.db")) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
        other.commit()


def newer(home: Path) -> None:
    with closing(sqlite3.connect(home / "greenroom.db")) as db:
        db.execute("UPDATE meta SET value = 99 WHERE key = 'schema'")
        db.commit()


def deleted(home: Path) -> None:
    (home / "greenroom.db").unlink()


SPOILS = [
    (noise, "is damaged"),
    (text, "is not a Greenroom database"),
    (cut, "is damaged"),
    (foreign, "another program"),
    (newer, "newer Greenroom"),
    (deleted, "has lost commits"),
]


@pytest.mark.parametrize(("spoil", "sentence"), SPOILS, ids=[spoil.__name__ for spoil, _ in SPOILS])
def test_a_store_that_cannot_be_used_is_said_and_left_alone(
    home: Path, spoil: Callable[[Path], None], sentence: str
) -> None:
    spoil(home)
    before = contents(home)
    for words in (("show", "last"), ("demo", "--org", "--pace", "0")):
        ended = greenroom(home, *words)
        assert ended.code == 3, words
        assert sentence in ended.err
        assert str(home) in ended.err
    assert contents(home) == before
    doctor = greenroom(home, "doctor")
    assert doctor.code == 3
    assert sentence in doctor.out
    assert contents(home) == before


def test_a_team_whose_log_is_damaged_does_not_hide_the_others(home: Path) -> None:
    greenroom(home, "demo", "--org", "--pace", "0")
    with closing(sqlite3.connect(home / "greenroom.db")) as db, db:
        db.execute("UPDATE events SET data = '{' WHERE id = (SELECT min(id) + 30 FROM events)")
        db.execute("DELETE FROM snapshots")
    ended = greenroom(home, "runs", "--output-format", "json")
    assert ended.code == 0
    assert [one["state"] for one in cast("list[dict[str, object]]", ended.json["tasks"])] == ["finished", "damaged"]
    doctor = greenroom(home, "doctor")
    assert (doctor.code, "Event 31" in doctor.out) == (3, True)


def test_lost_commits_are_accepted_by_a_person_only(home: Path) -> None:
    deleted(home)
    told = greenroom(home, "doctor")
    assert (told.code, "greenroom doctor --accept-loss" in told.out) == (3, True)
    assert greenroom(home, "doctor", "--accept-loss").code == 0
    assert greenroom(home, "demo", "--org", "--pace", "0").code == 0


def test_a_file_where_the_folder_should_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    ended = greenroom(tmp_path / "home", "demo", "--org", "--pace", "0")
    assert ended.code == 3
    assert "is a file" in ended.err
    assert (tmp_path / "home").read_text() == "in the way"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of eight megabytes."""
    with mounted(tmp_path / "disk", "8m") as place:
        yield place


def test_a_full_disk_stops_the_team_until_there_is_room_again(small_disk: Path) -> None:
    home = small_disk / "home"
    with Running(home, "demo", "--org", "--pace", "0.3") as running:
        running.until("takes 'draft'")
        filler = fill(small_disk)
        assert "is full" in running.until("is full")
        filler.unlink()
        running.until("The problem is resolved")
        ended = running.end()
    assert "✓ task t1 finished" in ended.err
    assert greenroom(home, "doctor").code == 0


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT])
def test_a_disk_that_stays_full_ends_a_run_without_a_person_and_so_does_a_signal(
    small_disk: Path, number: signal.Signals | None
) -> None:
    home = small_disk / "home"
    with Running(home, "demo", "--org", "--pace", "0.3") as running:
        running.until("takes 'draft'")
        filler = fill(small_disk)
        running.until("is full")
        if number is not None:
            running.send(number)
        ended = running.end(timeout=20)
    assert ended.code in ((3,) if number is None else (3, 128 + number)), ended.err
    assert "is full, so nothing can be saved. Free disk space" in ended.err
    filler.unlink()
    assert greenroom(home, "resume", "last", GREENROOM_DEMO_PACE="0").code == 0
