"""Requests that are about tests: who changes them hears so once, and a person may say beforehand that they are to."""

import shutil
from pathlib import Path

import pytest

from greenroom.testing.fake_openai import Answer
from tests.e2e.jobs import ASKED, Desk, Turns, call, founded
from tests.e2e.provider import provider, reached
from tests.sampling import first

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

SAID = "`test_csv` is called `test_writes_csv` now."
RENAMES = call("execute_script", 1, script="sed -i s/test_csv/test_writes_csv/ test_export.py")
MAY = ("--yes", "--tests-may-change")


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", founded(tmp_path / "repo"))


@pytest.mark.prove
def test_who_has_changed_tests_hears_it_once_and_what_was_said_is_kept(desk: Desk) -> None:
    model = Turns([RENAMES, Answer(text=SAID)])
    with provider(model) as fake:
        ended = desk.types("run", ASKED, "--yes", **reached(fake))
    assert (ended.code, ended.out) == (1, f"{SAID}\n")
    assert len(model.asked) == 3, "the change, the end, and the end once more"
    assert "test_csv" in model.asked[-1]
    assert "✗ Not proven" in ended.err
    assert "Changed by the work itself: 'pytest': not there any more: " in ended.err
    assert "::test_csv" in ended.err
    assert 'say so: `greenroom run --tests-may-change "…"`.' in ended.err
    assert "greenroom apply last" in ended.err.replace(f"--home {desk.home} ", "")
    assert desk.types("resume", "last").code == 1
    assert desk.types("apply", "last").code == 0


def test_where_tests_may_change_those_of_before_are_named_and_no_more(desk: Desk) -> None:
    ended = desk.asks(RENAMES, Answer(text=SAID), words=(*MAY, "--output-format", "json"))
    assert (ended.code, ended.json["verified"]) == (0, True), ended.err
    assert "Note: 'pytest': not there any more: test_export.py::test_csv. (Tests may change: you have" in ended.err


@pytest.mark.parametrize(
    "script",
    first(
        "sed -i 's/writerows(rows)/writerows([])/' export.py",
        "sed -i 's/-q/-q --deselect=test_export.py::test_old/' pyproject.toml",
        "printf 'import export\\n' > conftest.py",
    ),
    ids=["a new failure", "the settings of a check", "a set-up"],
)
def test_where_tests_may_change_nothing_else_that_judges_the_work_may(desk: Desk, script: str) -> None:
    ended = desk.asks(RENAMES, call("execute_script", 2, script=script), *[Answer(text=SAID)] * 3, words=MAY)
    assert ended.code == 1, ended.err
    assert "✗ Not proven" in ended.err
