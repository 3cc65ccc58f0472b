"""Who has changed nothing may say how things are; who has used other tools may have done something elsewhere."""

from __future__ import annotations

import pytest

from greenroom.app.checks.idle import idle_claims
from tests.app.checks.log import Story

FIXED = "I fixed it."


@pytest.mark.parametrize("story", [Story(), Story().step("read_code"), Story().step("save_memory", state="failed")])
def test_who_has_only_looked_has_done_nothing(story: Story) -> None:
    assert idle_claims(story.steps, FIXED) == ("It says 'I fixed', and nothing was changed.",)
    assert idle_claims(story.steps, "It subtracts.") == ()


def test_who_has_used_another_tool_may_have_done_it_elsewhere_but_ran_no_check() -> None:
    story = Story().step("save_memory")
    assert idle_claims(story.steps, "I added it to what I know.") == ()
    assert len(idle_claims(story.steps, "All tests pass.")) == 1
