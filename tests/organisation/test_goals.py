"""What a step is told to do: its goal alone. Who does it and how its skill goes is told beside it, and kept nowhere."""

import pytest

from greenroom.core.base.ids import AgentId
from greenroom.core.state.mas_format import format_step
from tests.abilities.skills.planned.planners import DONE, NOTHING_MORE, planner, said, step, tool
from tests.organisation.crowd import crowd

ADA = AgentId("ada")
WHO = "Has tasted every leaf of Uji."
HOW = "You run a step of the skill"
LINES = {
    ("ada", "planning"): [said("planning", [step("think", "Weigh both teas."), tool("echo", "Say which is milder.")])],
    ("ada", "think"): [said("think", "Sencha is milder.")],
    ("ada", "instruction_generation"): [said("instruction_generation", {"text": "Sencha"})],
    ("ada", "reflection"): [NOTHING_MORE],
    ("ada", "summary"): [DONE],
}


@pytest.mark.req("MAS-85", "MAS-86")
async def test_the_text_of_a_step_is_its_goal_without_who_does_it_and_how_its_skill_goes() -> None:
    async with crowd(LINES, specs={"ada": planner("ada", profile=WHO)}) as here:
        await here.work({"ada": "Compare two teas."})
        told = {one.work.executor: format_step(one) for one in await here.steps(ADA)}
        assert (told["think"]["type"], told["think"]["text_content"]) == ("skill", "Weigh both teas.")
        assert (told["echo"]["type"], told["echo"]["text_content"]) == ("tool", "Say which is milder.")
        assert told["echo"]["instruction_content"] == {"text": "Sencha"}
        assert "Compare two teas." in str(told["planning"]["text_content"])
        for skill in told.keys() - {"echo"}:
            asked, kept = here.model.told(skill), str(told[skill]["text_content"])
            assert WHO in asked
            assert HOW in asked
            assert kept in asked, "and the goal is what the model reads"
            assert WHO not in kept
            assert HOW not in kept
        assert "Say which is milder." in here.model.told("instruction_generation")
