"""What is typed at `answer`, and what `last` means where a change is taken over: each does what its words say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.kit import PRICES, UNVERIFIED, USAGE, WAITING, Desk, Turns, say, serve_model, write

NO_TESTS = {"app.txt": "good\n"}


@pytest.mark.parametrize(("typed", "asked"), [("no", False), ("yes", True)])
def test_a_run_that_nothing_can_verify_goes_on_after_a_yes_and_not_after_a_no(
    open_folder: Path, typed: str, asked: bool
) -> None:
    desk = Desk(open_folder, PRICES, files=NO_TESTS)
    with serve_model(Turns(say("Done."))) as model:
        begun = desk.type("run", "Paint it.", "--output-format", "json", stdin="", **model.reach)
        assert begun.code == WAITING
        assert desk.type("answer", "last", typed).code == 0
        ended = desk.type("resume", "last", "--output-format", "json", **model.reach)
        assert bool(model.requests) is asked
    assert asked or ended.code == UNVERIFIED


def test_last_is_the_newest_run_of_this_folder_where_a_change_is_taken_over(open_folder: Path) -> None:
    one, other = Desk(open_folder / "one"), Desk(open_folder / "other")
    other.home = one.home
    assert one.work(write("more.txt", "1\n"), say("Done.")).code == 0
    assert other.work(write("more.txt", "2\n"), say("Done.")).code == 0
    assert one.type("apply", "last").code == 0
    assert (one.read("more.txt"), (other.repo / "more.txt").exists()) == ("1\n", False)
    elsewhere = Desk(open_folder / "third")
    elsewhere.home = one.home
    refused = elsewhere.type("apply", "last", "--output-format", "json")
    assert (refused.code, refused.json["code"]) == (USAGE, "no_job_here")
