"""Long-tail tools: after each call a decision, until the agent ends it. Also when the call failed."""

import pytest

from greenroom.abilities.tools.tool import LongTailTool, wrap_long_tail
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import ModelFault, ProviderFault, WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import Work
from tests.abilities.skills.planned.digging import SPEC, Dig
from tests.abilities.skills.planned.planners import (
    ANN,
    DONE,
    NOTHING_MORE,
    House,
    house,
    lines,
    message,
    planner,
    said,
    step,
    tool,
)
from tests.abilities.tools.test_browser_use import StagedBrowser, StagedMind
from tests.abilities.tools.test_browser_use import tool as browser_use


def decided(decision: str, direction: str = "deeper") -> str:
    return said("tool_decision", {"decision": decision, "direction": direction})


FILLED = said("instruction_generation", {"where": "here"})
TOLD = lines(
    planning=[said("planning", [tool("dig", "Find gold."), step("quick_think")])],
    instruction_generation=[FILLED],
    quick_think=[said("quick_think", "x")],
    reflection=[NOTHING_MORE],
    summary=[DONE],
)
SPECS = {ANN: planner("ann", tools=("dig", "echo"))}


async def dug(here: House) -> list[str]:
    assert await here.stage("Dig.") == "finished"
    return (await here.did(ANN))[1:-2]


@pytest.mark.req("MAS-104", "MAS-178", "MAS-179", "MAS-180", "MAS-182", "MAS-183")
@pytest.mark.req("MAS-185", "MAS-188", "MAS-189", "MAS-211")
async def test_a_tool_is_used_again_until_the_agent_ends_it() -> None:
    told = TOLD | lines(
        tool_decision=[decided("continue", "Left of it."), decided("continue"), decided("end", "Gold.")]
    )
    async with house(told, specs=SPECS, executors=[wrap_long_tail(Dig())], tools=[SPEC]) as here:
        use = ["instruction_generation", "dig", "tool_decision"]
        assert await dug(here) == [*use * 3, "quick_think"]
        directions = [one.work.text_content for one in await here.steps(ANN) if one.work.executor == "dig"]
        assert directions == ["Find gold.", "Left of it.", "deeper"]
        assert "Left of it." in here.model.told("instruction_generation", 1)
        assert (await here.result("tool_decision"))["tool_decision"] == {
            "tool_name": "dig",
            "decision": "end",
            "direction": "Gold.",
        }


@pytest.mark.req("MAS-184", "MAS-209", "MAS-213", "MAS-217", "MAS-218")
async def test_a_decision_reads_why_the_tool_was_begun_all_results_and_all_decisions() -> None:
    told = TOLD | lines(tool_decision=[decided("continue", "Left of it."), decided("end")])
    async with house(told, specs=SPECS, executors=[wrap_long_tail(Dig())], tools=[SPEC]) as here:
        await dug(here)
        shown = here.model.told("tool_decision", 1)
        begin = shown.index("# tool_history")
        assert shown.index("# current_step") < begin < shown.index("# persistent_memory\n")
        assert "# history_step" not in shown
        order = ["The tool `dig` was begun for this:", "Find gold.", "depth 1", "Left of it.", "depth 2"]
        places = [shown.index(one, begin) for one in order]
        assert places == sorted(places)


@pytest.mark.req("MAS-178", "MAS-188")
@pytest.mark.parametrize("hit", [ModelFault("rock"), WorldFault("rock"), OSError("rock")])
async def test_a_call_that_fails_is_decided_about_too(hit: Exception) -> None:
    told = TOLD | lines(tool_decision=[decided("continue", "Around it."), decided("end")])
    async with house(told, specs=SPECS, executors=[wrap_long_tail(Dig(hit))], tools=[SPEC]) as here:
        assert (await dug(here))[:4] == ["instruction_generation", "!dig", "tool_decision", "instruction_generation"]
        assert "rock" in here.model.told("tool_decision")


@pytest.mark.parametrize(
    ("bad", "why"),
    [({"decision": "continue", "direction": " "}, "say in `direction`"), ({"decision": "maybe"}, "does not fit")],
)
async def test_a_decision_that_says_nothing_is_made_again(bad: Data, why: str) -> None:
    told = TOLD | lines(tool_decision=[said("tool_decision", bad), decided("continue"), decided("end")])
    async with house(told, specs=SPECS, executors=[wrap_long_tail(Dig())], tools=[SPEC]) as here:
        done = await dug(here)
        assert done.count("dig") == 2
        assert done[2:4] == ["!tool_decision", "tool_decision"]
        assert why in here.model.told("tool_decision", 1)
        assert "depth 1" in here.model.told("tool_decision", 2)


@pytest.mark.req("MAS-214")
async def test_a_message_that_is_answered_in_between_does_not_break_the_chain() -> None:
    asks = said("send_message", message("ann", text="Well?", need_reply=True, waiting=True, stage_relative="t1.s1"))
    told = TOLD | lines(
        tool_decision=[decided("continue")] * 6 + [decided("end")],
        send_message=[said("send_message", message("bob", text="I dig.", stage_relative="t1.s1"))],
        bob_planning=[said("planning", [step("send_message", "Ask Ann.")])],
        bob_send_message=[asks],
        bob_process_message=[said("process_message", "ok")],
        bob_reflection=[NOTHING_MORE],
        bob_summary=[DONE],
    )
    async with house(told, specs=SPECS, executors=[wrap_long_tail(Dig())], tools=[SPEC]) as here:
        assert await here.stage("Dig.", "Ask.") == "finished"
        done = await here.did(ANN)
        last = max(place for place, name in enumerate(done) if name == "tool_decision")
        assert "send_message" in done[:last]
        shown = here.model.told("tool_decision", 6)
        assert all(f"depth {number}" in shown for number in range(1, 8))


async def test_who_talks_decides_by_itself() -> None:
    talker = planner("ann", style="converse", tools=("dig",))
    async with house({}, specs={ANN: talker}, executors=[wrap_long_tail(Dig())], tools=[SPEC]) as here:
        await here.outside(Work(type="tool", executor="dig", instruction_content={"where": "x"}))
        assert await here.did(ANN) == ["dig"]


async def test_what_never_happened_is_nothing_to_decide_about() -> None:
    nobody = Dig(ProviderFault("nobody answers", spent=Amounts()))
    async with house(TOLD, specs=SPECS, executors=[wrap_long_tail(nobody)], tools=[SPEC]) as here:
        assert await here.stage("Dig.") == "provider"
        assert await here.did(ANN) == ["planning", "instruction_generation"]


@pytest.mark.req("MAS-188")
def test_the_browser_has_a_long_tail() -> None:
    assert browser_use(StagedBrowser(), StagedMind()).card.long_tail


def test_only_what_its_card_calls_so_has_a_long_tail() -> None:
    short = Dig(card=ToolCard(spec=SPEC, group="read"))
    assert wrap_long_tail(short) is short
    assert isinstance(wrap_long_tail(Dig()), LongTailTool)
    assert wrap_long_tail(Dig()).targets({}) == (Target(kind="tool", value="dig"),)
