"""A turn: what a reply means, when the work is over, and what happens at the limits."""

import pytest

from greenroom.abilities.skills.talk.endings import auto_completes, ends_of, is_over, without_mark
from greenroom.core.base.records import Data
from greenroom.core.ports.model import Finished, ModelRequest, ToolCall, Usage
from greenroom.core.ports.reading import Acted, Misread
from greenroom.core.rules.intents import Interrupt
from greenroom.core.state.spec import AgentSpec, History, Turn
from tests.abilities.skills.talks import ANN, BOB, T1, Answer, Played, calls, in_order, says, team

FINISH = AgentSpec(name="Ann", tools=("echo",), turn=Turn(ends="finish"))


@pytest.mark.req("AG-162", "AG-175", "AG-176")
@pytest.mark.parametrize(
    ("explicit", "non_interactive", "in_multi_agent", "managed", "honour", "expected"),
    [
        (explicit, alone, company, managed, honour, expected)
        for explicit in (None, True, False)
        for alone in (True, False)
        for company in (True, False)
        for managed in (True, False)
        for honour in (True, False)
        for expected in [
            (honour and explicit is True)
            if managed
            else (explicit if explicit is not None else (False if company else alone))
        ]
    ],
)
def test_who_may_end_a_task_by_itself(
    *, explicit: bool | None, non_interactive: bool, in_multi_agent: bool, managed: bool, honour: bool, expected: bool
) -> None:
    found = auto_completes(
        explicit, non_interactive=non_interactive, in_multi_agent=in_multi_agent, managed=managed, honour=honour
    )
    assert found is expected


@pytest.mark.parametrize(
    ("protocols", "subtask", "expected"),
    [((), False, "text"), ((), True, "finish"), (("tool_call",), False, "mark"), (("xml_tool",), True, "text")],
)
def test_what_ends_work_fits_the_form_in_which_the_agent_acts(
    protocols: tuple[str, ...], subtask: bool, expected: str
) -> None:
    assert ends_of(AgentSpec(name="a", turn=Turn(protocols=protocols)), subtask=subtask) == expected


@pytest.mark.req("AG-36", "AG-37")
def test_a_mark_ends_work_only_where_the_agent_may_end_it() -> None:
    assert is_over("mark", "Done.\n!!!COMPLETE!!!", auto_complete=True, nudges=0) == "mark"
    assert is_over("mark", "Done.\n!!!COMPLETE!!!", auto_complete=False, nudges=0) == "held"
    assert is_over("mark", "Done.", auto_complete=True, nudges=0) is None
    assert is_over("mark", "Done.", auto_complete=True, nudges=5) == "silent"
    assert without_mark("Done.\n`!!!COMPLETE!!!`") == "Done."


async def test_work_that_ends_with_a_call_ends_with_its_summary_and_its_claims() -> None:
    ends = calls("finish", status="done", summary="All is there.", claims=["3 passed"])
    async with team(Played(in_order(says("I think so."), ends)), FINISH) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "All is there."
        (task,) = await here.runtime.ended_tasks(here.team)
    assert task.evidence == ("3 passed",)


async def test_text_without_a_call_gets_one_nudge_and_then_is_the_summary() -> None:
    model = Played(in_order(says("Done, I think."), says("Really done.")))
    async with team(model, FINISH) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "Really done."
        assert [(step.result or {}).get("over") for step in await here.steps()] == [None, "unproven"]
    assert len(model.asked) == 2
    assert "call `finish`" in model.asked[1].messages[-1].content


async def test_work_that_failed_says_so() -> None:
    async with team(Played(lambda _: calls("finish", status="failed", summary="No such file.")), FINISH) as here:
        assert await here.ask() == "failed"
        assert await here.summary() == "No such file."


@pytest.mark.req("AF-9", "AF-51")
async def test_at_its_limit_an_agent_has_one_last_turn_without_tools() -> None:
    spec = AgentSpec(name="Ann", tools=("echo",), turn=Turn(rounds=2))
    model = Played(lambda request: says("So far.") if request.tool_choice == "none" else calls("echo", text="x"))
    async with team(model, spec) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "So far."
    assert [one.tool_choice for one in model.asked] == ["auto", "auto", "none"]
    assert model.asked[0].tools == model.asked[-1].tools, "the prefix stays the same"
    assert "2 times" in model.asked[-1].messages[-1].content


async def test_calls_in_the_last_turn_are_answered_and_not_run() -> None:
    spec = AgentSpec(name="Ann", tools=("echo",), turn=Turn(rounds=1, ends="finish"))
    async with team(Played(lambda _: calls("echo", text="x")), spec) as here:
        assert await here.ask() == "failed", "work that ends with a call has not ended"
        assert (await here.did()).count("echo") == 1


async def test_a_new_question_begins_with_new_rounds() -> None:
    spec = AgentSpec(name="Ann", tools=("echo",), turn=Turn(rounds=1))
    model = Played(in_order(calls("echo", text="x"), says("A."), calls("echo", text="y"), says("B.")))
    async with team(model, spec, solo=False) as here:
        await here.ask("One?")
        await here.ask("Two?")
    assert [one.tool_choice for one in model.asked] == ["auto", "none", "auto", "none"]


@pytest.mark.req("AG-166", "AG-11")
async def test_work_that_is_to_be_summed_up_ends_with_the_summary() -> None:
    spec = AgentSpec(name="Ann", history=History(need_summary=True, summary_prompt="In one line, please."))
    model = Played(lambda request: says("One line.") if request.purpose.skill == "summarize" else says("Long story."))
    async with team(model, spec) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "One line."
    assert model.asked[-1].messages[-1].content == "In one line, please."
    assert model.asked[-1].messages[-2].content == "Long story."


# ---------------------------------------------------------------------------------------------- typed answers


class Fits:
    """Reads nothing; knows whether a value is a number below ten."""

    def instructions(self, *_: object) -> str:
        """None."""
        return ""

    def read(self, *_: object, **__: object) -> Acted | Misread | None:
        """Nothing."""
        return None

    def flaw(self, arguments: str) -> str:
        """Nobody knows."""
        return ""

    def misfit(self, schema: Data, value: object) -> str:
        """What is wrong with it."""
        if schema.get("type") == "object":
            value = value.get("n") if isinstance(value, dict) else None
        return "" if isinstance(value, int) and value < 10 else f"{value!r} is not below ten"


NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def test_an_answer_that_fits_ends_the_work() -> None:
    spec = AgentSpec(name="Ann", answer=NUMBER)
    async with team(Played(in_order(calls("answer", n=70), calls("answer", n=7))), spec, reader=Fits()) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == '{"n":7}'


async def test_what_does_not_fit_comes_back_with_the_reason_and_not_for_ever() -> None:
    spec = AgentSpec(name="Ann", answer=NUMBER, turn=Turn(repairs=1))
    model = Played(lambda _: calls("answer", n=70))
    async with team(model, spec, reader=Fits()) as here:
        assert await here.ask() == "failed"
        assert "70 is not below ten" in await here.summary()
    assert len(model.asked) == 2
    assert "Not taken: 70 is not below ten" in model.asked[1].messages[-1].content


async def test_an_answer_that_is_no_object_is_given_as_a_value_and_in_text_as_json() -> None:
    spec = AgentSpec(name="Ann", answer={"type": "integer"})
    model = Played(in_order(says("seven"), says("```json\n7\n```")))
    async with team(model, spec, reader=Fits()) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "7"
    assert model.asked[0].tools[0].parameters["properties"] == {"value": {"type": "integer"}}
    async with team(Played(lambda _: calls("answer", value=3)), spec, reader=Fits()) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "3"


# ---------------------------------------------------------------------------------------------- calling others


def desk(request: ModelRequest) -> Answer:
    """Ann asks Bob two things at once; Bob says what he was asked."""
    if request.purpose.agent == BOB:
        return says(f"Bob on: {request.messages[-1].content.splitlines()[1]}")
    if any(one.role == "tool" for one in request.messages):
        return says(" / ".join(one.content for one in request.messages if one.role == "tool"))
    return (
        ToolCall(call_id="a", name="call_agent", arguments={"agent_name": "bob", "instruction": "tea"}),
        ToolCall(call_id="b", name="call_agent", arguments={"agent_name": "bob", "instruction": "milk"}),
        ToolCall(call_id="c", name="echo", arguments={"text": "me"}),
        Usage(output=3),
        Finished(reason="calls"),
    )


@pytest.mark.req("AF-46", "AF-78")
async def test_sub_agent_calls_go_out_together_and_each_call_has_exactly_one_result() -> None:
    ann = AgentSpec(name="Ann", tools=("echo",), calls=("bob",))
    model = Played(desk)
    async with team(model, ann, others=[(BOB, AgentSpec(name="Bob", description="knows drinks"))]) as here:
        assert await here.ask() == "finished"
        assert sorted((await here.summary()).split(" / ")) == ["Bob on: milk", "Bob on: tea", "me"]
    results = [one.call_id for one in model.asked[-1].messages if one.role == "tool"]
    assert sorted(map(str, results)) == ["a", "b", "c"]
    assert "`bob`: knows drinks" in model.asked[0].messages[0].content


async def test_whom_nobody_may_call_is_not_called() -> None:
    ann = AgentSpec(name="Ann", calls=("bob",))
    model = Played(in_order(calls("call_agent", agent_name="eve", instruction="x"), says("Then not.")))
    async with team(model, ann, others=[(BOB, AgentSpec(name="Bob"))]) as here:
        assert await here.ask() == "finished"
    assert "there is no 'eve' here. You can call: bob." in model.asked[1].messages[-1].content


async def test_an_interrupted_turn_leaves_a_conversation_that_goes_on() -> None:
    ann = AgentSpec(name="Ann", tools=("echo",))
    model = Played(in_order(calls("echo", text="x"), says("Well.")))
    async with team(model, ann, solo=False) as here:
        await here.ask()
        (thread,) = (await here.runtime.world(here.team)).threads
        await here.runtime.ask(here.team, Interrupt(thread_id=thread))
        assert await here.ask("Something else?") == "idle"
    assert model.asked[-1].messages[-1].content == "Something else?"
    assert ANN in thread
    assert T1 in thread
