"""The last word: what an agent reads of a verdict, and whether it gets another turn or the work ends as it is."""

from __future__ import annotations

import pytest

from greenroom.abilities.checks.syntax import SyntaxFault
from greenroom.app.checks.idle import UNASKED
from greenroom.app.checks.receipts import DELIVER, VERDICT, receipts
from greenroom.app.checks.verdict import Delivered, Verdict
from greenroom.app.jobs.following import TRIES, UNCHANGED, as_it_was, as_kept, follows, spoken, stands
from greenroom.app.talks.founding import turn
from greenroom.app.talks.wanted import Wanted
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import FinishTask, QueueSteps
from greenroom.core.state.step import Step, Terms
from tests.app.checks.log import CLEAN, Story

SAYS = Delivered(tree="new", says="It is done.")
FAILS = Verdict(state="unproven", missing=("'pytest' fails: test_a.",))


def says(text: str) -> Delivered:
    return Delivered(tree="new", says=text)


def step() -> Step:
    (one,) = Story().step("deliver").steps
    return one


def delivered_before(times: int, found: Verdict = FAILS) -> list[Step]:
    story = Story()
    for _ in range(times):
        story.step(DELIVER, {VERDICT: dict(as_kept(found))})
    return story.steps


def asked(story: Story, **wanted: bool) -> list[Step]:
    """These steps, after a person has said beforehand what they want."""
    first = evolve(step(), work=turn("What?", "", Wanted(**wanted)))
    return [first, *story.steps]


def with_receipt(found: Verdict) -> Verdict:
    return evolve(found, receipts=receipts(Story().checked(CLEAN).steps))


def test_verified_work_ends_with_its_receipts_as_evidence() -> None:
    end = follows(step(), SAYS, with_receipt(Verdict(state="verified")), ())
    assert isinstance(end, FinishTask)
    assert (end.state, end.summary, end.evidence) == ("finished", "It is done.", ("pytest: clean, step ann#1",))


@pytest.mark.parametrize(
    ("found", "delivered"),
    [
        (with_receipt(FAILS), SAYS),
        (evolve(FAILS, claims=("`b.py` is not there.",)), SAYS),
        (evolve(FAILS, changed=("test_a.py was edited.",)), SAYS),
        (FAILS, evolve(SAYS, broken=(SyntaxFault(path="a.py", line=1, said="x"),))),
    ],
    ids=["a check fails", "a claim is untrue", "a judge was changed", "a file is broken"],
)
def test_who_can_mend_it_hears_what_is_missing_a_few_times_and_then_it_ends(
    found: Verdict, delivered: Delivered
) -> None:
    for tried in range(TRIES - 1):
        again = follows(step(), delivered, found, delivered_before(tried))
        assert isinstance(again, QueueSteps)
        assert [one.executor for one in again.works] == ["converse"]
    end = follows(step(), delivered, found, delivered_before(TRIES - 1))
    assert isinstance(end, FinishTask)
    assert end.state == "failed"
    assert end.summary.startswith("It is done.\n\nNot verified:\n- 'pytest' fails: test_a.")


def test_where_nothing_can_be_checked_nobody_is_asked_again() -> None:
    end = follows(step(), SAYS, Verdict(state="unproven", missing=("No check was run.",)), ())
    assert isinstance(end, FinishTask)
    assert end.state == "failed"


def test_an_agent_reads_what_is_not_proven_what_it_changed_and_what_is_not_so() -> None:
    assert spoken(with_receipt(Verdict(state="verified"))).startswith("Verified:")
    assert spoken(Verdict(state="verified")).startswith("No file was changed, so nothing was checked")
    told = spoken(evolve(FAILS, changed=("test_a.py was edited.",), claims=("`b.py` is not there.",)))
    assert told.splitlines()[:6] == [
        "Not proven:",
        "- 'pytest' fails: test_a.",
        "Changed by the work itself:",
        "- test_a.py was edited.",
        "Said, and not so:",
        "- `b.py` is not there.",
    ]


def test_a_verdict_is_kept_with_its_receipts() -> None:
    kept = as_kept(with_receipt(FAILS))
    assert kept["state"] == "unproven"
    assert kept["missing"] == ["'pytest' fails: test_a."]
    assert kept["receipts"] == [{"check": "pytest", "outcome": "clean", "exit": 0, "tree": "new", "step": "ann#1"}]


def test_where_nothing_was_changed_an_answer_counts_only_if_a_question_was_asked() -> None:
    looked = Story().step("read_code")
    found = as_it_was(FAILS, looked.steps, says("It is green."))
    assert (found.verified, found.missing, found.claims) == (False, (UNASKED,), ())
    assert stands(found)
    end = follows(step(), says("It is green."), found, looked.steps)
    assert isinstance(end, FinishTask), "the agent can do nothing about it"
    assert (end.state, end.summary) == ("failed", "It is green."), "what it said is kept as it is"
    assert as_it_was(FAILS, asked(looked, question=True), says("It is green.")).verified
    assert as_it_was(FAILS, asked(Story().edit(), question=True), says("Added `json` in 2020.")).verified
    assert not as_it_was(FAILS, asked(looked, tests_may_change=True), says("It is green.")).verified


def test_who_set_out_to_change_files_and_has_not_hears_of_it() -> None:
    found = as_it_was(FAILS, Story().edit().steps, says("It is green."))
    assert (found.verified, found.claims) == (False, (UNCHANGED,))
    assert not stands(found)


def test_a_question_is_not_answered_by_what_is_untrue() -> None:
    found = as_it_was(evolve(FAILS, claims=("`b.py` is not there.",)), asked(Story(), question=True), says("See b.py."))
    assert (found.verified, found.claims) == (False, ("`b.py` is not there.",))


def test_who_has_changed_only_tests_hears_it_once_and_what_they_say_is_kept() -> None:
    found = with_receipt(Verdict(state="unproven", changed=("test_a.py was deleted.",), only_tests=True))
    assert isinstance(follows(step(), SAYS, found, ()), QueueSteps)
    assert isinstance(follows(step(), SAYS, found, delivered_before(1)), QueueSteps), "it has not heard of tests yet"
    end = follows(step(), SAYS, found, delivered_before(1, found))
    assert isinstance(end, FinishTask)
    assert (end.state, end.summary) == ("failed", "It is done.")
    assert as_kept(found)["stands"] is True
    assert as_kept(evolve(found, missing=("'pytest' fails: test_b.",)))["stands"] is False
    assert as_kept(Verdict(state="verified"))["stands"] is False


def test_where_nothing_was_changed_nothing_was_done_whatever_is_said() -> None:
    lie = says("Added `json` support to `export.py`, with tests.")
    found = as_it_was(with_receipt(FAILS), Story().steps, lie)
    assert (found.verified, found.receipts) == (False, ())
    assert found.claims == ("It says 'Added', and nothing was changed.",)


def test_who_has_only_looked_is_not_done_and_who_acted_elsewhere_may_be() -> None:
    looked, stamped = Story().step("read_code").step("run_checks").steps, Story().step("stamp").steps
    claims = as_it_was(FAILS, looked, says("Done.")).claims
    assert claims == ("It says 'Done', and nothing was changed.",)
    assert not as_it_was(FAILS, [evolve(stamped[0], terms=Terms(effect="pure"))], says("Done.")).verified, "it looked"
    assert as_it_was(FAILS, stamped, says("Done.")).verified


def test_an_answer_beside_which_something_lies_that_nobody_gets_is_no_answer() -> None:
    left = evolve(says("It is green."), left_out=("'sub' is a repository of its own.",))
    found = as_it_was(FAILS, asked(Story(), question=True), left)
    assert (found.state, found.missing, found.claims) == ("unproven", left.left_out, ())
    assert isinstance(follows(step(), left, found, ()), QueueSteps), "who left it there can take it away"
