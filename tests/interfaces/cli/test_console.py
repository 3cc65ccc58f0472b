"""What a console shows, whatever its surroundings say."""

import io

import pytest

from greenroom.interfaces.cli.display.output import Console


@pytest.mark.parametrize("columns", ["0", "00", "-1", "wide"])
def test_a_width_that_is_none_hides_nothing(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    told = io.StringIO()
    Console(file=told).print("It is done.")
    assert told.getvalue() == "It is done.\n"


def test_a_width_that_is_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert (Console(file=io.StringIO()).width, Console(file=io.StringIO(), width=30).width) == (20, 30)
