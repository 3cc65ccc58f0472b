"""The first steps of a run: the checks on the base, and a person who is asked where none of them can judge."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from immutables import Map

from greenroom.app.conversation.start import Wanted
from greenroom.app.jobs.checker import GO_ON, JUDGED, STOPPED, Baseline, ConfirmUnverified, found_in
from greenroom.app.jobs.verdict import BASELINE, CONFIRM, base_report, verdict_in
from greenroom.core.base.ids import AgentId, ApprovalId, StepId
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check, Ran
from greenroom.core.ports.executor import Bench
from greenroom.core.rules.intents import FinishTask
from greenroom.core.state.approval import Approval
from tests.app.jobs.deliveries import AtWork
from tests.app.jobs.log import Story
from tests.app.jobs.projects import checker

TEST = Check(name="unit", line="true", kind="test", why="w.")
LINT = Check(name="lint", line="true", kind="lint", why="w.")
PASSED = Ran(check="unit", digest="d", outcome="passed")
UNABLE = Ran(check="unit", digest="d", outcome="could_not_run", reason="A program is missing: nosuch.")
NOTHING = Wanted()


def at_work(answer: str | None = None, wanted: Wanted = NOTHING) -> AtWork:
    """The step that asks, with a person's answer to it, and the first turn behind it."""
    (first,) = Story().step("converse", given=wanted.data).steps
    (step,) = Story().step(CONFIRM).steps
    approval = ApprovalId("a1") if answer is not None else None
    here = AtWork(evolve(step, state="running", approval=approval))
    here.queues(evolve(first, step_id=StepId("ann#9"), state="init"))
    if answer is not None:
        asked = Approval(
            approval_id=ApprovalId("a1"),
            step_id=step.step_id,
            agent_id=AgentId("ann"),
            task_id=step.task_id,
            question="?",
            digest="?",
            asked_of=None,
            asked_at=0,
            words=True,
            state="approved",
            reason=answer,
        )
        here.world = evolve(here.world, approvals=Map({asked.approval_id: asked}))
    return here


def confirm(root: Path, was: Ran | None, *, allowed: bool = False, alone: bool = False) -> ConfirmUnverified:
    checks = (TEST, LINT) if was is not None else (LINT,)
    base = {"lint": evolve(PASSED, check="lint", kind="lint"), **({"unit": was} if was is not None else {})}
    return ConfirmUnverified(checker(root, *checks, base=base), allowed=allowed, alone=alone)


async def test_the_report_of_the_base_and_the_checks_of_the_project_are_in_the_log(tmp_path: Path) -> None:
    checks = checker(tmp_path, TEST, evolve(TEST, name="bad", line="false"))
    outcome = await Baseline(checks, checks.checks).run(cast("Bench", at_work()))
    story = Story().step(BASELINE, outcome.result)
    report = base_report(story.steps)
    assert report is not None
    assert [entry.outcome for entry in report.checks] == ["passed", "failed"]
    assert (outcome.result or {})["output"] == "Before any change: unit: passes; bad: 1 already fails."
    assert set(report.blobs) <= set(outcome.blobs)
    assert found_in(story.steps) == tuple(checks.checks)
    assert found_in(Story().step("patch", {}).steps) is None
    assert Baseline(checks).targets({}) == ()


@pytest.mark.parametrize(
    ("was", "allowed", "alone", "wanted", "asks"),
    [
        (PASSED, False, False, NOTHING, False),
        (UNABLE, False, False, NOTHING, True),
        (None, False, False, NOTHING, True),
        (UNABLE, True, False, NOTHING, False),
        (UNABLE, False, True, NOTHING, False),
        (UNABLE, False, False, Wanted(allow_unverified=True), False),
    ],
    ids=["a test judges", "none can run", "a linter only", "--yes", "nobody is there", "--allow-unverified"],
)
def test_a_person_is_asked_only_where_no_test_can_judge(
    tmp_path: Path, was: Ran | None, allowed: bool, alone: bool, wanted: Wanted, asks: bool
) -> None:
    here = at_work(wanted=wanted)
    terms = confirm(tmp_path, was, allowed=allowed, alone=alone).terms(here.world, here.step)
    assert (terms.verdict == "ask", terms.words) == (asks, asks)
    if asks and was is not None:
        assert "unit: A program is missing: nosuch" in terms.question


@pytest.mark.parametrize(
    ("answer", "alone", "wanted", "goes_on"),
    [
        ("yes", False, NOTHING, True),
        ("Y.", False, NOTHING, True),
        ("好", False, NOTHING, True),
        ("", False, NOTHING, False),
        ("no", False, NOTHING, False),
        (None, True, NOTHING, False),
        (None, True, Wanted(allow_unverified=True), True),
    ],
)
async def test_it_goes_on_after_a_yes_and_else_ends_before_a_model_is_asked(
    tmp_path: Path, answer: str | None, alone: bool, wanted: Wanted, goes_on: bool
) -> None:
    outcome = await confirm(tmp_path, UNABLE, alone=alone).run(cast("Bench", at_work(answer, wanted)))
    if goes_on:
        assert (outcome.result, outcome.intents) == ({"output": GO_ON}, ())
        return
    (end,) = outcome.intents
    assert isinstance(end, FinishTask)
    assert (end.state, end.summary) == ("finished", STOPPED)
    verdict = verdict_in(Story().step(CONFIRM, outcome.result).steps)
    assert (verdict.state, [reason.code for reason in verdict.reasons]) == ("unverified", ["no_test_judged"])
    assert [(note.check, note.why) for note in verdict.notes] == [("unit", "A program is missing: nosuch")]


async def test_without_any_check_that_is_the_reason(tmp_path: Path) -> None:
    (tmp_path / "app.txt").touch()
    tool = ConfirmUnverified(checker(tmp_path), allowed=False, alone=True)
    assert tool.terms(at_work().world, at_work().step).verdict != "ask"
    outcome = await tool.run(cast("Bench", at_work()))
    verdict = verdict_in(Story().step(CONFIRM, outcome.result).steps)
    assert [reason.code for reason in verdict.reasons] == ["no_checks"]


async def test_where_a_test_can_judge_nothing_is_asked_and_that_is_said(tmp_path: Path) -> None:
    outcome = await confirm(tmp_path, PASSED, alone=True).run(cast("Bench", at_work()))
    assert (outcome.result, outcome.intents) == ({"output": JUDGED}, ())
