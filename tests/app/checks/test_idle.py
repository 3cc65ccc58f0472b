"""Who has changed nothing may say how things are; who has used other tools may have done something elsewhere."""

from __future__ import annotations

import pytest

from greenroom.app.checks.idle import UNASKED, idle_doubts
from greenroom.app.checks.receipts import ASKING
from greenroom.app.talks.founding import turn
from greenroom.app.talks.wanted import Wanted
from greenroom.core.base.records import evolve
from tests.app.checks.log import Story

FIXED = "I fixed it."


@pytest.mark.parametrize("story", [Story(), Story().step("read_code"), Story().step("save_memory", state="failed")])
def test_who_has_only_looked_has_done_nothing(story: Story) -> None:
    said = "It says 'I fixed', and nothing was changed."
    assert idle_doubts(story.steps, FIXED) == (UNASKED, said, ASKING)
    assert idle_doubts(story.steps, "It subtracts.") == (UNASKED, ASKING)


def test_who_was_asked_a_question_may_answer_it_and_ran_no_check() -> None:
    (first,) = Story().step("read_code").steps
    steps = [evolve(first, work=turn("What?", "", Wanted(question=True)))]
    assert idle_doubts(steps, "It subtracts.") == ()
    assert len(idle_doubts(steps, "All tests pass.")) == 1
    assert idle_doubts([evolve(steps[0], cause=first.step_id)], "It subtracts."), "an agent cannot say that for them"


def test_who_has_used_another_tool_may_have_done_it_elsewhere_but_ran_no_check() -> None:
    story = Story().step("save_memory")
    assert idle_doubts(story.steps, "I added it to what I know.") == ()
    assert len(idle_doubts(story.steps, "All tests pass.")) == 1
