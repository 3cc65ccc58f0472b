"""What all agents of ArtifactFlow have: configuration, one turn as a stream of events, routing, and memory by agent."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from greenroom.app.designs.artifactflow import (
    AgentConfig,
    AgentResponse,
    BaseAgent,
    ExecutionMetrics,
    StreamEvent,
    merge_agent_response_to_state,
)
from greenroom.app.text_reader import TextReader
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.model import Failed, Finished, ModelReasoningDelta, ModelTextDelta, ToolSpec, Usage
from tests.abilities.skills.talks import ANN, Answer, Played, in_order, says, team

SEARCH = ToolSpec(
    name="search",
    description="Search.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
CALL = "<tool_call><name>search</name><params><query>tea & milk</query></params></tool_call>"
ASK = "<tool_call><name>call_subagent</name><params><agent_name>crawler</agent_name>"
ASK += "<instruction>Read it.</instruction></params></tool_call>"
SUBAGENT = ToolSpec(
    name="call_subagent",
    description="Call one.",
    parameters={
        "type": "object",
        "properties": {"agent_name": {"type": "string"}, "instruction": {"type": "string"}},
        "required": ["agent_name", "instruction"],
    },
)


class Searcher(BaseAgent):
    """An agent that searches."""

    def build_system_prompt(self, context: Mapping[str, Any] | None = None) -> str:
        """Who it is."""
        return f"You search. Known: {(context or {}).get('artifacts_inventory', 'nothing')}."

    def format_final_response(self, content: str, tool_history: Sequence[Mapping[str, Any]]) -> str:
        """The answer."""
        return f"<answer>{content}</answer>"


def searcher(*answers: Answer, **changes: Any) -> tuple[Searcher, Played]:
    """A searcher whose model says this."""
    model = Played(in_order(*answers))
    tools = ["search", "call_subagent"]
    config = AgentConfig(name="searcher", description="d", required_tools=tools, llm_retry_delay=0.0, **changes)
    agent = Searcher(config, [SEARCH, SUBAGENT], models=model)
    agent.register_subagent(AgentConfig(name="crawler", description="crawls"))
    return agent, model


async def turn(agent: BaseAgent) -> list[StreamEvent]:
    """All events of one execution."""
    return [event async for event in agent.stream([{"role": "user", "content": "Tea?"}])]


@pytest.mark.req("AF-3", "AF-4", "AF-5", "AF-6", "AF-7", "AF-8", "AF-9", "AF-10", "AF-11", "AF-12", "AF-13")
def test_a_configuration_has_its_defaults_and_shares_none_of_them() -> None:
    one, other = AgentConfig(name="a", description="d"), AgentConfig(name="b", description="d")
    assert (one.model, one.temperature, one.max_tool_rounds, one.streaming) == ("qwen-plus", 0.7, 3, False)
    assert (one.llm_max_retries, one.llm_retry_delay) == (3, 1.0)
    one.capabilities.append("x")
    one.required_tools.append("y")
    assert other.capabilities == other.required_tools == []


@pytest.mark.req("AF-14", "AF-15", "AF-16", "AF-17", "AF-18", "AF-19", "AF-20", "AF-21")
def test_a_response_has_its_defaults() -> None:
    response = AgentResponse()
    assert (response.success, response.content, response.reasoning_content) == (True, "", None)
    assert response.tool_calls == response.tool_interactions == []
    assert response.metadata == {}
    assert response.routing is None
    assert response.token_usage is None


@pytest.mark.req("AF-27", "AF-34", "AF-37", "AF-38", "AF-39", "AF-40", "AF-41", "AF-42", "AF-43", "AF-44")
async def test_the_events_of_a_turn_come_in_their_order() -> None:
    answer = (
        ModelReasoningDelta(text="Hm."),
        ModelTextDelta(text="Green "),
        ModelTextDelta(text="tea."),
        Usage(output=3),
        Finished(),
    )
    agent, _ = searcher(answer)
    kinds, chunks, contents = [], [], []
    async for event in agent.stream([{"role": "user", "content": "Tea?"}]):
        kinds.append(event.type.name)
        contents.append(event.data.content)
        assert event.agent == "searcher"
        if event.type.name == "LLM_CHUNK":
            chunks.append(event.data.metadata["chunk"])
    assert kinds == ["AGENT_START", "LLM_CHUNK", "LLM_CHUNK", "LLM_CHUNK", "LLM_COMPLETE", "AGENT_COMPLETE"]
    assert chunks == ["reasoning", "content", "content"]
    assert contents[2:4] == ["Green ", "Green tea."]


@pytest.mark.req("AF-22", "AF-23", "AF-24", "AF-25", "AF-45", "AF-47", "AF-48", "AF-49")
@pytest.mark.parametrize(
    ("text", "routing", "content"),
    [
        (CALL, {"type": "tool_call", "tool_name": "search", "params": {"query": "tea & milk"}}, CALL),
        (ASK, {"type": "subagent", "target": "crawler", "instruction": "Read it."}, ASK),
        (f"{CALL}\n{ASK}", {"type": "tool_call", "tool_name": "search", "params": {"query": "tea & milk"}}, None),
        ("Green.", None, "<answer>Green.</answer>"),
    ],
)
async def test_what_follows_a_turn_is_its_routing(text: str, routing: object, content: str | None) -> None:
    agent, model = searcher(says(text))
    last = (await turn(agent))[-1]
    assert last.type.name == "AGENT_COMPLETE"
    assert last.data.routing == routing
    assert content is None or last.data.content == content
    assert len(model.asked) == 1, "one model call per execution"


async def test_a_call_that_cannot_be_run_says_why() -> None:
    agent, _ = searcher(says("<tool_call><name>search</name><params><word>x</word></params></tool_call>"))
    last = (await turn(agent))[-1].data
    assert (last.success, last.routing) == (False, None)
    assert "query" in last.content


@pytest.mark.req("AF-26")
def test_calls_are_read_from_the_text_of_a_reply() -> None:
    agent, _ = searcher(says(""))
    assert agent.parse_tool_calls(f"I look.\n{CALL}") == [{"name": "search", "params": {"query": "tea & milk"}}]
    assert agent.parse_tool_calls("Green.") == []


@pytest.mark.req("AF-28")
async def test_a_failing_call_is_made_again_as_often_as_the_configuration_says() -> None:
    fails: Answer = (Failed(kind="overloaded", why="Too busy."),)
    agent, model = searcher(fails, fails, says("Here."), llm_max_retries=2)
    assert (await turn(agent))[-1].data.content == "<answer>Here.</answer>"
    assert len(model.asked) == 3
    agent, model = searcher(fails, llm_max_retries=1)
    last = (await turn(agent))[-1].data
    assert (last.success, last.content, last.routing) == (False, "Too busy.", None)
    assert len(model.asked) == 2


@pytest.mark.req("AF-29", "AF-30", "AF-31", "AF-33")
def test_the_prompt_is_the_agents_own_and_then_the_tools() -> None:
    agent, _ = searcher(says(""))
    told = agent.build_complete_system_prompt({"artifacts_inventory": "plan.md"})
    assert told.startswith("You search. Known: plan.md.")
    assert told.index("You search.") < told.index("<tool_call>")


@pytest.mark.req("AF-32")
@pytest.mark.parametrize("missing", ["build_system_prompt", "format_final_response"])
def test_an_agent_that_lacks_either_method_cannot_be_made(missing: str) -> None:
    methods = {"build_system_prompt": lambda *_: "", "format_final_response": lambda *_: ""}
    kind: Any = type("Half", (BaseAgent,), {name: one for name, one in methods.items() if name != missing})
    with pytest.raises(TypeError, match=missing):
        kind(AgentConfig(name="a", description="d"), models=Played(lambda _: says("")))


def test_a_kind_of_agent_without_a_configuration_of_its_own_needs_one() -> None:
    agent, model = searcher(says(""))
    with pytest.raises(WorldFault, match="pass an AgentConfig"):
        type(agent)(models=model)


@pytest.mark.req("AF-35", "AF-36")
async def test_the_conversation_is_given_whole() -> None:
    agent, model = searcher(says("Yes."))
    given = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}, {"role": "tool", "content": "T"}]
    events = [event async for event in agent.stream(given, is_resuming=True)]
    assert [one.content for one in model.asked[0].messages] == ["S", "U", "T"]
    assert events[-1].data.metadata["is_resuming"] is True


@pytest.mark.req("AF-80", "AF-81", "AF-82", "AF-83", "AF-84", "AF-85", "AF-86")
def test_each_agent_has_a_memory_of_its_own_that_grows_and_keeps_the_last_response() -> None:
    state: dict[str, Any] = {}
    first = AgentResponse(content="a", tool_interactions=[{"role": "assistant"}], reasoning_content="hm")
    first.routing = {"type": "tool_call", "tool_name": "search", "params": {}}
    merge_agent_response_to_state(state, "lead", first)
    merge_agent_response_to_state(state, "lead", AgentResponse(content="b"))
    merge_agent_response_to_state(state, "crawler", AgentResponse(content="c", success=False))
    lead, crawler = state["agent_memories"]["lead"], state["agent_memories"]["crawler"]
    assert lead["tool_interactions"] == [{"role": "assistant"}]
    assert lead["tool_round_count"] == 1
    assert lead["last_response"] == {
        "success": True,
        "content": "b",
        "tool_calls": [],
        "metadata": {},
        "reasoning": None,
    }
    assert crawler["tool_interactions"] == []
    assert crawler["last_response"]["success"] is False


@pytest.mark.req("AF-87")
def test_figures_are_kept_by_the_graph() -> None:
    metrics = ExecutionMetrics()
    metrics.record("lead", {"input_tokens": 3, "output_tokens": 2})
    metrics.record("lead", None)
    assert metrics.executions == {"lead": 2}
    assert metrics.tokens == {"lead": 5}
    assert metrics.seconds >= 0


@pytest.mark.req("AF-51")
async def test_the_same_agent_in_a_team_is_run_by_the_turn_which_counts_its_rounds() -> None:
    config = AgentConfig(name="Ann", description="echoes", required_tools=["echo"], max_tool_rounds=2)
    call = "<tool_call><name>echo</name><params><text>x</text></params></tool_call>"
    model = Played(lambda request: says("Enough.") if "the limit" in request.messages[-1].content else says(call))
    async with team(model, config.spec("You echo."), reader=TextReader()) as here:
        assert await here.ask() == "finished"
        assert (await here.did()).count("echo") == 2
        assert await here.summary() == "Enough."
    assert model.asked[0].temperature == 0.7
    assert model.asked[0].streaming is False
    assert model.asked[0].purpose.agent == ANN
