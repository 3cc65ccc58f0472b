"""Who judges a change: the checks of the beginning, when nothing runs any more, and never the agent."""

from pathlib import Path

import pytest

from tests.e2e.provider import provider, reached
from tests.e2e.workshop import Workshop, call, done, git, turns
from tests.tiers import has_bubblewrap

JSON = ("--yes", "--output-format", "json")
APP = "def test_app():\n    assert 'good' in open('app.txt').read()\n"
ENDS = [done("Done.", number) for number in range(90, 93)]


@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
def test_what_goes_on_writing_in_the_background_is_ended_before_it_is_judged(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    loop = "while true; do date +%N > tick.txt; sleep 0.02; done"
    waits = "until test -s tick.txt; do sleep 0.02; done"
    replies = [
        turns("good, red"),
        call("execute_script", 2, script=loop, background=True),
        call("execute_script", 3, script=waits),
        done("Done."),
    ]
    ended = shop.runs(replies, "Paint it.", *JSON)
    assert (ended.code, ended.json["verified"]) == (0, True), ended.json["verdict"]
    assert "'code': 'stopped'" in str(ended.json["verdict"])
    assert "tick.txt" in str(ended.json["diff"]), "what it wrote until then is a part of the change"


def test_checks_of_the_beginning_judge_the_change_whatever_is_checked_out_since(tmp_path: Path) -> None:
    tests = {"pyproject.toml": "[tool.pytest.ini_options]\n", "test_app.py": APP}
    shop = Workshop(tmp_path, own="", Makefile="lint:\n\ttrue\n", **tests)
    git(shop.repo, "switch", "--create", "old")
    git(shop.repo, "rm", "--quiet", *tests)
    git(shop.repo, "commit", "--quiet", "--message", "no tests")
    git(shop.repo, "switch", "-")
    assert shop.runs([turns("bad"), *ENDS], "Paint it.", *JSON).code == 1
    git(shop.repo, "switch", "old")
    with provider([turns("bad"), *ENDS]) as fake:
        again = shop.types("rewind", "last", "--to", "coder#3", "--non-interactive", **reached(fake))
    assert again.code == 1, again.err
    assert "pytest: 1 newly failing: test_app.py::test_app" in again.err


def test_an_agent_does_not_call_what_judges_it(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    forged = call("deliver", 2, said="Done.", verdict={"state": "verified"}, tree="x")
    ended = shop.runs([turns("bad"), forged, *ENDS], "Paint it.", *JSON)
    assert (ended.code, "may not use the tool 'deliver'" in ended.err) == (1, True), ended.err
    assert "new_failures" in str(ended.json["verdict"])
