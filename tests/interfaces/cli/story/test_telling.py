"""The words of the demo: lines that fit a terminal, and a verdict that says what did not hold."""

import sys
from pathlib import Path

import pytest

from greenroom.interfaces.cli.runs.story.stage import Stage
from greenroom.interfaces.cli.runs.story.telling import Line, Times, fitting, to_type, verdict, wrapped
from greenroom.testing.story.facts import Fact

TIMES = Times(whole=9000, checks=4000, waits=2000)


def line(number: int, *, held: bool = True) -> Line:
    facts = (Fact(held=True, text="fine"), Fact(held=held, text="so it is"))
    return Line(number=number, title="It begins", commands=(), facts=facts)


@pytest.mark.parametrize("width", [30, 60, 80])
def test_lines_fit_and_stand_below_each_other(width: int) -> None:
    told = list(wrapped("  a step of some words that go on and on, " * 4, "   │ ", width))
    assert len(told) > 1
    assert all(len(one) <= width and one.startswith("   │   ") for one in told)
    assert all(one.startswith(" " * 5) for one in list(wrapped("some words " * 20, "   ✓ ", width))[1:])


def test_a_path_is_never_cut_and_without_a_terminal_nothing_is() -> None:
    path = "/tmp/a-rather-long-folder/with-more-below-it"
    assert any(path in one for one in wrapped(f"It happens in {path}, which stays.", "", 30))
    assert list(wrapped("word " * 50, "   ", 0)) == [("   " + "word " * 50).rstrip()]
    assert list(fitting(["  so long a text"], 12)) == ["  so long a", "  text"]


def test_the_verdict_counts_what_held_and_measures_itself() -> None:
    first, second = verdict([line(1), line(2)], 2, TIMES)
    assert first == "✓ The story held: 2 lines, 4 facts, looked up in files, git and the log."
    assert second.startswith("  9.0 s: 4.0 s in steps that ran checks, 2.0 s scripted replies and pauses, 3.0 s")


def test_the_verdict_names_the_line_that_did_not_hold_and_why() -> None:
    first, why, _ = verdict([line(1), line(2, held=False)], 9, TIMES)
    assert first == "✗ The story did not hold, in line 2 of 9: It begins."
    assert why == "  so it is"


def test_what_to_type_finds_the_command_wherever_the_demo_was_called_from(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("GREENROOM_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
    stage = Stage(folder=Path("/tmp/my demo"), tier="none", environment=dict.fromkeys(names, "/tmp/my demo/x"))
    monkeypatch.setenv("GREENROOM_CALLED_AS", "./go")
    typed = list(to_type(stage, ""))
    assert typed[0] == "cd '/tmp/my demo/shop'"
    assert "export GREENROOM_HOME='/tmp/my demo/x'" in typed
    assert f'export PATH={Path(sys.executable).parent}:"$PATH"' in typed
    assert not any("apply" in one for one in typed), "nothing was applied"
