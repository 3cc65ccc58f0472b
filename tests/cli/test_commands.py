"""The commands in this process, on a home of one's own; the real processes are in tests/e2e."""

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.ports.codec import compute_fingerprint
from greenroom.testing.demo import AGENTS, DEMO_KIT, TASK
from tests.cli.conftest import Type


def first_team(greenroom: Type) -> str:
    rows = greenroom("runs", "--output-format", "json").json["tasks"]
    assert isinstance(rows, list)
    return str(rows[0]["team"])


def test_tasks_are_listed_newest_first(greenroom: Type) -> None:
    greenroom("demo", "--org", "-q")
    old = first_team(greenroom)
    greenroom("demo", "--org", "--ask", "-q")
    rows = greenroom("runs").out.splitlines()
    assert rows[0].split() == ["id", "task", "state", "verdict", "started"]
    assert "waiting" in rows[1]
    assert rows[2].startswith(f"{old}/t1")
    assert "finished" in rows[2]


def test_only_the_newest_teams_are_listed_unless_all_are_wanted(
    greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.cli.commands.runs.MAX_TEAMS_SHOWN", 1)
    greenroom("demo", "--org", "-q")
    greenroom("fork", "last", "--at", "20")
    few = greenroom("runs")
    assert len(few.out.splitlines()) == 2
    assert "stopped" in few.out, "a fork that nobody runs"
    assert "Older runs: 1. List all: greenroom runs --all" in few.err
    assert len(greenroom("runs", "--all").out.splitlines()) == 3


@pytest.mark.parametrize("columns", [24, 40, 60, 200])
def test_an_id_is_never_cut(greenroom: Type, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    greenroom("demo", "--org", "-q")
    team = first_team(greenroom)
    monkeypatch.setattr("greenroom.cli.render.output.PIPE_WIDTH", columns)
    for words in (("runs",), ("du",)):
        lines = greenroom(*words).out.splitlines()[:2]
        assert lines[1].startswith(team)
        assert all(len(line) <= columns for line in lines)


def test_show_tells_what_there_is_to_know_and_programs_get_records_and_rows(greenroom: Type) -> None:
    greenroom("demo", "--org", "-q")
    told = greenroom("show", "last").out
    for words in (
        "no process runs it",
        "t1 A one-page guide to tea  finished",
        "✓ draft",
        "draft by ben: a first draft for newcomers",
        "evidence: guide.md, cover.md, glossary.md",
        "messages: 5",
        "ben → maya: Who reads it",
        "on the board: 2",
    ):
        assert words in told
    greenroom("demo", "--org", "--ask", "-q")
    shown = greenroom("show", "last/t1", "--output-format", "json").json
    assert (shown["status"], shown["messages"], shown["owner"]) == ("ok", 5, None)
    tasks, agents, asked = shown["tasks"], shown["agents"], shown["approvals"]
    assert isinstance(tasks, list)
    assert isinstance(agents, list)
    assert isinstance(asked, list)
    assert [stage["state"] for stage in tasks[0]["stages"]] == ["finished", "running"]
    assert [agent["agent"] for agent in agents] == ["ben", "iris", "maya", "you"]
    assert asked[0]["question"].startswith("Add this line")


def test_events_begin_after_the_version_that_was_named(greenroom: Type) -> None:
    greenroom("demo", "--org", "-q")
    every = greenroom("events", "last").out.splitlines()
    some = greenroom("events", "last", "--after", "5").out.splitlines()
    assert some == every[5:]
    assert every[0].split()[0] == "1"
    listed = greenroom("events", "last", "--after", str(len(every) - 1), "--output-format", "json").json["events"]
    assert isinstance(listed, list)
    assert [one["type"] for one in listed] == ["TaskEnded"]


def test_replay_tells_the_story_again_and_asks_nobody(greenroom: Type) -> None:
    greenroom("demo", "--org", "-q")
    before = greenroom("events", "last").out
    told = greenroom("replay", "last")
    assert "nothing is run again" in told.err
    assert "→ maya: Who reads it" in told.out
    assert "ThreadOpened" not in told.out
    assert "ThreadOpened" in greenroom("replay", "last", "-v").out
    assert greenroom("events", "last").out == before


def test_replay_shows_what_was_true_at_a_version(greenroom: Type) -> None:
    greenroom("demo", "--org", "-q")
    then = greenroom("replay", "last", "--at", "17")
    assert "as it was at version 17 of" in then.out
    assert "● draft" in then.out
    assert "○ publish" in then.out
    assert "greenroom fork" in then.err
    shown = greenroom("replay", "last", "--at", "17", "--output-format", "json").json
    assert (shown["version"], shown["notes"]) == (17, [])
    steps = shown["open_steps"]
    assert isinstance(steps, list)
    assert {step["step_id"] for step in steps} == {"ben#1", "iris#1"}


def test_a_fork_goes_its_own_way(greenroom: Type, home: Path) -> None:
    greenroom("demo", "--org", "-q")
    old = first_team(greenroom)
    before = greenroom("events", old).out
    forked = greenroom("fork", old, "--at", "60")
    new = forked.out.strip()
    assert new != old
    shown = re.search(rf"forked from {old} at version (\d+)", greenroom("show", new).out)
    assert shown is not None
    begun = int(shown[1])
    assert begun == 60 or f"the new team starts at version {begun}" in forked.err
    assert begun <= 60
    assert greenroom("resume", new, "-q").code == 0
    assert (home / "demo" / new / "guide.md").exists()
    assert greenroom("events", old).out == before


def test_what_is_over_cannot_be_resumed_and_what_is_paused_can(greenroom: Type) -> None:
    greenroom("demo", "--org", "-q")
    ended = greenroom("resume", "last")
    assert ended.code == 0
    assert "has nothing left to do" in ended.out
    assert "greenroom fork" in ended.err
    new = greenroom("fork", "last", "--at", "60").out.strip()
    assert greenroom("pause", new, "--now").code == 0
    assert "paused: paused by a person" in greenroom("show", new).out
    assert greenroom("resume", new, "-q").code == 0


def test_a_limit_that_was_reached_has_its_own_code(greenroom: Type, home: Path) -> None:
    async def limited() -> None:
        runtime = await Runtime.open(home)
        team = await runtime.create("poor", AGENTS, capabilities_name=DEMO_KIT, limits=Limits(steps=5))
        await runtime.ask(team, TASK)
        await runtime.close()

    asyncio.run(limited())
    ended = greenroom("resume", "last")
    assert ended.code == 5
    assert "limit reached: team steps" in ended.err
    assert ended.err.splitlines()[-1].startswith("Continue with: greenroom resume ")
    assert greenroom("resume", "last", "--output-format", "json").json["status"] == "limit"


def test_a_question_is_named_when_it_must_be(greenroom: Type) -> None:
    greenroom("demo", "--org", "--ask", "-q")
    wrong = greenroom("answer", "last", "yes", "--approval", "ben")
    assert wrong.code == 2
    assert "No request starts with 'ben'" in wrong.err
    assert "maya#5?1: Add this line" in wrong.err
    assert greenroom("answer", "last/t1", "yes", "--approval", "maya").code == 0
    again = greenroom("answer", "last", "yes")
    assert (again.code, again.err) == (2, "Error: Nothing in " + first_team(greenroom) + " waits for an answer.\n")


def test_room_is_counted_given_back_and_forgotten(greenroom: Type, home: Path) -> None:
    greenroom("demo", "--org", "-q")
    team = first_team(greenroom)
    used = greenroom("du")
    assert team in used.out
    assert f" in {home}" in used.out
    assert greenroom("gc").code == 0
    assert greenroom("forget", f"{team}/t1", "--yes").code == 2
    assert greenroom("forget", team, "--yes").code == 0
    assert not (home / "demo" / team).exists()
    assert greenroom("runs", "--output-format", "json").json["tasks"] == []


def test_the_doctor_finds_nothing_wrong(greenroom: Type, home: Path) -> None:
    told = greenroom("doctor")
    assert told.code == 0
    for words in (
        "Python 3",
        "SQLite 3",
        str(home),
        "none yet: the first run creates it",
        "0, none running",
    ):
        assert words in told.out
    greenroom("demo", "--org", "-q")
    told = greenroom("doctor")
    for words in ("intact, schema 1", "1, none running"):
        assert words in told.out
    findings = greenroom("doctor", "--output-format", "json").json["findings"]
    assert isinstance(findings, list)
    assert {one["state"] for one in findings} <= {"ok", "warn"}


def test_the_doctor_misses_git_and_room_and_a_newer_sqlite(greenroom: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "greenroom.cli.commands.home"
    monkeypatch.setattr(f"{module}.shutil.which", lambda _: None)
    monkeypatch.setattr(f"{module}.MIN_FREE_BYTES", 10**18)
    told = greenroom("doctor")
    assert (told.code, "Install git" in told.out, "Free disk space" in told.out) == (0, True, True)
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 30, 0))
    told = greenroom("doctor")
    assert (told.code, "Use a Python with SQLite 3.35 or newer." in told.out) == (3, True)


def test_a_hint_names_the_home_that_was_given(greenroom: Type, tmp_path: Path) -> None:
    told = greenroom("--home", str(tmp_path / "my home"), "demo", "--org")
    hint = told.err.splitlines()[-1]
    assert re.fullmatch(rf"Try next: greenroom --home '{tmp_path}/my home' show \w{{8}}", hint), "an id stays right"


def test_a_damaged_snapshot_stops_nothing_and_the_doctor_finds_it_and_a_damaged_event(
    greenroom: Type, home: Path
) -> None:
    greenroom("demo", "--org", "-q")
    team = first_team(greenroom)
    with closing(sqlite3.connect(home / "greenroom.db")) as db:
        number = db.execute("SELECT id FROM streams").fetchone()[0]
        db.execute("INSERT INTO snapshots VALUES (?, 3, ?, ?)", (number, compute_fingerprint(), b"3\nrotten"))
        db.commit()
    for words in (("runs",), ("show", team), ("resume", team)):
        assert greenroom(*words).code == 0
    told = greenroom("doctor")
    assert told.code == 0
    assert f"Team '{team}': The snapshot cannot be read" in told.out
    assert "Nothing is lost" in told.out
    with closing(sqlite3.connect(home / "greenroom.db")) as db:
        db.execute("UPDATE events SET data = 'rotten' WHERE id & 1023 = 5")
        db.commit()
    told = greenroom("doctor")
    assert told.code == 3
    assert "Event 5 " in told.out
    assert "intact" not in told.out
