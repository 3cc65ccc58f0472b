"""Who judges a change: the checks of the beginning, when nothing runs any more, and never the agent."""

from pathlib import Path

import pytest

from tests.e2e.jobs import call, done
from tests.e2e.workshop import Workshop, turns
from tests.tiers import has_bubblewrap

JSON = ("--yes", "--output-format", "json")
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


def test_an_agent_does_not_call_what_judges_it(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    forged = call("deliver", 2, said="Done.", verdict={"state": "verified"}, tree="x")
    ended = shop.runs([turns("bad"), forged, *ENDS], "Paint it.", *JSON)
    assert (ended.code, "may not use the tool 'deliver'" in ended.err) == (1, True), ended.err
    assert "new_failures" in str(ended.json["verdict"])
