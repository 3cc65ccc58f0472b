"""Models that get nowhere: in circles they are told once and then stopped; at a limit it is said what is there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.jobs import ASKED, Desk, call, exactly, founded
from tests.e2e.provider import provider, reached
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

Circle = Callable[[int], Answer]


def same_call(number: int) -> Answer:
    return call("read_code", number, file="export.py")


def same_failure(number: int) -> Answer:
    return call("patch", number, file="export.py", edits=[{"search": f"nothing {number}", "replace": "x"}])


def in_turn(number: int) -> Answer:
    return call("read_code", number, file=("export.py", "test_export.py")[number % 2])


def no_change(number: int) -> Answer:
    return call("execute_script", number, script=f"echo {number}")


TOLD: dict[Circle, str] = {
    same_call: "You have made the same call several times",
    same_failure: "Your last calls have all failed for the same reason.",
    in_turn: "You make the same two calls in turn",
    no_change: "You have made many calls, and no file has changed.",
}
SAID: dict[Circle, str] = {
    same_call: "It made the same call again and again.",
    same_failure: "Its calls failed again and again for the same reason.",
    in_turn: "It made the same two calls in turn.",
    no_change: "It made call after call that changed no file and found nothing new.",
}
STOPPED = "That has happened before, so your work stops here."


class Stubborn:
    """Does one thing, whatever it is told; `heard` is all that it was told."""

    def __init__(self, circle: Circle) -> None:
        self._circle = circle
        self.heard = ""

    def __call__(self, body: dict[str, object], number: int) -> Answer:
        """Once more."""
        self.heard += str(body["messages"])
        return self._circle(number)


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", founded(tmp_path / "repo"))


LONG = [pytest.param(one, marks=pytest.mark.prove) for one in (same_failure, in_turn, no_change)]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("circle", [same_call, *LONG], ids=lambda one: one.__name__)
def test_who_goes_in_circles_is_told_and_then_stopped_with_a_report(desk: Desk, circle: Circle) -> None:
    before, model = exactly(desk.repo), Stubborn(circle)
    with provider(model) as fake:
        ended = desk.types("run", ASKED, "--yes", **reached(fake))
    assert ended.code == 1, ended.err
    assert f"t1 failed: It went in circles, and was stopped. {SAID[circle]}" in ended.err
    assert "! coder gets nowhere: " in ended.err
    first, last = model.heard.find(TOLD[circle]), model.heard.find(STOPPED)
    assert 0 <= first < last, "it was not told before it was stopped"
    assert "No file was changed." in ended.err
    assert exactly(desk.repo) == before


def test_at_a_limit_it_is_said_what_is_there_and_how_to_go_on(desk: Desk) -> None:
    plan = call("propose_plan", 1, steps=["Do it"], files=["a.py"])
    with desk.model(plan, *(call("rewrite", 2 + n, file=f"a{n}.py", content="A = 1\n") for n in range(40))) as fake:
        ended = desk.types("run", ASKED, "--yes", "--max-tokens", "40k", **reached(fake))
        assert ended.code == 5, ended.err
        assert "So far, and not verified:" in ended.err
        assert "a0.py" in ended.err
        assert "Look at it with: greenroom diff last" in ended.err
        assert "Allow more: greenroom resume last --max-tokens N" in ended.err
