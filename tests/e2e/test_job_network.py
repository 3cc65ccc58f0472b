"""A job whose command wants the network: what a person reads at 80 columns, what a no means, and what nobody means."""

import re
from pathlib import Path

import pytest

from tests.e2e.internet import Internet
from tests.e2e.jobs import ASKED, Desk, Turns, call, done, founded
from tests.e2e.provider import provider
from tests.e2e.typing import ENTER
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", founded(tmp_path / "repo"))


def wants(there: Internet, number: int, script: str = "") -> Answer:
    return call("execute_script", number, script=script or there.command, hosts=[there.host], why="To see a row.")


def test_a_no_at_a_narrow_terminal_opens_nothing_and_always_is_kept_for_that_host(desk: Desk) -> None:
    there = Internet()
    turns = Turns((wants(there, 1), wants(there, 2), done("Done.")))
    with there, provider(turns) as fake, desk.sits(fake, "run", ASKED, columns="80", also=there.settings) as screen:
        screen.until("or type a command line: ")
        screen.press(f"y{ENTER}")
        asked = screen.until("[n] no: ")
        words = " ".join(asked[asked.index("coder wants the network") :].split())
        assert words.startswith(
            f"coder wants the network for a command. It would reach `{there.host}`, which no rule allows. "
            f"| {there.command}"
        )
        assert f"this would go to `{there.host}`. It says why: | To see a row. [y] once" in words
        assert "  | To see a row.\r\n" in asked or "  | To see a row.\n" in asked
        assert not re.search("execute_script|command:|host:", words)
        screen.press(f"n not today{ENTER}")
        screen.until("[n] no: ")
        assert there.asked == []
        screen.press(f"a{ENTER}")
        screen.until("/schema.json → exit code 0")
        screen.until("Done.")
    assert "not today" in turns.asked[1]
    assert there.asked == ["/schema.json"]
    kept = desk.types("permissions", "list").out
    assert f"allow host {there.host}" in kept
