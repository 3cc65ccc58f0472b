"""On a real terminal (a pty): rows that live, colours that can be refused, pipes that may break."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.terminal import GREENROOM, PATIENCE, environment, greenroom
from tests.e2e.typing import Typing

HIDE_CURSOR = "\x1b[?25l"
SHOW_CURSOR = "\x1b[?25h"


def on_a_terminal(home: Path, *words: str, **more: str) -> str:
    """What a terminal of 120 columns got to see."""
    with Typing(home, *words, columns="120", **more) as terminal:
        assert terminal.ends() == 0
        return terminal.raw.decode()


def test_a_terminal_sees_live_rows_that_go_when_the_run_ends(tmp_path: Path) -> None:
    seen = on_a_terminal(tmp_path, "demo", "--org", "--pace", "0.1")
    assert HIDE_CURSOR in seen
    assert seen.rindex(SHOW_CURSOR) > seen.rindex(HIDE_CURSOR)
    rows, _, after = seen.rpartition(SHOW_CURSOR)
    for words in ("tokens", "waits for maya", "thinks about 'glossary'", "working", "● draft", "○ publish"):
        assert words in rows
    assert "Try next: greenroom show " in after
    assert "tokens" not in after.replace("1,100 tokens", "")
    assert "\x1b[3" in seen, "it has colours"


@pytest.mark.parametrize("surroundings", [{"CI": "true"}, {"TERM": "dumb"}])
def test_a_build_server_and_a_dumb_terminal_get_plain_lines(tmp_path: Path, surroundings: dict[str, str]) -> None:
    seen = on_a_terminal(tmp_path, "demo", "--org", "--pace", "0", **surroundings)
    assert HIDE_CURSOR not in seen
    assert "task t1 finished" in seen


@pytest.mark.parametrize("output_format", ["text", "stream-json"])
def test_a_reader_that_goes_away_is_no_error(home: Path, output_format: str) -> None:
    events = subprocess.Popen(
        [*GREENROOM, "events", "last", "--output-format", output_format],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert events.stdout is not None
    assert events.stderr is not None
    events.stdout.close()
    assert events.stderr.read() == ""
    events.stderr.close()
    assert events.wait(PATIENCE) == 141


def test_an_old_encoding_gets_question_marks_and_no_error(home: Path) -> None:
    ended = greenroom(home, "show", "last", PYTHONIOENCODING="ascii")
    assert ended.code == 0
    assert "? draft" in ended.out
