"""What a run has executed is read from its log."""

from pathlib import Path

import pytest

from greenroom import Agent, Greenroom, tool
from tests.abilities.skills.talks import Played, calls, in_order, says


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(needs_approval=True)
def order() -> str:
    """Order."""
    return "ordered"


@pytest.mark.req("AG-60")
async def test_what_was_executed_is_known_by_name_order_and_number_and_survives_the_process(tmp_path: Path) -> None:
    replies = (calls("pay", amount=1), calls("pay", "c2", amount=2), calls("order", "c3"), says("So."))
    agent = Agent("ann", tools=[pay, order], model=Played(in_order(*replies)))
    async with Greenroom(tmp_path / "home") as house:
        result = await house.run(agent, "Go.", approve=lambda _: False)
    async with Greenroom(tmp_path / "home") as house:
        executed = await house.executed_tools(result.run_id)
    assert (executed.tools, executed.last, dict(executed.counts)) == (("pay", "pay"), "pay", {"pay": 2})
    assert executed.user_data == {"__last_executed_tool__": "pay", "__executed_tools__": ["pay", "pay"]}


@pytest.mark.req("AG-60")
async def test_it_grows_while_a_conversation_goes_on_and_counts_what_failed() -> None:
    replies = (calls("pay", amount=1), says("Paid."), calls("pay", "c2", amount="much"), says("Hm."))
    async with Greenroom(in_memory=True) as house:
        async with house.chat(Agent("ann", tools=[pay], model=Played(in_order(*replies)))) as talk:
            assert (await talk.executed_tools()).user_data == {"__last_executed_tool__": "", "__executed_tools__": []}
            await talk.send("Pay one.")
            assert (await talk.executed_tools()).tools == ("pay",)
            await talk.send("Pay much.")
            assert (await talk.executed_tools()).counts["pay"] == 2
        async with house.start(Agent("ann", tools=[pay], model=Played(lambda _: says("So."))), "Go.") as run:
            await run.result()
            assert (await run.executed_tools()).last == ""
