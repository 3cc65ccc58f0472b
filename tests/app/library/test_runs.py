"""Runs of an agent: results, faults, resuming, and the other ways to call one."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from greenroom import (
    Agent,
    AgentSpec,
    ApprovalRequest,
    Done,
    Failed,
    Greenroom,
    GreenroomError,
    IncompleteAnswer,
    ModelFault,
    ModelRequest,
    ProviderFault,
    ReasoningDelta,
    RefusedError,
    RunResult,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnPolicy,
    WorldFault,
    tool,
)
from greenroom.app.library.run import MAX_EARLY_EVENTS
from greenroom.app.library.run_result import REFUSING_FACTORIES
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.model import Finished, ModelReasoningDelta, ModelTextDelta, ToolCall, Usage
from greenroom.core.state.step import StepStarted
from tests.abilities.skills import talks
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
    async with Greenroom(in_memory=True) as house:
        fact = await house.run(Agent("guide", tools=[population], output_type=Fact, model=Played(counts)), "Paris?")
        town = await house.run(Agent("guide", tools=[population], output_type=Town, model=Played(counts)), "Paris?")
    assert fact.output == Fact(city="Paris", people=2_100_000)
    assert town.output == Town(city="Paris", people=2_100_000)
    assert (fact.usage.cost, fact.usage.steps) == (2e-06, 3)


async def test_a_run_is_heard_as_it_goes_on_and_ends_with_its_result() -> None:
    answer = (
        ModelReasoningDelta(text="Hm."),
        ModelTextDelta(text="Two "),
        ModelTextDelta(text="million."),
        Usage(output=1),
        Finished(),
    )
    agent = Agent("guide", tools=[population], model=Played(in_order(calls("population", city="Paris"), answer)))
    async with Greenroom(in_memory=True) as house:
        heard = [one async for one in agent.stream("Paris?", greenroom=house)]
    assert heard[:5] == [
        ToolCallStarted(agent="guide", tool="population", arguments={"city": "Paris"}, call_id="c1"),
        ToolCallFinished(agent="guide", tool="population", output="2100000", is_error=False, call_id="c1"),
        ReasoningDelta(agent="guide", text="Hm."),
        TextDelta(agent="guide", text="Two "),
        TextDelta(agent="guide", text="million."),
    ]
    assert isinstance(heard[5], RunResult)
    assert heard[5].output == "Two million."


@tool(effect="pure")
def survey(city: str) -> Done:
    """All that is known of a city, as it is to be handed over."""
    return Done(Fact(city=city, people=7))


@pytest.mark.req("AG-33")
async def test_a_tool_may_answer_in_the_place_of_its_agent() -> None:
    plain, typed = (Played(in_order(calls("survey", city="Ur"), says("never asked"))) for _ in range(2))
    async with Greenroom(in_memory=True) as house:
        text = await house.run(Agent("guide", tools=[survey], model=plain), "Ur?")
        fact = await house.run(Agent("guide", tools=[survey], output_type=Fact, model=typed), "Ur?")
    assert (text.output, fact.output) == ('{"city":"Ur","people":7}', Fact(city="Ur", people=7))
    assert (len(plain.asked), len(typed.asked)) == (1, 1)
    assert (text.usage.cost, fact.usage.cost) == (1e-06, 1e-06), "only what was asked is paid"


@pytest.mark.req("AG-33")
async def test_what_a_tool_answers_must_be_of_the_type_that_is_wanted() -> None:
    @tool
    def wrong() -> Done:
        """Answers with something else."""
        return Done("no idea")

    model = Played(in_order(calls("wrong"), calls("answer", "c2", city="Ur", people=7)))
    async with Greenroom(in_memory=True) as house:
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
    async with Greenroom(in_memory=True) as house:
        found = await asyncio.gather(*(house.run(lead, "Drinks?") for _ in range(3)))
    assert [one.output for one in found] == ["found milk and found tea"] * 3


async def test_two_agents_or_tools_of_one_name_are_refused() -> None:
    twin = Agent("twin", model=Played(lambda _: says("")))

    @tool(name="population")
    def other(city: str) -> str:
        """Another one."""
        return city

    async with Greenroom(in_memory=True) as house:
        with pytest.raises(WorldFault, match="Two agents are called 'twin'"):
            await house.run(Agent("lead", agents=[twin, Agent("twin")]), "x")
        with pytest.raises(WorldFault, match="Two tools are called 'population'"):
            await house.run(Agent("lead", tools=[population, other]), "x")
    with pytest.raises(WorldFault, match="is not a valid agent name"):
        Agent("my agent")


async def test_an_answer_that_never_fits_is_the_models_fault() -> None:
    agent = Agent(
        "guide", output_type=Fact, output_retries=1, model=Played(lambda _: calls("answer", city=3, people="many"))
    )
    async with Greenroom(in_memory=True) as house:
        with pytest.raises(ModelFault, match="2 times in a row"):
            await house.run(agent, "Paris?")


@pytest.mark.parametrize(
    "end", [Failed(kind="cut_off", why="It ended early."), Finished(reason="filter", said="content_filter")]
)
async def test_an_answer_without_an_end_is_an_error_with_its_text(end: Failed | Finished) -> None:
    agent = Agent("ann", model=Played(in_order((ModelTextDelta(text="The first half"), end), says("All of it."))))
    async with Greenroom(in_memory=True) as house:
        with pytest.raises(IncompleteAnswer) as raised:
            await house.run(agent, "Why?")
        assert (raised.value.code, raised.value.text) == ("incomplete", "The first half")
        assert (await house.resume(agent, raised.value.run_id)).output == "All of it."
        async with house.chat(agent) as chat:
            assert (await chat.send("Again?")).output == "All of it."


async def test_a_provider_that_does_not_answer_is_named_and_the_run_waits() -> None:
    answers = in_order((Failed(kind="auth", why="The key is wrong."),), says("Here I am."))
    agent = Agent("guide", model=Played(answers))
    async with Greenroom(in_memory=True) as house:
        with pytest.raises(ProviderFault, match=r"The key is wrong\..*greenroom\.resume") as fault:
            await house.run(agent, "Well?")
        assert (await house.resume(agent, fault.value.run_id)).output == "Here I am."
        with pytest.raises(WorldFault, match="is not a run of the agent 'other'"):
            await house.resume(Agent("other"), fault.value.run_id)


async def test_a_spec_keeps_what_nobody_says_otherwise_and_has_a_version() -> None:
    spec = AgentSpec(name="guide", turn=TurnPolicy(repairs=7, rounds=3))
    kept, changed = Agent("guide", spec=spec), Agent("guide", spec=spec, output_retries=1, max_turns=9)
    assert (kept.spec.turn.repairs, kept.spec.turn.rounds) == (7, 3)
    assert (changed.spec.turn.repairs, changed.spec.turn.rounds) == (1, 9)
    assert kept.spec.version
    assert kept.spec.version != changed.spec.version
    agent = Agent("guide", model=Played(lambda _: says("Yes.")))
    async with Greenroom(in_memory=True) as house:
        result = await house.run(agent, "Well?")
        told = [one.event async for one in house.runtime.events(result.run_id)]
    (terms,) = [one.terms for one in told if isinstance(one, StepStarted)]
    assert terms.spec == agent.spec.version, "a step says under which spec it ran"


async def test_nothing_to_do_and_a_house_that_is_not_open_are_said_so() -> None:
    agent = Agent("guide", model=Played(lambda _: says("Yes.")))
    with pytest.raises(WorldFault, match="This Greenroom is not open"):
        await agent.run("Well?", greenroom=Greenroom(in_memory=True))
    with pytest.raises(WorldFault, match="either in memory or in a folder"):
        Greenroom("x", in_memory=True)
    async with Greenroom(in_memory=True) as house:
        with pytest.raises(WorldFault, match="a non-empty text"):
            await agent.run("  ", greenroom=house)
        with pytest.raises(WorldFault, match="Pass either a non-empty text"):
            await agent.run("Well?", resume="last", greenroom=house)


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
    async with Greenroom(in_memory=True) as house, house.start(agent, "Begin.") as run:
        await run.send("And hurry.")
        gate.set()
        result = await run.result()
        assert (result.output, result.usage) == ("Done.", await run.usage())
    assert "And hurry." in told


def slow(begun: asyncio.Event, done: asyncio.Event) -> Agent[str]:
    """Calls a tool that waits, then answers."""

    @tool(effect="pure")
    async def wait() -> str:
        """Wait."""
        begun.set()
        await done.wait()
        return "waited"

    return Agent("ann", tools=[wait], model=Played(in_order(calls("wait"), says("Done."))))


async def cut_off(home: Path) -> tuple[Agent[str], asyncio.Event]:
    """A run that is left in the middle of a call."""
    begun, done = asyncio.Event(), asyncio.Event()
    agent = slow(begun, done)
    async with Greenroom(home) as house, house.start(agent, "Wait for it."):
        await asyncio.wait_for(begun.wait(), 10)
    done.set()
    return agent, done


async def test_runs_are_listed_newest_first_with_how_they_stand(tmp_path: Path) -> None:
    agent, _ = await cut_off(tmp_path)
    other = Agent("bob", model=Played(lambda _: says("Yes.")))
    async with Greenroom(tmp_path) as house:
        result = await house.run(other, "Well?")
        newest, oldest = await house.runs()
        assert (newest.run_id, newest.agent, newest.text, newest.state) == (result.run_id, "bob", "Well?", "finished")
        assert (oldest.agent, oldest.text, oldest.state) == ("ann", "Wait for it.", "stopped")
        assert (newest.is_over, newest.is_conversation, oldest.is_over) == (True, False, False)
        assert timedelta() <= datetime.now(UTC) - oldest.started_at < timedelta(minutes=1)
        assert [one.run_id for one in await house.runs(agent)] == [oldest.run_id]
        assert [one.run_id for one in await house.runs(limit=1)] == [newest.run_id]


async def test_a_run_goes_on_where_it_was_and_is_heard(tmp_path: Path) -> None:
    agent, _ = await cut_off(tmp_path)
    async with Greenroom(tmp_path) as house:
        (left,) = await house.runs()
        heard = [one async for one in house.stream(agent, resume=left.run_id)]
    assert isinstance(heard[1], ToolCallFinished)
    assert isinstance(heard[-1], RunResult)
    assert (heard[1].output, heard[-1].output, heard[-1].run_id) == ("waited", "Done.", left.run_id)


async def test_the_newest_run_of_an_agent_need_not_be_named(tmp_path: Path) -> None:
    agent, _ = await cut_off(tmp_path)
    async with Greenroom(tmp_path) as house:
        assert (await agent.run(resume="last", greenroom=house)).output == "Done."
        with pytest.raises(WorldFault, match="no run of the agent 'ann' to continue"):
            await house.resume(agent, "last")


async def test_a_run_that_is_over_has_the_same_result_again() -> None:
    agent = Agent("ann", model=Played(in_order(says("Once."), says("Twice."))))
    async with Greenroom(in_memory=True) as house:
        result = await house.run(agent, "Well?")
        assert await house.resume(agent, result.run_id) == result


async def test_every_fault_of_a_run_names_it() -> None:
    agent = Agent("ann", output_type=int, output_retries=0, model=Played(lambda _: says("many")))
    async with Greenroom(in_memory=True) as house:
        with pytest.raises(ModelFault) as fault:
            await house.run(agent, "Well?")
        with pytest.raises(GreenroomError) as heard:
            _ = [one async for one in house.stream(agent, "Well?")]
        assert [one.run_id for one in await house.runs()] == [heard.value.run_id, fault.value.run_id]
        with pytest.raises(WorldFault) as none:
            await house.run(agent, "")
        assert none.value.run_id == ""


async def test_a_run_that_somebody_ended_does_not_say_how_to_go_on() -> None:
    begun = asyncio.Event()
    agent = slow(begun, asyncio.Event())
    async with Greenroom(in_memory=True) as house, house.start(agent, "Wait.") as run:
        await asyncio.wait_for(begun.wait(), 10)
        await run.cancel()
        with pytest.raises(RefusedError, match=r"^It is cancelled: cancelled by a person$") as fault:
            await run.result()
    assert fault.value.run_id == run.id


async def test_what_a_program_keeps_can_only_go_on_in_a_program(tmp_path: Path) -> None:
    agent = Agent("ann", model=Played(lambda _: says("Yes.")))
    async with Greenroom(tmp_path) as house:
        result = await house.run(agent, "Well?")
        async with house.chat(agent) as talk:
            await talk.send("Hi.")
    runtime = await Runtime.open(tmp_path, capability_factories=REFUSING_FACTORIES)
    try:
        with pytest.raises(WorldFault, match=rf"belongs to a program.*greenroom\.resume\(agent, '{result.run_id}'\)"):
            await runtime.start(result.run_id)
        with pytest.raises(WorldFault, match=rf"greenroom\.chat\(agent, resume='{talk.id}'\)"):
            await runtime.start(TeamId(talk.id))
    finally:
        await runtime.close()


async def test_what_nobody_listens_to_does_not_pile_up() -> None:
    words = [one for text in ["word "] * (3 * MAX_EARLY_EVENTS) for one in says(text)[:1]]
    agent = Agent("ann", model=Played(lambda _: (*words, *says("end.")[1:])))
    async with Greenroom(in_memory=True) as house:
        async with house.start(agent, "Talk.") as run:
            await run.result()
            assert len([one async for one in run.stream()]) == MAX_EARLY_EVENTS + 1, "the newest pieces, and the result"
        heard = [one async for one in house.stream(agent, "Talk.")]
    assert len(heard) == 3 * MAX_EARLY_EVENTS + 1, "who listens hears all"


class Window:
    """A user interface of one's own: a person sits behind it, and sees all that is put on it."""

    def __init__(self, answers: dict[str, bool | str]) -> None:
        self.shown: list[str] = []
        self._answers = answers
        self._clicks: asyncio.Queue[tuple[str, asyncio.Future[bool | str]]] = asyncio.Queue()

    async def approve(self, asked: ApprovalRequest) -> bool | str:
        """A dialog, which is open until somebody clicks."""
        answered: asyncio.Future[bool | str] = asyncio.get_running_loop().create_future()
        self.shown.append(f"{'question' if asked.wants_text else 'dialog'}: {asked.tool}")
        await self._clicks.put((asked.tool, answered))
        return await answered

    async def person(self) -> None:
        """Reads and clicks."""
        while True:
            tool, answered = await self._clicks.get()
            answered.set_result(self._answers[tool])

    async def show(self, house: Greenroom, agent: Agent[str], text: str) -> str:
        """A whole run on this window."""
        house.events.subscribe("before_tool_call", lambda tool, **_: self.shown.append(f"busy: {tool}"))
        output, person = "", asyncio.create_task(self.person())
        async for heard in house.stream(agent, text, approve=self.approve):
            match heard:
                case ToolCallStarted(tool=name) | ToolCallFinished(tool=name):
                    self.shown.append(f"{type(heard).__name__.lower()}: {name}")
                case TextDelta(text=words):
                    self.shown.append(f"said: {words}")
                case RunResult():
                    output = heard.output
                case _:
                    pass
        person.cancel()
        return output


@pytest.mark.req("AG-193")
async def test_all_that_people_see_and_say_is_replaced_without_a_change_to_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    work = tmp_path / "work"
    work.mkdir()

    def play(request: ModelRequest) -> talks.Answer:
        told = [one.content for one in request.messages if one.role == "tool"]
        if not told:
            return calls("ask_user", question="Which name?")
        if len(told) == 1:
            return calls("execute_script", "c2", script=f"touch {told[0]}")
        return says("Made." if "Denied" not in told[-1] else "Not made.")

    agent = Agent("ann", toolsets=["human", "command"], model=Played(play))
    kind, strict = (
        Window({"ask_user": "a.txt", "execute_script": True}),
        Window({"ask_user": "b", "execute_script": "No."}),
    )
    async with Greenroom(in_memory=True, workspace=work) as house:
        assert await kind.show(house, agent, "Make a file.") == "Made."
    async with Greenroom(in_memory=True, workspace=work) as house:
        assert await strict.show(house, agent, "Make a file.") == "Not made."
    assert [one.name for one in work.iterdir()] == ["a.txt"]
    asked = [
        "question: ask_user",
        "busy: ask_user",
        "toolcallstarted: ask_user",
        "toolcallfinished: ask_user",
        "dialog: execute_script",
    ]
    done = [
        "busy: execute_script",
        "toolcallstarted: execute_script",
        "toolcallfinished: execute_script",
        "said: Made.",
    ]
    assert sorted(kind.shown) == sorted(asked + done)
    assert "busy: execute_script" not in strict.shown


async def test_a_run_starts_in_the_commit_that_makes_it() -> None:
    agent = Agent("ann", model=Played(lambda _: says("Hello.")))
    async with Greenroom(in_memory=True) as house:
        run = (await house.run(agent, "Say hello.")).run_id
        stored = [event async for page in house.runtime.log.read(run) for event in page]
    ends = [event.version for event in stored if event.ends]
    first = [event.type for event in stored[: ends[0]]]
    assert (first[0], first[-1], len(ends)) == ("TeamCreated", "StepStarted", 2)


async def test_a_run_without_a_model_is_refused_and_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(WorldFault, match="No model is set"):
            await greenroom.run(Agent("ann"), "Hello.")
        assert list(await greenroom.runs()) == []
