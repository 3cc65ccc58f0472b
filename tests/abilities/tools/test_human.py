"""A plan is shown before anything changes; what the person says to it is what happens."""

import pytest

from greenroom.abilities.tools.human import (
    AGREED_MESSAGE,
    FOLLOW_ANSWER_MESSAGE,
    PERSON_SAYS_PREFIX,
    PLAN_KEY,
    PLAN_REJECTED_MESSAGE,
    UNATTENDED_MESSAGE,
    ProposePlanTool,
)
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.team_state import value_key
from tests.abilities.tools.calling import T1, Caller, caller

STEPS, FILES = ["Add --json to export", "Test it"], ["cli.py", "tests/test_cli.py"]
SHOWN = "Plan:\n1. Add --json to export\n2. Test it\nTouches: cli.py, tests/test_cli.py"


def guessed(_: object, __: object, files: int) -> str:
    return f"about ${files} (a guess)"


async def answered(team: Caller, words: str) -> str:
    """What is asked; it is answered like this."""
    await team.begin("propose_plan", steps=STEPS, files=FILES)
    assert (await team.runtime.wait(team.team, T1)).state == "waiting"
    (asked,) = (await team.runtime.state(team.team)).approvals.values()
    answer = AnswerApproval(approval_id=asked.approval_id, answer="approved", reason=words)
    await team.runtime.ask(team.team, answer)
    await team.runtime.wait(team.team, T1)
    return asked.question


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("yes", AGREED_MESSAGE),
        ("OK.", AGREED_MESSAGE),
        ("好", AGREED_MESSAGE),
        ("keep CSV", f"{PERSON_SAYS_PREFIX}keep CSV\n{FOLLOW_ANSWER_MESSAGE}"),
    ],
)
async def test_a_plan_is_shown_with_a_guess_and_the_agent_hears_what_is_said_to_it(words: str, told: str) -> None:
    async with caller([ProposePlanTool(guessed)]) as team:
        assert await answered(team, words) == f"{SHOWN} · about $2 (a guess)"
        (step,) = await team.steps()
        assert (step.result or {})["output"] == told
        state = await team.runtime.state(team.team)
        assert state.values[value_key(T1, PLAN_KEY)].content == SHOWN, "it stays on the board"


async def test_who_does_not_want_the_plan_ends_the_work_before_anything_changed() -> None:
    async with caller([ProposePlanTool(guessed)]) as team:
        await answered(team, "no")
        stands = await team.runtime.status(team.team, T1)
    assert (stands.state, stands.reason) == ("failed", PLAN_REJECTED_MESSAGE)


async def test_without_anybody_to_ask_it_goes_on() -> None:
    async with caller([ProposePlanTool(guessed, alone=True)]) as team:
        assert await team.output("propose_plan", steps=STEPS, files=[]) == UNATTENDED_MESSAGE


async def test_what_is_no_plan_is_not_asked_about() -> None:
    async with caller([ProposePlanTool(guessed)]) as team:
        step = await team.call("propose_plan", steps=[], files=FILES)
    assert (step.state, "steps" in step.error) == ("failed", True)
