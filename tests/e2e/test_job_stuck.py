"""A job that goes in circles is told so and then stopped, with a report."""

from pathlib import Path

import pytest

from tests.e2e.jobs import ASKED, Desk, call, exactly, founded
from tests.e2e.provider import provider, reached
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

TOLD = "You have made the same call several times"
STOPPED = "That has happened before, so your work stops here."


def test_who_goes_in_circles_is_told_and_then_stopped_with_a_report(tmp_path: Path) -> None:
    desk, heard = Desk(tmp_path / "home", founded(tmp_path / "repo")), list[str]()
    before = exactly(desk.repo)

    def stubborn(body: dict[str, object], number: int) -> Answer:
        heard.append(str(body["messages"]))
        return call("read_code", number, file="export.py")

    with provider(stubborn) as fake:
        ended = desk.types("run", ASKED, "--yes", **reached(fake))
    assert ended.code == 1, ended.err
    assert "t1 failed: It went in circles, and was stopped. It made the same call again and again." in ended.err
    assert 0 <= "".join(heard).find(TOLD) < "".join(heard).find(STOPPED), "it was not told before it was stopped"
    assert "No file was changed." in ended.err
    assert exactly(desk.repo) == before
