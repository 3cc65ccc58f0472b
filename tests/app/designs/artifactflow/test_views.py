"""ArtifactFlow's words for what a team of Greenroom does."""

from __future__ import annotations

import pytest

from greenroom.app.designs.artifactflow import AgentConfig, StreamEvent, follow, response_of
from greenroom.app.reading import TextReader
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.model import Finished, ReasoningDelta, TextDelta, Usage
from tests.abilities.skills.talks import Played, in_order, says, team

CALL = "<tool_call><name>echo</name><params><text>x</text></params></tool_call>"
ASK = (
    "<tool_call><name>call_subagent</name><params><agent_name>bob</agent_name>"
    "<instruction>Find tea.</instruction></params></tool_call>"
)
THINKS = (ReasoningDelta(text="Hm."), TextDelta(text="Tea "), TextDelta(text="it is."), Usage(output=2), Finished())
SEARCH = AgentConfig(name="Ann", description="echoes", required_tools=["echo"]).spec("You echo.")


@pytest.mark.req("AF-15", "AF-16", "AF-17", "AF-18", "AF-21", "AF-22", "AF-24")
async def test_a_turn_of_the_log_is_a_response() -> None:
    async with team(Played(in_order(says(CALL), THINKS)), SEARCH, reader=TextReader()) as here:
        await here.ask()
        steps = await here.steps()
    acts, ends = response_of(steps[0]), response_of(steps[2], steps[:2])
    assert acts.routing == {"type": "tool_call", "tool_name": "echo", "params": {"text": "x"}}
    assert acts.tool_calls == [{"name": "echo", "params": {"text": "x"}}]
    assert (ends.success, ends.content, ends.reasoning_content, ends.routing) == (True, "Tea it is.", "Hm.", None)
    assert [(one["role"], one["content"]) for one in ends.tool_interactions] == [("assistant", CALL), ("tool", "x")]
    assert (ends.token_usage or {})["output_tokens"] == 2


@pytest.mark.req("AF-23", "AF-50")
async def test_a_call_of_a_sub_agent_is_routed_to_it_and_its_end_returns_to_the_lead() -> None:
    lead = AgentConfig(name="Ann", description="leads").spec("You lead.", ("bob",))
    bob = AgentConfig(name="Bob", description="searches").spec("You search.")
    model = Played(lambda request: says("Found.") if request.purpose.agent == "bob" else next(replies))
    replies = iter([says(ASK), says("So it is.")])
    async with team(model, lead, others=[(AgentId("bob"), bob)], reader=TextReader()) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "So it is.", "the end of the lead is the end of the task"
        responses = [(one.agent_id, response_of(one)) for one in await here.steps() if one.work.executor == "converse"]
    assert responses[0][1].routing == {"type": "subagent", "target": "bob", "instruction": "Find tea."}
    assert [(who, one.routing) for who, one in responses[1:]] == [("bob", None), ("ann", None)]


@pytest.mark.req("AF-37", "AF-38", "AF-39", "AF-40", "AF-42", "AF-43", "AF-44")
async def test_a_run_is_told_of_turn_by_turn() -> None:
    told: list[StreamEvent] = []
    async with team(Played(in_order(says(CALL), THINKS)), SEARCH, reader=TextReader()) as here:
        stop = follow(await here.runtime.start(here.team), told.append)
        await here.ask()
        stop()
    kinds = [one.type.value.partition("_")[2] for one in told]
    assert kinds[:4] == ["start", "chunk", "complete", "complete"]
    assert kinds[4:] == ["start", "chunk", "chunk", "chunk", "complete", "complete"]
    assert {one.agent for one in told} == {"ann"}
    assert told[-1].data.content == "Tea it is."
