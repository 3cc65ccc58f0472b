"""The team of the demo, as somebody types it who wants to look around in one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.terminal import PATIENCE, Ended, environment, greenroom

GUIDE = "# Tea\n"


def test_the_demo_gives_its_answer_on_stdout_and_its_story_on_stderr(ran_once: tuple[Path, Ended]) -> None:
    _, ended = ran_once
    assert ended.code == 0
    assert ended.out.startswith(GUIDE)
    assert "Green tea: 80 degrees" in ended.out
    assert "ben    → maya: Who reads it" in ended.err
    assert "maya   → ben: New to it." in ended.err
    assert "✎ on the board: House style" in ended.err
    assert "Green tea: 80 degrees" not in ended.err


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
from greenroom.cli.main import main
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
