"""Jobs where nobody is there: what programs read, how it ends, and what is taken over at once."""

import threading
from pathlib import Path

import pytest

from tests.e2e.jobs import PERSON, call, done
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import PATIENCE, Running
from tests.e2e.workshop import Workshop, turns
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

PLAN = call("propose_plan", 9, steps=["Do it"], files=["app.txt"])
GOOD = (PLAN, turns("good, red"), done("It is red."))
ALONE = ("--non-interactive", "--output-format", "json")


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_what_needs_a_yes_is_not_done_and_a_question_is_decided_by_itself(shop: Workshop) -> None:
    wants = call("web_fetch", 1, url="http://127.0.0.1:9/x")
    asks = call("ask_user", 2, question="Which colour?")
    with provider([wants, asks, turns("good, red", 3), done("It is red.")]) as fake:
        ended = shop.types("run", "Paint it.", *ALONE, **reached(fake))
        heard = str(fake.requests[-1].body["messages"])
    assert ended.code == 0, ended.out
    assert "Decide yourself" in heard


def test_a_check_that_nobody_confirmed_proves_behind_walls_and_without_them_nothing(tmp_path: Path) -> None:
    makefile = "check:\n\tpython3 check.py\n"
    shop = Workshop(tmp_path, own="", Makefile=makefile)
    told = shop.runs([*GOOD], "Paint it.", *ALONE)
    assert (told.code, told.json["verified"]) == (0, True), told.out
    bare = shop.runs([*GOOD], "Paint it.", *ALONE, GREENROOM_SANDBOX="off")
    assert (bare.code, bare.json["verified"], bare.json["tokens"]) == (7, False, 0)
    assert "no_checks" in str(bare.json["verdict"])


def test_the_plan_stays_on_the_board_and_what_is_told_meanwhile_is_read_in_the_next_turn(shop: Workshop) -> None:
    asked, told = threading.Event(), threading.Event()

    def held(_: dict[str, object], __: int) -> Answer:
        asked.set()
        assert told.wait(PATIENCE)
        return turns("good, red")

    words = ("run", "Paint it.", "--yes")
    around = {"GREENROOM_SANDBOX": "auto", **PERSON}
    with provider([PLAN, held, done("It is red."), done("It is dark red.")]) as fake:
        through = ("env", "-C", str(shop.repo))
        with Running(shop.home, *words, through=through, **around, **reached(fake)) as running:
            assert asked.wait(PATIENCE)
            board = rows(shop.types("show", "last", "--output-format", "json").json["tasks"])[0]["board"]
            said = shop.types("tell", "last", "A dark one.")
            told.set()
            ended = running.end()
        assert said.code == 0
        assert ended.code == 0, ended.err
        assert "A dark one." in str(fake.requests[2].body["messages"])
    assert board == {"plan": "Plan:\n1. Do it\nTouches: app.txt"}
    assert "  1. Do it\n  Touches: app.txt" in shop.types("show", "last").out, "also when it is over"


def rows(found: object) -> list[dict[str, object]]:
    assert isinstance(found, list)
    return found
