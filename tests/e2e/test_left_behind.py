"""A tool of one's own that never returns: its time is over, the run goes on, and the process ends."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.e2e.provider import provider, reached
from tests.e2e.terminal import greenroom
from tests.fake_openai import Answer, Call

HANGS = '''
import pathlib, threading
from greenroom import tool

@tool(effect="pure", timeout={seconds})
def hangs() -> str:
    """Waits."""
    pathlib.Path({marker!r}).touch()
    threading.Event().wait()
    return "never"
'''
AGENT = "---\ndescription: Waits.\ntools: [hangs]\n---\nWait.\n"
CALL = Answer(calls=(Call(name="hangs", arguments={}, id="c1"),))


@pytest.fixture(name="marker")
def a_marker(tmp_path: Path) -> Path:
    """What is there as soon as the tool waits."""
    return tmp_path / "marker"


def write(home: Path, marker: Path, seconds: int) -> None:
    for name, text in (("tools/hangs.py", HANGS.format(seconds=seconds, marker=str(marker))), ("agents/ann.md", AGENT)):
        path = home / "config" / "greenroom" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_tool_that_never_returns_is_left_behind_and_the_process_ends(tmp_path: Path, marker: Path) -> None:
    write(tmp_path, marker, seconds=3)
    began = time.monotonic()
    with provider([CALL, Answer(text="So be it.")]) as fake:
        ended = greenroom(tmp_path, "run", "Wait.", "--agent", "ann", cwd=str(tmp_path), **reached(fake))
        told = json.dumps([one.body["messages"] for one in fake.requests])
    assert (ended.code, ended.out) == (0, "So be it.\n"), ended.err
    assert "hangs did not come to an end within 3 seconds and cannot be stopped: it may go on" in told
    assert "was stopped" not in told
    assert time.monotonic() - began < 20
