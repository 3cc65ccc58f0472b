"""What jumps the queue never comes between an instruction and the tool that it is for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from greenroom.core.base.ids import AgentId, StepId
from greenroom.core.state.message import Message
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from tests.abilities.skills.planned.planners import DONE, KIM, NOTHING_MORE, Line, said, step, tool
from tests.organisation.crowd import Crowd, crowd

ADA = AgentId("ada")
LINES: dict[tuple[str, str], Sequence[Line]] = {
    ("ada", "planning"): [said("planning", [step("quick_think"), tool()])],
    ("ada", "quick_think"): [said("quick_think", "x")],
    ("ada", "instruction_generation"): [said("instruction_generation", {"text": "hello"})],
    ("ada", "process_message"): [said("process_message", "I see.")],
    ("ada", "reflection"): [NOTHING_MORE],
    ("ada", "summary"): [DONE],
}


def runs(skill: str, state: TeamState) -> bool:
    """Whether Ada is in the middle of this."""
    name = state.agents[ADA].running
    return name is not None and state.steps[name].work.executor == skill


async def interrupted(here: Crowd, skill: str) -> None:
    """Kim says something to Ada while she is in the middle of this."""
    gate = here.hold(ADA, skill)
    await here.work({"ada": "use it"}, wait=False)
    await here.until(lambda state: runs(skill, state))
    await here.says(ADA, "By the way.")
    gate.set()


@pytest.mark.req("MAS-92", "MAS-145", "MAS-239")
async def test_before_an_instruction_is_written_a_new_step_goes_before_it() -> None:
    async with crowd(LINES, "ada") as here:
        await interrupted(here, "quick_think")
        await here.rest()
        done = "planning quick_think process_message instruction_generation echo reflection summary"
        assert " ".join(await here.did(ADA)) == done
        assert (await here.result("echo"))["output"] == "hello"


@pytest.mark.req("MAS-93", "MAS-125", "MAS-145")
async def test_while_it_is_written_nothing_comes_in_between_and_then_the_tool_has_it() -> None:
    async with crowd(LINES, "ada") as here:
        reading = here.hold(ADA, "process_message")
        await interrupted(here, "instruction_generation")
        await here.until(lambda state: runs("process_message", state))
        waiting = (await here.state()).steps[StepId("ada#4")]
        assert (waiting.work.executor, waiting.state) == ("echo", "init")
        assert waiting.work.instruction_content == {"text": "hello"}, "it is written, whatever comes before it now"
        assert waiting.result is None
        reading.set()
        await here.rest()
        order = "planning quick_think instruction_generation process_message echo reflection summary"
        assert " ".join(await here.did(ADA)) == order
        done: Step = next(one for one in await here.steps(ADA) if one.work.executor == "echo")
        assert (done.work.instruction_content, (done.result or {})["output"]) == ({"text": "hello"}, "hello")


@pytest.mark.req("MAS-258")
async def test_a_message_has_all_fields_of_the_source_and_an_instruction_is_one_that_says_so() -> None:
    """It is never read out of a text that somebody wrote: it is data of its own, which only the house writes."""
    async with crowd(LINES, "ada") as here:
        await interrupted(here, "quick_think")
        await here.rest()
        (said_,) = [one for one in await here.messages() if one.sender_id == KIM]
        fields = ("task_id", "sender_id", "receiver", "message", "stage_relative", "need_reply", "waiting")
        assert [getattr(said_, one) for one in (*fields, "return_waiting_id")] == [
            "t1",
            "kim",
            ("ada",),
            "By the way.",
            "no_relative",
            False,
            None,
            None,
        ]
        assert said_.data is None
        task = await _ended(here)
        assert (task.kind, task.data) == (
            "instruction",
            {"instruction": "finish_task", "task_id": "t1", "state": "finished"},
        )


async def _ended(here: Crowd) -> Message:
    await here.finish()
    return (await here.messages())[-1]
