"""Models that leave something where they work which makes the checks pass: what counts runs where nobody has worked."""

import shutil
from pathlib import Path

import pytest

from greenroom.app.jobs.following import TRIES
from greenroom.testing.fake_openai import Answer
from tests.e2e.terminal import Ended
from tests.e2e.workshop import Workshop, call, turns
from tests.sampling import sampled

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

IGNORED = "left/\nnode_modules/\n.venv/\n"
LIES = {
    "a file that git ignores": ("left/ok", "mkdir left; touch left/ok"),
    "a package": ("node_modules/ok/index.js", "mkdir -p node_modules/ok; touch node_modules/ok/index.js"),
    "a virtual environment": (".venv/ok", "mkdir .venv; touch .venv/ok"),
    "its home": ("$HOME/.config/ok", "mkdir -p ~/.config; touch ~/.config/ok"),
    "a temporary file": ("/tmp/ok", "touch /tmp/ok"),
}
QUICK = ("a file that git ignores",)
EACH = sampled(LIES, QUICK)
SAID = (Answer(text="It is done, and all tests pass."),) * TRIES
DONE = (Answer(text="Done."),) * TRIES
"""Said again, whatever it hears."""

ALONE = ("Paint it.", "--non-interactive", "--output-format", "json")


def check(line: str) -> str:
    return f'[checks.quick]\nrun = "{line}"\n'


def told(ended: Ended, what: str) -> list[str]:
    """A part of the verdict."""
    verdict = ended.json["verdict"]
    assert isinstance(verdict, dict)
    return [str(one) for one in verdict[what]]


@pytest.mark.parametrize("lie", EACH)
def test_what_is_left_where_it_worked_makes_no_check_pass(tmp_path: Path, lie: str) -> None:
    left, script = LIES[lie]
    shop = Workshop(tmp_path, check(f"test -e {left} || python3 check.py"), **{".gitignore": IGNORED})
    ended = shop.runs(
        [turns("bad"), call("execute_script", 2, script=script), call("run_checks", 3), *SAID], "Paint it.", "--yes"
    )
    assert ended.code == 1, ended.err
    assert "NOT verified: 'quick' fails" in ended.err
    assert "Said, and not so: It says that all tests pass" in ended.err
    assert "runs the checks → quick: passes" in ended.err, "where it worked, it does"
    assert shop.reads() == "good\n"


@pytest.mark.prove
def test_a_package_that_only_the_work_has_is_missed_and_it_is_said_what_to_do(tmp_path: Path) -> None:
    check_py = "import sys\nsys.path.insert(0, 'left')\nif 'red' in open('app.txt').read():\n    import colour\n"
    shop = Workshop(tmp_path, **{".gitignore": IGNORED, "check.py": check_py})
    script = "mkdir left; echo RED = 1 > left/colour.py"
    ended = shop.runs([turns("good, red"), call("execute_script", 2, script=script), *DONE], *ALONE)
    missing = told(ended, "missing")
    assert (ended.code, ended.json["verified"]) == (1, False)
    assert "No module named 'colour'" in missing[0]
    assert "runs without what the work itself has installed" in missing[1]
    assert "`setup` below [workspace]" in missing[1]


def test_what_goes_on_writing_in_the_background_is_ended_before_it_is_judged(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    loop = "while true; do date +%N > tick.txt; sleep 0.02; done"
    waits = "until test -s tick.txt; do sleep 0.02; done"
    replies = [
        turns("good, red"),
        call("execute_script", 2, script=loop, background=True),
        call("execute_script", 3, script=waits),
        *DONE,
    ]
    ended = shop.runs(replies, *ALONE)
    assert (ended.code, ended.json["verified"]) == (0, True), ended.json["verdict"]
    assert any(one.startswith("Ended before it was judged: ") for one in told(ended, "remarks"))
    assert "tick.txt" in str(ended.json["diff"]), "what it wrote until then is a part of the work"


@pytest.mark.prove
def test_what_is_ignored_from_now_on_is_noted_and_judged_as_before(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, **{".gitignore": IGNORED})
    script = "echo 'out/' >> .gitignore"
    ended = shop.runs([turns("good, red"), call("execute_script", 2, script=script), *DONE], *ALONE)
    assert ended.code == 0, ended.err
    (note,) = told(ended, "remarks")
    assert note.startswith(".gitignore, which says what is no part of the work, was changed.")
