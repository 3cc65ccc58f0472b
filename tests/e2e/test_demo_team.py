"""The team of the demo, as somebody types it who wants to look around in one."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.terminal import PATIENCE, Ended, environment, greenroom

GUIDE = "# Tea\n"


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def test_the_demo_gives_its_answer_on_stdout_and_its_story_on_stderr(ran_once: tuple[Path, Ended]) -> None:
    _, ended = ran_once
    assert ended.code == 0
    assert ended.out.startswith(GUIDE)
    assert "Green tea: 80 degrees" in ended.out
    assert "ben    → maya: Who reads it" in ended.err
    assert "maya   → ben: New to it." in ended.err
    assert "✎ on the board: House style" in ended.err
    assert "Green tea: 80 degrees" not in ended.err


def test_the_first_line_says_what_is_scripted_and_the_last_what_to_type_next(
    ran_once: tuple[Path, Ended], home: Path
) -> None:
    told = lines(ran_once[1].err)
    assert "scripted" in told[0]
    assert "real" in told[0]
    assert told[-1] == "Try next: greenroom show last"
    assert greenroom(home, "show", "last").code == 0


def test_the_demo_really_writes_its_files_once(home: Path) -> None:
    (folder,) = (home / "demo").iterdir()
    assert sorted(file.name for file in folder.iterdir()) == [
        "cover.md",
        "draft.md",
        "glossary.md",
        "guide.md",
        "ledger.txt",
    ]
    ledger = [line.partition(" ")[2] for line in (folder / "ledger.txt").read_text().splitlines()]
    assert ledger == [
        "reviewed draft.md, one change: green tea",
        "revised guide.md, green tea is in",
        "published guide.md, 51 words",
    ]


def test_without_a_pace_the_demo_is_over_at_once(tmp_path: Path) -> None:
    greenroom(tmp_path, "tasks")
    begun = time.monotonic()
    assert greenroom(tmp_path, "demo", "--team", "--pace", "0").code == 0
    assert time.monotonic() - begun < 10, "about 1.5 s on an idle machine"


def test_quiet_leaves_only_the_answer(tmp_path: Path) -> None:
    ended = greenroom(tmp_path, "demo", "--team", "--pace", "0", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(GUIDE)


def test_verbose_tells_every_event(tmp_path: Path) -> None:
    told = greenroom(tmp_path, "-v", "demo", "--team", "--pace", "0").err
    assert "ThreadOpened ben@t1.s1.1" in told
    assert "“First the style.”" in told


def test_json_is_one_object(tmp_path: Path) -> None:
    ended = greenroom(tmp_path, "demo", "--team", "--pace", "0", "--output-format", "json")
    assert (ended.json["status"], ended.json["exit_code"], ended.json["messages"]) == ("finished", 0, 5)
    assert str(ended.json["answer"]).startswith(GUIDE)


def test_a_stream_begins_with_init_ends_with_result_and_holds_every_event_between(tmp_path: Path) -> None:
    ended = greenroom(tmp_path, "demo", "--team", "--pace", "0", "--output-format", "stream-json")
    first, *events, last = ended.lines
    assert (first["type"], first["schema_version"], first["scripted"]) == ("init", 1, True)
    assert (last["type"], last["status"], last["exit_code"]) == ("result", "finished", 0)
    assert [event["version"] for event in events] == list(range(1, len(events) + 1))
    assert {event["team"] for event in events} == {first["team"]}
    assert ended.err == ""


BROKEN = """
import greenroom.testing.demo as demo
demo.SCRIPT = tuple(cue for cue in demo.SCRIPT if not ({drop}))
from greenroom.interfaces.cli.main import main
main()
"""


@pytest.mark.parametrize(
    ("drop", "named"),
    [("cue.thread == 'iris@t1.s2.2' and cue.turn == 2", "iris@t1.s2.2"), ("cue.answering", "maya@t1")],
)
def test_an_uncovered_turn_says_so_and_fails(tmp_path: Path, drop: str, named: str) -> None:
    program = [sys.executable, "-c", BROKEN.format(drop=drop), "demo", "--team", "--pace", "0"]
    done = subprocess.run(
        program, env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 1
    assert "The script has no reply for" in done.stderr
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_a_person_who_is_asked_says_yes(tmp_path: Path) -> None:
    asked = greenroom(tmp_path, "demo", "--team", "--ask", "--pace", "0")
    assert asked.code == 6
    assert asked.out == ""
    assert lines(asked.err)[-1] == "Your turn: greenroom answer last yes   (or no)"
    assert greenroom(tmp_path, "answer", "last", "yes").code == 0
    done = greenroom(tmp_path, "resume", "last", GREENROOM_DEMO_PACE="0")
    assert done.code == 0
    assert done.out.startswith(GUIDE)


def test_a_person_who_is_asked_says_no(tmp_path: Path) -> None:
    greenroom(tmp_path, "demo", "--team", "--ask", "--pace", "0")
    assert greenroom(tmp_path, "answer", "last", "no", "--reason", "Not yet.").code == 0
    done = greenroom(tmp_path, "resume", "last", GREENROOM_DEMO_PACE="0")
    assert done.code == 1
    assert "Not yet." in done.err
    (folder,) = (tmp_path / "demo").iterdir()
    assert "published" not in (folder / "ledger.txt").read_text()
