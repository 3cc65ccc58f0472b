"""The last word: what an agent reads of a verdict, and whether it gets another turn or the work ends as it is."""

from __future__ import annotations

import pytest

from greenroom.abilities.checks.syntax import SyntaxFault
from greenroom.app.checks.receipts import receipts
from greenroom.app.checks.verdict import Delivered, Verdict
from greenroom.app.jobs import delivering
from greenroom.app.jobs.delivering import TRIES, UNCHANGED, as_kept, spoken
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import FinishTask, QueueSteps
from greenroom.core.state.step import Step
from tests.app.checks.log import CLEAN, Story

SAYS = Delivered(tree="new", says="It is done.")
FAILS = Verdict(state="unproven", missing=("'pytest' fails: test_a.",))


def says(text: str) -> Delivered:
    return Delivered(tree="new", says=text)


def step() -> Step:
    (one,) = Story().step("deliver").steps
    return one


def with_receipt(found: Verdict) -> Verdict:
    return evolve(found, receipts=receipts(Story().checked(CLEAN).steps))


def test_verified_work_ends_with_its_receipts_as_evidence() -> None:
    end = delivering._next(step(), SAYS, with_receipt(Verdict(state="verified")), 1)
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
    for tried in range(1, TRIES):
        again = delivering._next(step(), delivered, found, tried)
        assert isinstance(again, QueueSteps)
        assert [one.executor for one in again.works] == ["converse"]
    end = delivering._next(step(), delivered, found, TRIES)
    assert isinstance(end, FinishTask)
    assert end.state == "failed"
    assert end.summary.startswith("It is done.\n\nNot verified:\n- 'pytest' fails: test_a.")


def test_where_nothing_can_be_checked_nobody_is_asked_again() -> None:
    end = delivering._next(step(), SAYS, Verdict(state="unproven", missing=("No check was run.",)), 1)
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


def test_where_nothing_was_changed_an_answer_counts_unless_a_change_was_meant() -> None:
    assert delivering._as_it_was(FAILS, Story().step("read_code").steps, says("It is green.")).verified
    found = delivering._as_it_was(FAILS, Story().edit().steps, says("It is green."))
    assert (found.verified, found.claims) == (False, (UNCHANGED,))


def test_where_nothing_was_changed_nothing_was_done_whatever_is_said() -> None:
    lie = says("Added `json` support to `export.py`, with tests.")
    found = delivering._as_it_was(with_receipt(FAILS), Story().steps, lie)
    assert (found.verified, found.receipts) == (False, ())
    assert found.claims == ("It says 'Added', and nothing was changed.",)


def test_who_has_only_looked_is_not_done_and_who_acted_elsewhere_may_be() -> None:
    looked, stamped = Story().step("read_code").step("run_checks").steps, Story().step("stamp").steps
    claims = delivering._as_it_was(FAILS, looked, says("Done.")).claims
    assert claims == ("It says 'Done', and nothing was changed.",)
    assert delivering._as_it_was(FAILS, stamped, says("Done.")).verified


def test_an_answer_beside_which_something_lies_that_nobody_gets_is_no_answer() -> None:
    left = evolve(says("It is green."), left_out=("'sub' is a repository of its own.",))
    found = delivering._as_it_was(FAILS, (), left)
    assert (found.state, found.missing, found.claims) == ("unproven", left.left_out, ())
    assert isinstance(delivering._next(step(), left, found, 1), QueueSteps), "who left it there can take it away"
