"""The library: agents, runs, streams, typed results, agents that call agents, people that decide."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel

from greenroom import (
    Agent,
    AgentSpec,
    Called,
    Done,
    Failed,
    Greenroom,
    ModelFault,
    ModelRequest,
    ProviderFault,
    Result,
    Returned,
    Said,
    Thought,
    Turn,
    WorldFault,
    tool,
)
from greenroom.core.ports.model import Finished, ReasoningDelta, TextDelta, ToolCall, Usage
from greenroom.core.state.step import StepStarted
from tests.abilities.skills.talks import Answer, Played, calls, in_order, says


@dataclass
class Fact:
    """What is asked for."""

    city: str
    people: int


class Town(BaseModel):
    """The same, by pydantic."""

    city: str
    people: int


@tool(effect="pure")
def population(city: str) -> int:
    """How many people live in a city."""
    return {"Paris": 2_100_000}[city]


def counts(request: ModelRequest) -> Answer:
    """Looks it up, then answers."""
    found = [one.content for one in request.messages if one.role == "tool"]
    if not found:
        return calls("population", city="Paris")
    return calls("answer", "c2", city="Paris", people=int(found[0]))


async def test_an_agent_calls_its_tool_and_answers_with_a_value_of_its_type() -> None:
    async with Greenroom(memory=True) as house:
        fact = await house.run(Agent("guide", tools=[population], output_type=Fact, model=Played(counts)), "Paris?")
        town = await house.run(Agent("guide", tools=[population], output_type=Town, model=Played(counts)), "Paris?")
    assert fact.output == Fact(city="Paris", people=2_100_000)
    assert town.output == Town(city="Paris", people=2_100_000)
    assert fact.spent.money == 2
    assert fact.cost == 2e-06


async def test_a_run_is_heard_as_it_goes_on_and_ends_with_its_result() -> None:
    answer = (
        ReasoningDelta(text="Hm."),
        TextDelta(text="Two "),
        TextDelta(text="million."),
        Usage(output=1),
        Finished(),
    )
    agent = Agent("guide", tools=[population], model=Played(in_order(calls("population", city="Paris"), answer)))
    async with Greenroom(memory=True) as house:
        heard = [one async for one in agent.stream("Paris?", house=house)]
    assert heard[:5] == [
        Called(agent="guide", tool="population", arguments={"city": "Paris"}, call_id="c1"),
        Returned(agent="guide", tool="population", output="2100000", failed=False, call_id="c1"),
        Thought(agent="guide", text="Hm."),
        Said(agent="guide", text="Two "),
        Said(agent="guide", text="million."),
    ]
    assert isinstance(heard[5], Result)
    assert heard[5].output == "Two million."


@tool(effect="pure")
def survey(city: str) -> Done:
    """All that is known of a city, as it is to be handed over."""
    return Done(Fact(city=city, people=7))


@pytest.mark.req("AG-33")
async def test_a_tool_may_answer_in_the_place_of_its_agent() -> None:
    plain, typed = (Played(in_order(calls("survey", city="Ur"), says("never asked"))) for _ in range(2))
    async with Greenroom(memory=True) as house:
        text = await house.run(Agent("guide", tools=[survey], model=plain), "Ur?")
        fact = await house.run(Agent("guide", tools=[survey], output_type=Fact, model=typed), "Ur?")
    assert (text.output, fact.output) == ('{"city":"Ur","people":7}', Fact(city="Ur", people=7))
    assert (len(plain.asked), len(typed.asked)) == (1, 1)
    assert (text.spent.money, fact.spent.money) == (1, 1), "only what was asked is paid"


@pytest.mark.req("AG-33")
async def test_what_a_tool_answers_must_be_of_the_type_that_is_wanted() -> None:
    @tool
    def wrong() -> Done:
        """Answers with something else."""
        return Done("no idea")

    model = Played(in_order(calls("wrong"), calls("answer", "c2", city="Ur", people=7)))
    async with Greenroom(memory=True) as house:
        fact = await house.run(Agent("guide", tools=[wrong], output_type=Fact, model=model), "Ur?")
    assert fact.output == Fact(city="Ur", people=7)


def test_a_script_needs_no_loop_and_its_runs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GREENROOM_HOME", raising=False)
    result = Agent("guide", model=Played(lambda _: says("Yes."))).run_sync("Is it kept?")
    assert result.output == "Yes."
    assert (tmp_path / ".greenroom" / "greenroom.db").exists()
    assert (tmp_path / ".greenroom" / ".gitignore").read_text(encoding="utf-8").splitlines()[1] == "*"


async def test_a_notebook_whose_loop_runs_already_may_call_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GREENROOM_HOME", raising=False)
    agent = Agent("guide", model=Played(lambda _: says("Yes.")))
    assert agent.run_sync("Well?").output == "Yes."


async def test_agents_call_agents_and_run_side_by_side() -> None:
    def searches(request: ModelRequest) -> Answer:
        return says(f"found {request.messages[-1].content.splitlines()[1]}")

    def leads(request: ModelRequest) -> Answer:
        told = [one.content for one in request.messages if one.role == "tool"]
        if told:
            return says(" and ".join(sorted(told)))
        return (
            ToolCall(call_id="a", name="call_agent", arguments={"agent_name": "searcher", "instruction": "tea"}),
            ToolCall(call_id="b", name="call_agent", arguments={"agent_name": "crawler", "instruction": "milk"}),
            Usage(output=1),
            Finished(reason="calls"),
        )

    searcher = Agent("searcher", description="searches", model=Played(searches))
    crawler = Agent("crawler", description="crawls", model=Played(searches))
    lead = Agent("lead", agents=[searcher, crawler], model=Played(leads))
    async with Greenroom(memory=True) as house:
        found = await asyncio.gather(*(house.run(lead, "Drinks?") for _ in range(3)))
    assert [one.output for one in found] == ["found milk and found tea"] * 3


async def test_two_agents_or_tools_of_one_name_are_refused() -> None:
    twin = Agent("twin", model=Played(lambda _: says("")))

    @tool(name="population")
    def other(city: str) -> str:
        """Another one."""
        return city

    async with Greenroom(memory=True) as house:
        with pytest.raises(WorldFault, match="Two agents are called 'twin'"):
            await house.run(Agent("lead", agents=[twin, Agent("twin")]), "x")
        with pytest.raises(WorldFault, match="Two tools are called 'population'"):
            await house.run(Agent("lead", tools=[population, other]), "x")
    with pytest.raises(WorldFault, match="is no name for an agent"):
        Agent("my agent")


# ---------------------------------------------------------------------------------------------- what goes wrong


async def test_a_tool_that_raises_tells_the_model_and_nobody_else_suffers() -> None:
    def tries(request: ModelRequest) -> Answer:
        told = [one.content for one in request.messages if one.role == "tool"]
        return says(told[0]) if told else calls("population", city="Nowhere")

    async with Greenroom(memory=True) as house:
        result = await house.run(Agent("guide", tools=[population], model=Played(tries)), "Nowhere?")
    assert result.output == "population broke: KeyError: 'Nowhere'"


async def test_arguments_that_do_not_fit_are_not_called_with() -> None:
    def tries(request: ModelRequest) -> Answer:
        told = [one.content for one in request.messages if one.role == "tool"]
        return says(told[0]) if told else calls("population", town="Paris")

    async with Greenroom(memory=True) as house:
        result = await house.run(Agent("guide", tools=[population], model=Played(tries)), "Paris?")
    assert result.output.startswith("Not called: ")
    assert "'town' was unexpected" in result.output


async def test_an_answer_that_never_fits_is_the_models_fault() -> None:
    agent = Agent("guide", output_type=Fact, repairs=1, model=Played(lambda _: calls("answer", city=3, people="many")))
    async with Greenroom(memory=True) as house:
        with pytest.raises(ModelFault, match="2 times in a row"):
            await house.run(agent, "Paris?")


async def test_a_provider_that_does_not_answer_is_named_and_the_run_waits() -> None:
    answers = in_order((Failed(kind="auth", why="The key is wrong."),), says("Here I am."))
    agent = Agent("guide", model=Played(answers))
    async with Greenroom(memory=True) as house:
        with pytest.raises(ProviderFault, match=r"The key is wrong\..*house\.resume") as fault:
            await house.run(agent, "Well?")
        assert (await house.resume(agent, fault.value.run)).output == "Here I am."
        with pytest.raises(WorldFault, match="is no run of the agent 'other'"):
            await house.resume(Agent("other"), fault.value.run)


async def test_a_spec_keeps_what_nobody_says_otherwise_and_has_a_version() -> None:
    spec = AgentSpec(name="guide", turn=Turn(repairs=7, rounds=3))
    kept, changed = Agent("guide", spec=spec), Agent("guide", spec=spec, repairs=1, rounds=9)
    assert (kept.spec.turn.repairs, kept.spec.turn.rounds) == (7, 3)
    assert (changed.spec.turn.repairs, changed.spec.turn.rounds) == (1, 9)
    assert kept.spec.version
    assert kept.spec.version != changed.spec.version
    agent = Agent("guide", model=Played(lambda _: says("Yes.")))
    async with Greenroom(memory=True) as house:
        result = await house.run(agent, "Well?")
        told = [one.event async for one in house.runtime.events(result.run)]
    (terms,) = [one.terms for one in told if isinstance(one, StepStarted)]
    assert terms.spec == agent.spec.version, "a step says under which spec it ran"


async def test_nothing_to_do_and_a_house_that_is_not_open_are_said_so() -> None:
    agent = Agent("guide", model=Played(lambda _: says("Yes.")))
    with pytest.raises(WorldFault, match="The house is not open"):
        await agent.run("Well?", house=Greenroom(memory=True))
    with pytest.raises(WorldFault, match="either in memory or in a folder"):
        Greenroom("x", memory=True)
    async with Greenroom(memory=True) as house:
        with pytest.raises(WorldFault, match="which is not empty"):
            await agent.run("  ", house=house)
        with pytest.raises(WorldFault, match="Give either a text"):
            await agent.run("Well?", resume="last", house=house)


async def test_a_person_can_say_more_while_it_works_and_end_it() -> None:
    gate, told = asyncio.Event(), list[str]()

    @tool
    async def wait() -> str:
        """Wait for the person."""
        await gate.wait()
        return "waited"

    def play(request: ModelRequest) -> Answer:
        told.append(request.messages[-1].content)
        return says("Done.") if len(told) > 1 else calls("wait")

    agent = Agent("guide", tools=[wait], model=Played(play))
    async with Greenroom(memory=True) as house, house.start(agent, "Begin.") as run:
        await run.tell("And hurry.")
        gate.set()
        assert (await run.result()).output == "Done."
    assert "And hurry." in told
