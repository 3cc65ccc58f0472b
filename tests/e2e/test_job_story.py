"""The story of a job as a person lives it at a terminal: each of its twelve lines, in the words they read."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pytest

from tests.e2e.internet import Internet
from tests.e2e.jobs import ASKED, TEST, WRONG, Desk, Turns, call, done, exactly, founded, git, hook
from tests.e2e.provider import provider
from tests.e2e.typing import CTRL_C, ENTER, Typing
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

ROW = re.compile(r"(\S.*) … (\d+) s\s+(?:≤ )?([\d,]+) tokens · (\$[\d.]+) · ([\d.]+)s of work")
OFFER = "[a] apply  [b NAME] on a branch  [d] show the diff  [x] discard  [Enter] later: "
ENDED = 130
"""What a shell says of who was stopped by Ctrl-C."""

SOON_WARM = 8
"""How often the libraries could be loaded until the first line is there, where much is loaded already."""


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", founded(tmp_path / "repo"))


def story(there: Internet) -> tuple[Answer, ...]:
    """It wants the network on the way, forgets a letter, mends it, and writes a page that no check reads."""
    wanted = {"script": there.command, "hosts": [there.host], "why": "The schema says what a row is."}
    edit = {"search": "json.dump(row,", "replace": "json.dump(rows,"}
    return (
        call("read_code", 1, says="I look at what is there.", file="export.py"),
        call("propose_plan", 2, steps=["Add as_json", "Test it"], files=["export.py", "test_json.py", "README.md"]),
        call("rewrite", 3, says="The switch comes first.", file="export.py", content=WRONG),
        call("execute_script", 4, says="A schema would help.", **wanted),
        call("rewrite", 5, file="test_json.py", content=TEST),
        call("rewrite", 6, file="README.md", content="# Export\n\nCSV, or JSON.\n"),
        done("It is done."),
        call("patch", 7, says="A letter is missing.", file="export.py", edits=[edit]),
        done("`export.py` writes JSON now; `test_json.py` shows it."),
    )


def computed(screen: Typing) -> float:
    """Seconds that it has computed so far: what else the machine has to do does not count."""
    times = Path(f"/proc/{screen.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


def libraries() -> float:
    """Seconds that a Python needs for nothing but what everything here stands on, at this hour on this machine."""
    before = getrusage(RUSAGE_CHILDREN)
    for _ in range(3):
        subprocess.run([sys.executable, "-c", "import pydantic.main, rich.live, anyio, sqlite3"], check=True, env={})
    after = getrusage(RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 3


def confirms(screen: Typing) -> None:
    """Lines 3 and 4: the checks with their reason, how they stand, and the plan."""
    screen.until("pytest: python3 -m pytest   (pyproject.toml sets up pytest.)")
    screen.until("or type a command line: ")
    screen.press(f"y{ENTER}")
    screen.until("Baseline: pytest: 1 pass, 1 already fails")
    screen.until("Plan:")
    screen.until("1. Add as_json")
    assert re.search(r"Touches: export.py, .* · \$\d\.\d\d–\$\d\.\d\d \(a guess\)", screen.until("(a guess)"))
    screen.until("[y] yes  [e WHAT] edit: what to do differently  [n] no, end the run: ")


def test_the_whole_story_line_by_line(desk: Desk) -> None:
    hook(desk.repo, "pre-commit", "echo ran >> .git/hook-ran")
    there = Internet()
    before, turns = exactly(desk.repo), Turns(story(there), held=(2, 4, 5))
    with there, provider(turns) as fake:
        with desk.sits(fake, "run", ASKED, also=there.settings) as screen:  # 1
            head = screen.until("your files are not changed")  # 2
            assert computed(screen) < SOON_WARM * libraries()
            assert re.search(r"run \w{8} · coder · openai:gpt-5.5\s+at most \$5 · sandbox: bubblewrap", head)
            confirms(screen)  # 3, 4
            screen.press(f"y{ENTER}")
            screen.until("makes a plan → you agreed")
            _shows_a_row(screen)  # 5
            _hears_what_is_typed(screen, turns)  # 6
            _asks_for_the_network(screen, there)  # 7
            screen.press(CTRL_C)  # 8
            screen.until("Stopping when the model calls in flight have ended")
            screen.press(CTRL_C)
            screen.until("Stopped. Continue with: greenroom resume ")
            assert screen.ends() == ENDED
        turns.let(4)
        assert there.asked == ["/schema.json"], "once was once"
        with desk.sits(fake, "resume", "last", also=there.settings) as screen:
            screen.until("resumed · openai:gpt-5.5")
            screen.until("sandbox: bubblewrap · your files are not changed")
            screen.until("writes test_json.py → test_json.py: new")
            spent = _shows_a_row(screen)
            screen.send(signal.SIGKILL)
            screen.ends()
        turns.let(5)
        with desk.sits(fake, "resume", "last") as screen:
            _sees_a_failure_and_mends_it(screen)  # 9
            _is_the_report(screen.until(OFFER), spent)  # 10
            assert exactly(desk.repo) == before, "nothing of the person's was touched"
            screen.press(f"a{ENTER}")  # 11
            screen.until("Applied: 3 files, commit ")
            screen.until("Undo it with: greenroom undo ")
            assert screen.ends() == 0
    _applied_in_their_name(desk)
    assert desk.types("undo", "last").code == 0  # 12
    assert exactly(desk.repo) == before


def _shows_a_row(screen: Typing) -> str:
    """Line 5: what it does, tokens, money and working time; returns the money."""
    screen.until("thinks … ")
    screen.until(" of work")
    screen.until("type to send a message · Ctrl-C pauses")
    doing, _, tokens, money, _ = ROW.findall(screen.seen)[-1]
    assert doing.endswith("thinks")
    assert int(tokens.replace(",", "")) > 1000
    assert float(money.removeprefix("$")) > 0
    return str(money)


def _hears_what_is_typed(screen: Typing, turns: Turns) -> None:
    """Line 6: acknowledged at once, and the very next request has it."""
    screen.press("keep the CSV default")
    screen.until("› keep the CSV default")
    screen.press(ENTER)
    screen.until("noted: coder will read it in the next turn")
    so_far = len(turns.asked)
    turns.let(2)
    screen.until("· coder reads: keep the CSV default")
    screen.until("A schema would help.")
    assert "keep the CSV default" in turns.asked[so_far]


def _asks_for_the_network(screen: Typing, there: Internet) -> None:
    """Line 7: the exact command, the host and the agent's words why; and a yes lets it through, once."""
    screen.until("coder wants the network for a command.")
    screen.until(f"reach `{there.host}`, which no rule allows.")
    screen.until(there.command)
    screen.until("It says why:")
    screen.until("  | The schema says what a row is.")
    screen.until("[y] once  [r] this run  [a] always: ")
    assert there.asked == []
    screen.press(f"y{ENTER}")
    screen.until("/schema.json → exit code 0")
    screen.until(" tokens · ")


def _sees_a_failure_and_mends_it(screen: Typing) -> None:
    """Line 9."""
    screen.until("writes README.md")
    screen.until("✗ failed:")
    screen.until("pytest: 1 newly failing: test_json.py::test_json")
    screen.until("A letter is missing.")
    screen.until("changes export.py → export.py: 1 change, +1 −1 lines")


def _is_the_report(done: str, spent: str) -> None:
    """Line 10: what changed, what proves it, what nobody has proven, and its cost: a killed call has no figure."""
    money = re.search(r"✓ Verified: \d+ steps, at most [\d,]+ tokens, \$([\d.]+), [\d.]+s of work", done)
    assert money is not None
    assert done.lower().count("verified") == 1, "the verdict is printed once, in the report"
    assert float(money[1]) >= float(spent.removeprefix("$"))
    assert "3 files changed, +18 −2" in done
    assert re.search(r"✓ pytest: 2 passed, 1 failing, [\d.]+ s", done)
    assert "Note: pytest: 1 fail as before the change" in done


def _applied_in_their_name(desk: Desk) -> None:
    """Line 11: one commit, their name, their hooks; and whose a line is."""
    assert git(desk.repo, "log", "--format=%an %s").splitlines() == [f"Pia {ASKED}", "Pia first"]
    assert (desk.repo / ".git" / "hook-ran").read_text() == "ran\n"
    assert git(desk.repo, "status", "--short").strip() == "?? notes.txt"
    told = desk.types("blame", "export.py:7").out
    assert "json.dump(rows, out)" in told
    assert re.search(r"step coder#\d+ of coder: patch export.py", told)
    assert "why: A letter is missing." in told
    assert "✓ pytest: " in told
