"""Jobs where nobody is there: what programs read, how it ends, and what is taken over at once."""

import threading
from pathlib import Path

import pytest

from tests.e2e.provider import provider, reached
from tests.e2e.terminal import PATIENCE, Running
from tests.e2e.workshop import PERSON, Workshop, call, done, git, turns
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

PLAN = call("propose_plan", 9, steps=["Do it"], files=["app.txt"])
GOOD = (PLAN, turns("good, red"), done("It is red."))
BAD = (PLAN, turns("bad"), *(done("I could not."),) * 3)
ALONE = ("--non-interactive", "--output-format", "json")


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_a_program_reads_what_changed_what_proves_it_what_it_cost_and_whose_it_is(shop: Workshop) -> None:
    with provider([*GOOD]) as fake:
        ended = shop.types("run", "-", *ALONE, stdin="Paint it.\n", **reached(fake))
        assert "Paint it." in str(fake.requests[0].body["messages"]), "the task was piped in"
        assert "Nobody is asked." in str(fake.requests[1].body["messages"]), "the plan needs no yes"
    told = ended.json
    assert (ended.code, told["exit_code"], told["status"], told["verified"]) == (0, 0, "finished", True)
    assert told["answer"] == "It is red."
    assert "+good, red" in str(told["diff"])
    assert told["changes"] == [{"path": "app.txt", "kind": "changed", "added": 1, "removed": 1}]
    verdict = told["verdict"]
    assert isinstance(verdict, dict)
    (receipt,) = verdict["receipts"]
    assert (receipt["check"], receipt["outcome"], receipt["exit"]) == ("quick", "passed", 0)
    report = told["report"]
    assert isinstance(report, list)
    assert report[0] == "1 file changed, +1 −1"
    assert float(str(told["cost"])) > 0
    assert shop.types("show", str(told["team"])).code == 0


def test_a_stream_has_typed_lines_and_the_same_result_as_the_last(shop: Workshop) -> None:
    ended = shop.runs([*GOOD], "Paint it.", "--non-interactive", "--output-format", "stream-json")
    kinds = [str(line["type"]) for line in ended.lines]
    assert (kinds[0], kinds[-1]) == ("init", "result")
    assert {"StepQueued", "StepEnded", "TaskEnded"} <= set(kinds)
    assert (ended.lines[-1]["verified"], ended.lines[-1]["exit_code"]) == (True, 0)
    assert "+good, red" in str(ended.lines[-1]["diff"])


def test_what_is_not_verified_never_ends_with_zero_and_is_not_taken_over(shop: Workshop) -> None:
    ended = shop.runs([*BAD], "Paint it.", *ALONE, "--apply")
    told = ended.json
    assert (ended.code, told["exit_code"], told["verified"]) == (1, 1, False)
    assert told["taken"] == {"status": "not_taken", "why": "Not applied: it is not verified."}
    assert "new_failures" in str(told["verdict"])
    assert shop.reads() == "good\n"


def test_a_verified_change_is_applied_at_once_as_one_commit(shop: Workshop) -> None:
    ended = shop.runs([*GOOD], "Paint it.", *ALONE, "--apply")
    taken = ended.json["taken"]
    assert isinstance(taken, dict)
    assert (ended.code, taken["status"], taken["paths"]) == (0, "applied", ["app.txt"])
    assert (shop.reads(), git(shop.repo, "log", "-1", "--format=%an %s").strip()) == ("good, red\n", "Pia Paint it.")
    assert taken["commit"] == git(shop.repo, "rev-parse", "HEAD").strip()


def test_it_is_put_on_a_branch_at_once_and_a_name_that_is_taken_is_refused_before_anybody_is_asked(
    shop: Workshop,
) -> None:
    ended = shop.runs([*GOOD], "Paint it.", "--yes", "--branch", "red")
    assert ended.code == 0, ended.err
    assert "red is at" in ended.err
    assert ended.out == "It is red.\n", "what was done is said beside the answer"
    assert git(shop.repo, "show", "red:app.txt") == "good, red\n"
    assert shop.reads() == "good\n"
    with provider([*GOOD]) as fake:
        again = shop.types("run", "Paint it.", *ALONE, "--branch", "red", **reached(fake))
        assert (again.code != 0, fake.requests) == (True, [])
    assert "There is a branch 'red' already" in f"{again.out}{again.err}"
    assert shop.types("branch", "last", "redder").code == 0


@pytest.mark.prove
def test_files_that_are_in_the_way_are_named_and_nothing_is_taken(shop: Workshop) -> None:
    def slow(_: dict[str, object], __: int) -> Answer:
        shop.puts("app.txt", "good as gold\n")
        return done("It is red.")

    ended = shop.runs([PLAN, turns("good, red"), slow], "Paint it.", *ALONE, "--apply")
    taken = ended.json["taken"]
    assert isinstance(taken, dict)
    assert (ended.code, taken["status"]) == (1, "clash")
    assert "app.txt" in str(taken["clashes"])
    assert shop.reads() == "good as gold\n"


def test_an_answer_to_a_question_ends_well_and_no_check_is_said_to_have_run(shop: Workshop) -> None:
    ended = shop.runs([done("It is green.")], "Which colour?", "--question", *ALONE, stdin="the log\n")
    told = ended.json
    assert (ended.code, told["verified"], told["answered"], told["answer"]) == (0, False, True, "It is green.")
    assert "'state': 'answered'" in str(told["verdict"]), "and no other word beside these"
    ended = shop.runs([done("It is green.")], "Which colour?", "--yes", "--question")
    assert ended.code == 0, ended.err
    assert "No file was changed, so nothing was checked." in ended.err
    assert "✓ Answered:" in ended.err
    assert "✓ Verified" not in ended.err


@pytest.mark.parametrize("said", ["The app takes --json from here on, and three tests cover it.", "All set!"])
def test_whoever_changes_nothing_and_was_asked_no_question_has_proven_nothing(shop: Workshop, said: str) -> None:
    ended = shop.runs([call("read_code", 1, file="app.txt"), done(said)], "Add --json, with tests.", *ALONE)
    told = ended.json
    assert (ended.code, told["verified"], told["answered"], told["answer"]) == (7, False, False, said)
    ended = shop.runs([done(said)], "Add --json, with tests.", "--yes")
    assert (ended.code, ended.out) == (7, f"{said}\n"), "what it says is printed all the same"
    assert "? Unverified: " in ended.err
    assert "--question" in ended.err


@pytest.mark.prove
def test_what_is_changed_in_spite_of_a_question_is_unverified_for_nothing_ran_before(shop: Workshop) -> None:
    ended = shop.runs([PLAN, turns("good, red"), done("It is red.")], "Which colour?", "--question", *ALONE)
    assert (ended.code, ended.json["verified"], ended.json["answered"]) == (7, False, False)


def test_what_cannot_be_meant_is_refused_before_anything_begins(shop: Workshop) -> None:
    for words in (("--question", "--apply"), ("--tests-may-change", "--in-place")):
        ended = shop.types("run", "Paint it.", *words)
        assert (ended.code, "Leave" in ended.err) == (2, True)


@pytest.mark.parametrize("take", [("--apply",), ("--branch", "red")])
def test_who_orders_a_change_and_gets_none_hears_that_there_is_nothing_to_take(
    shop: Workshop, take: tuple[str, ...]
) -> None:
    ended = shop.runs([done("It is green.")], "Which colour?", *ALONE, *take)
    told = ended.json
    assert (ended.code, told["status"], told["answered"], told["answer"]) == (7, "unverified", False, "It is green.")
    assert "nothing to apply" in str(told["taken"])


def test_what_needs_a_yes_is_not_done_and_a_question_is_decided_by_itself(shop: Workshop) -> None:
    wants = call("web_fetch", 1, url="http://127.0.0.1:9/x")
    asks = call("ask_user", 2, question="Which colour?")
    with provider([wants, asks, turns("good, red", 3), done("It is red.")]) as fake:
        ended = shop.types("run", "Paint it.", *ALONE, **reached(fake))
        heard = str(fake.requests[-1].body["messages"])
    assert ended.code == 0, ended.out
    assert "Decide yourself" in heard


def test_without_a_terminal_and_without_the_option_a_plan_waits_and_is_answered_later(shop: Workshop) -> None:
    with provider([*GOOD]) as fake:
        parked = shop.types("run", "Paint it.", "--apply", "--output-format", "json", **reached(fake))
        told = parked.json
        assert (parked.code, told["status"], told["verified"]) == (6, "waiting", False)
        assert "not over yet" in str(told["taken"])
        asked = f"{told['team']} has changed nothing yet: it waits for your answer to “Plan: 1. Do it"
        for words in (("apply", "last"), ("branch", "last", "red")):
            early = shop.types(*words)
            assert (early.code, asked in early.err) == (2, True), early.err
            assert f"Answer with: greenroom answer {told['team']} yes, or no, or " in early.err
        assert 'yes   (or no, or "what to do differently")' in shop.types("approvals", "list").err
        assert shop.types("answer", "last", "yes").code == 0
        left = shop.types("apply", "last").err
        assert f"nothing yet: nobody works on it now. Go on with: greenroom resume {told['team']}." in left
        ended = shop.types("resume", "last", "--apply", **reached(fake))
    assert ended.code == 0, ended.err
    assert shop.reads() == "good, red\n"
    late = shop.types("resume", "last", "--branch", "red")
    assert late.code == 2
    assert "Nothing is left to do" in late.err
    assert "branch" in late.err


@pytest.mark.prove
def test_a_plan_that_is_answered_with_no_ends_the_job(shop: Workshop) -> None:
    with provider([*GOOD]) as fake:
        assert shop.types("run", "Paint it.", **reached(fake)).code == 6
        assert shop.types("answer", "last", "no").code == 0
        ended = shop.types("resume", "last", **reached(fake))
    assert (ended.code, len(fake.requests)) == (1, 1)
    assert "did not want this plan" in ended.err


def test_a_check_that_nobody_confirmed_proves_behind_walls_and_without_them_nothing(tmp_path: Path) -> None:
    makefile = "check:\n\tpython3 check.py\n"
    shop = Workshop(tmp_path, own="", Makefile=makefile)
    told = shop.runs([*GOOD], "Paint it.", *ALONE)
    assert (told.code, told.json["verified"]) == (0, True), told.out
    bare = shop.runs([*GOOD], "Paint it.", *ALONE, GREENROOM_SANDBOX="off")
    assert (bare.code, bare.json["verified"], bare.json["tokens"]) == (7, False, 0)
    assert "no_checks" in str(bare.json["verdict"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--apply", "--branch", "x"), "Either --apply or --branch"),
        (("--apply", "--in-place"), "There is no copy"),
        (("--branch", "x", "--no-tools"), "There is no copy"),
    ],
)
def test_wishes_that_do_not_go_together_are_refused_at_once(shop: Workshop, words: tuple[str, ...], why: str) -> None:
    refused = shop.types("run", "Paint it.", *words)
    assert refused.code == 2
    assert why in refused.err


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
