"""A conversation of a program: what was said before is known, typed answers, going on, interrupting, beginning anew."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from greenroom import (
    Agent,
    ApprovalRequest,
    Context,
    Failed,
    Greenroom,
    ModelEvent,
    ModelFault,
    ModelRequest,
    ModelTextDelta,
    ProviderFault,
    RefusedError,
    RunResult,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    Turn,
    WorldFault,
    tool,
)
from tests.abilities.skills.talks import Answer, Played, calls, in_order, says


@dataclass
class Sum:
    """What is asked for."""

    total: int


def said(request: ModelRequest) -> list[str]:
    """What a model is told after the system prompt."""
    return [f"{one.role}: {one.content}" for one in request.messages[1:]]


async def test_what_was_said_before_is_known() -> None:
    model = Played(in_order(says("Hello."), says("You said hi.")))
    async with Greenroom(in_memory=True) as house, house.chat(Agent("ann", model=model)) as talk:
        assert (talk.id, await talk.turns()) == ("", [])
        first = await talk.send("Hi.")
        second = await talk.send("What did I say?")
        exchanges = await talk.turns()
    assert (first.output, second.output) == ("Hello.", "You said hi.")
    assert first.run_id == second.run_id == talk.id
    assert second.usage.cost == 1e-06, "what this turn has cost"
    assert said(model.asked[1]) == ["user: Hi.", "assistant: Hello.", "user: What did I say?"]
    assert exchanges == [
        Turn(prompt="Hi.", answer="Hello."),
        Turn(prompt="What did I say?", answer="You said hi."),
    ]


@pytest.mark.parametrize("in_text", [False, True])
async def test_each_turn_is_answered_with_a_value_of_the_type(in_text: bool) -> None:
    def play(request: ModelRequest) -> Answer:
        numbers = [int(one.content) for one in request.messages if one.role == "user" and one.content.isdigit()]
        return (
            says(f'```json\n{{"total": {sum(numbers)}}}\n```')
            if in_text
            else calls("answer", f"c{len(numbers)}", total=sum(numbers))
        )

    adder = Agent("adder", output_type=Sum, model=Played(play))
    async with Greenroom(in_memory=True) as house, house.chat(adder) as talk:
        assert (await talk.send("2")).output == Sum(total=2)
        assert (await talk.send("5")).output == Sum(total=7)
        assert [(one.prompt, one.answer.replace(" ", "")) for one in await talk.turns()] == [
            ("2", '{"total":2}'),
            ("5", '{"total":7}'),
        ]


async def test_an_answer_that_never_fits_ends_the_turn_and_not_the_conversation() -> None:
    wrong = [calls("answer", f"w{number}", total="many") for number in range(2)]
    play = in_order(*wrong, calls("answer", "r", total=3))
    adder = Agent("adder", output_type=Sum, output_retries=1, model=Played(play))
    async with Greenroom(in_memory=True) as house, house.chat(adder) as talk:
        with pytest.raises(ModelFault, match="2 times in a row") as fault:
            await talk.send("Add.")
        assert fault.value.run_id == talk.id != ""
        assert (await talk.send("Again.")).output == Sum(total=3)


async def test_an_answer_is_heard_as_it_comes_and_only_that_one() -> None:
    @tool(effect="pure")
    def echo(text: str) -> str:
        """Say it back."""
        return text

    play = in_order(says("Hello."), calls("echo", text="a"), says("Done."))
    agent = Agent("ann", tools=[echo], model=Played(play))
    async with Greenroom(in_memory=True) as house, house.chat(agent) as talk:
        await talk.send("Hi.")
        heard = [one async for one in talk.stream("Go.")]
    assert heard[:3] == [
        ToolCallStarted(agent="ann", tool="echo", arguments={"text": "a"}, call_id="c1"),
        ToolCallFinished(agent="ann", tool="echo", output="a", is_error=False, call_id="c1"),
        TextDelta(agent="ann", text="Done."),
    ]
    assert isinstance(heard[3], RunResult)
    assert heard[3].output == "Done."


async def test_a_conversation_is_gone_on_with_in_another_house(tmp_path: Path) -> None:
    def play(request: ModelRequest) -> Answer:
        return says(f"{len(said(request))} messages")

    agent = Agent("ann", model=Played(play))
    async with Greenroom(tmp_path) as house, house.chat(agent) as talk:
        await talk.send("One.")
    async with Greenroom(tmp_path) as house:
        async with house.chat(agent, resume=talk.id) as again:
            assert [one.prompt for one in await again.turns()] == ["One."]
            assert (await again.send("Two.")).output == "3 messages"
        async with house.chat(agent, resume="last") as last:
            assert (await last.send("Three.")).output == "5 messages"
            assert last.id == talk.id
        (known,) = await house.runs(agent)
        assert (known.run_id, known.is_conversation, known.state, known.text) == (talk.id, True, "idle", "Chat: One.")
        with pytest.raises(WorldFault, match="is not a run of"):
            await house.resume(agent, talk.id)
        with pytest.raises(WorldFault, match="is not a conversation with the agent 'bob'"):
            await house.chat(Agent("bob"), resume=talk.id).__aenter__()
        with pytest.raises(WorldFault, match="no conversation with the agent 'bob' to continue"):
            await house.chat(Agent("bob"), resume="last").__aenter__()


async def test_what_a_provider_cut_off_goes_on() -> None:
    model = Played(in_order((Failed(kind="auth", why="The key is wrong."),), says("Here I am.")))
    async with Greenroom(in_memory=True) as house, house.chat(Agent("ann", model=model)) as talk:
        with pytest.raises(WorldFault, match="This conversation has no messages yet"):
            await talk.resume()
        with pytest.raises(ProviderFault, match=r"The key is wrong\..*conversation\.resume\(\)") as fault:
            await talk.send("Well?")
        assert fault.value.run_id == talk.id
        assert (await talk.resume()).output == "Here I am."
        with pytest.raises(WorldFault, match="The message is empty"):
            await talk.send(" ")


async def test_what_was_cut_off_goes_on_after_a_crash(tmp_path: Path) -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def wait() -> str:
        """Wait."""
        begun.set()
        await done.wait()
        return "waited"

    agent = Agent("ann", tools=[wait], model=Played(in_order(calls("wait"), says("Done."), says("Yes."))))
    async with Greenroom(tmp_path) as house, house.chat(agent) as talk:
        saying = asyncio.create_task(talk.send("Wait for it."))
        await asyncio.wait_for(begun.wait(), 10)
        saying.cancel()
    done.set()
    async with Greenroom(tmp_path) as house, house.chat(agent, resume=talk.id) as again:
        assert (await again.resume()).output == "Done."
        assert (await again.send("Really?")).output == "Yes."


@pytest.mark.req("AG-34")
async def test_an_answer_can_be_interrupted_and_something_else_said() -> None:
    class Counts(Played):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            if not self.asked:
                self.asked.append(request)
                yield ModelTextDelta(text="One, two")
                await asyncio.Event().wait()
            async for event in super().stream(request):
                yield event

    model = Counts(lambda _: says("Better."))
    async with Greenroom(in_memory=True) as house, house.chat(Agent("ann", model=model)) as talk:
        heard: list[object] = []

        async def listen() -> None:
            async for one in talk.stream("Count."):
                heard.append(one)
                await talk.interrupt()

        with pytest.raises(RefusedError, match="It was interrupted"):
            await listen()
        assert heard == [TextDelta(agent="ann", text="One, two")]
        assert (await talk.send("Say hello.")).output == "Better."
        assert [(one.prompt, one.answer) for one in await talk.turns()] == [
            ("Count.", "One, two"),
            ("Say hello.", "Better."),
        ]
    assert said(model.asked[1])[1] == "assistant: One, two […]"


async def test_who_stops_listening_does_not_hold_up_the_conversation() -> None:
    model = Played(lambda request: (*says("One, ")[:1], *says(f"to: {request.messages[-1].content}")))
    async with Greenroom(in_memory=True) as house, house.chat(Agent("ann", model=model)) as talk:
        left = talk.stream("Count.")
        assert await anext(aiter(left)) == TextDelta(agent="ann", text="One, ")
        assert (await asyncio.wait_for(talk.send("And?"), 10)).output == "One, to: And?"


async def test_an_answer_can_be_interrupted_while_somebody_decides() -> None:
    asked = asyncio.Event()

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay somebody."""
        return f"paid {amount}"

    async def approve(_: ApprovalRequest) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    agent = Agent("clerk", tools=[pay], model=Played(in_order(calls("pay", amount=5), says("All right."))))
    async with Greenroom(in_memory=True) as house, house.chat(agent, approve=approve) as talk:
        saying = asyncio.create_task(talk.send("Pay five."))
        await asyncio.wait_for(asked.wait(), 10)
        await talk.interrupt()
        with pytest.raises(RefusedError, match="It was interrupted"):
            await asyncio.wait_for(saying, 10)
        assert (await talk.send("Never mind.")).output == "All right."


async def test_who_says_something_meanwhile_waits_for_their_turn() -> None:
    model = Played(lambda request: says(f"To: {request.messages[-1].content}"))
    async with Greenroom(in_memory=True) as house, house.chat(Agent("ann", model=model)) as talk:
        first, second = await asyncio.gather(talk.send("A."), talk.send("B."))
    assert (first.output, second.output) == ("To: A.", "To: B.")


@pytest.mark.req("AG-39")
async def test_a_conversation_can_begin_anew() -> None:
    model = Played(lambda request: says(f"{len(said(request))}"))
    async with Greenroom(in_memory=True) as house, house.chat(Agent("ann", model=model)) as talk:
        told: list[str] = []
        for name in ("before_history_clear", "after_history_clear"):
            house.events.subscribe(name, lambda name=name, **_: told.append(name))
        with pytest.raises(WorldFault, match="no messages yet"):
            await talk.clear()
        await talk.send("One.")
        await talk.clear()
        assert (await talk.send("Two.")).output == "1"
        assert [one.prompt for one in await talk.turns()] == ["Two."]
        assert told == ["before_history_clear", "after_history_clear"]


async def test_tools_of_a_conversation_are_asked_about_and_given_what_they_need() -> None:
    @tool(needs_approval=True)
    def pay(amount: int, purse: Context[list[int]]) -> str:
        """Pay somebody."""
        purse.append(amount)
        return "paid"

    async def approve(asked: ApprovalRequest) -> bool:
        return asked.arguments == {"amount": 5}

    play = in_order(calls("pay", amount=5), says("It is paid."))
    purse: list[int] = []
    agent = Agent("clerk", tools=[pay], model=Played(play))
    async with Greenroom(in_memory=True) as house, house.chat(agent, approve=approve, context=purse) as talk:
        result = await talk.send("Pay five.")
    assert (result.output, purse, result.usage.cost) == ("It is paid.", [5], 2e-06)


def test_a_script_needs_no_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GREENROOM_HOME", raising=False)
    agent = Agent("ann", model=Played(lambda request: says(f"{len(said(request))}")))
    talk = agent.chat_sync()
    assert [talk.send("One.").output, talk.send("Two.").output] == ["1", "3"]
    assert [one.prompt for one in talk.turns()] == ["One.", "Two."]
    assert agent.chat_sync(resume=talk.id).send("Three.").output == "5"


async def test_an_agent_opens_a_house_for_a_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GREENROOM_HOME", raising=False)
    async with Agent("ann", model=Played(lambda _: says("Yes."))).chat() as talk:
        assert (await talk.send("Well?")).output == "Yes."
