"""converse: what the model is asked with, what its reply becomes, and what an answer that is none becomes."""

from collections.abc import Sequence

import pytest

from greenroom.core.base.records import Data
from greenroom.core.ports.executor import LiveEvent
from greenroom.core.ports.model import (
    Failed,
    FaultKind,
    Finished,
    ModelEvent,
    ModelReasoningDelta,
    ModelTextDelta,
    Opaque,
    Retried,
    ToolCall,
    Usage,
)
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepInterrupted
from tests.abilities.skills.talks import Answer, Played, in_order, says, team

EMPTY = "Your last answer was empty. Say what you have found, or call a tool."
DONE: Answer = (ModelTextDelta(text="Done."), Usage(output=2, money=3), Finished(by="fake:m"))
CALL: Answer = (ToolCall(call_id="c1", name="echo", arguments={"text": "1"}), Finished(reason="calls"))


async def asked(*answers: Sequence[ModelEvent], solo: bool = False) -> tuple[Played, list[Step]]:
    """The model and all steps after one question that it answers so."""
    model = Played(in_order(*answers))
    async with team(model, solo=solo) as here:
        await here.ask()
        return model, await here.steps()


async def test_a_tool_round_is_asked_with_the_same_messages_and_more() -> None:
    model, steps = await asked(CALL, DONE)
    assert [(step.work.executor, step.state) for step in steps] == [
        ("converse", "finished"),
        ("echo", "finished"),
        ("converse", "finished"),
    ]
    first, second = (request.messages for request in model.asked)
    assert [one.role for one in second] == ["system", "user", "assistant", "tool"]
    assert second[0] is first[0]
    assert second[1] == first[1]
    assert [tool.name for tool in model.asked[0].tools] == ["echo"]
    assert [request.purpose.turn for request in model.asked] == [1, 2]


async def test_a_reply_is_kept_with_all_that_came_and_what_it_cost() -> None:
    opaque = Opaque(provider="fake", data={"sig": "x"})
    reply = (ModelReasoningDelta(text="hm"), ModelTextDelta(text="Do"), ModelTextDelta(text="ne."), opaque, *DONE[1:])
    model, (step,) = await asked(reply)
    read = sum(len(one.content.encode()) for one in model.asked[0].messages) // 4
    assert step.result == {
        "text": "Done.",
        "calls": [],
        "reasoning": "hm",
        "opaque": [{"provider": "fake", "data": {"sig": "x"}}],
        "usage": {"input": read, "output": 2, "money": 3},
        "by": "fake:m",
    }
    assert (step.spent.tokens, step.spent.money) == (read + 2, 3)


async def test_what_came_before_a_retry_is_void() -> None:
    again = Retried(attempt=2, wait=0.0, failed=Failed(kind="server", why="no"))
    _, (step,) = await asked((ModelTextDelta(text="Hal"), again, *DONE))
    assert (step.result or {})["text"] == "Done."


@pytest.mark.req("AF-27")
async def test_pieces_are_seen_while_they_come() -> None:
    seen: list[LiveEvent] = []
    async with team(Played(in_order(DONE)), solo=False) as here:
        host = await here.runtime.start(here.team)
        host.watch(lambda step, event: seen.append(event))
        await here.ask()
    assert [type(one) for one in seen] == [type(one) for one in DONE]
    assert seen[0] == DONE[0]


@pytest.mark.req("AG-3", "AG-185")
async def test_an_empty_answer_is_asked_for_again_and_then_is_a_failure() -> None:
    nothing: Answer = (Usage(output=0, money=1), Finished())
    model = Played(in_order(nothing, nothing, DONE))
    async with team(model) as here:
        assert await here.ask() == "finished"
    assert [request.messages[-1].content for request in model.asked] == ["Well?", EMPTY, EMPTY]
    _, steps = await asked(nothing, solo=True)
    assert [step.state for step in steps] == ["finished", "finished", "failed"]
    assert steps[-1].error == "fake:m answered nothing 3 times in a row."
    assert steps[-1].spent.money == 1


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((ModelTextDelta(text="Hal"), Failed(kind="filter", why="fake:m refuses.")), "fake:m refuses."),
        ((ModelTextDelta(text="Hal"),), "fake:m stopped before its answer was complete."),
        (
            (Finished(reason="filter", said="content_filter"),),
            "fake:m refuses to answer this (content_filter).",
        ),
    ],
    ids=["refused", "without an end", "taken away by a filter"],
)
async def test_what_is_no_answer_fails_its_step_and_says_why(reply: Answer, error: str) -> None:
    _, (step,) = await asked(reply)
    assert (step.state, step.error) == ("failed", error)


LONG: Answer = (ModelTextDelta(text="Hal"), *CALL[:1], Finished(reason="length"))


async def test_of_a_reply_that_is_cut_off_nothing_is_run_and_it_is_asked_for_in_less() -> None:
    model, steps = await asked(LONG, DONE, solo=True)
    assert [step.work.executor for step in steps] == ["converse", "converse"]
    said, told = model.asked[1].messages[-2:]
    assert (said.role, said.content, said.calls) == ("assistant", "Hal", ())
    assert told.content.startswith("Your last reply was longer than you may write at once.")


async def test_who_is_cut_off_again_and_again_has_failed() -> None:
    async with team(Played(in_order(LONG))) as here:
        assert await here.ask() == "failed"
        steps, summary = await here.steps(), await here.summary()
    why = "longer than the model may write at once (`max_output`)."
    assert [step.state for step in steps] == ["finished", "finished", "failed"]
    assert (summary.endswith(why), steps[-1].error.endswith(why)) == (True, True)


ODD = {"temperature": True, "effort": "max", "streaming": "no", "max_output": -1}


@pytest.mark.parametrize(
    ("config", "temperature", "effort", "streaming", "most"),
    [
        ({"model": "fast"}, None, None, True, 1000),
        ({"temperature": 1, "effort": "low"}, 1.0, "low", True, 1000),
        ({"streaming": False, "max_output": 77}, None, None, False, 77),
        (ODD, None, None, True, 1000),
    ],
)
async def test_an_agent_says_how_it_wants_to_be_answered(
    config: Data, temperature: float | None, effort: str | None, streaming: bool, most: int
) -> None:
    model = Played(lambda _: says("Done."))
    async with team(model, AgentSpec(name="Ann", llm_config=config)) as here:
        await here.ask()
    request = model.asked[0]
    assert (request.temperature, request.effort) == (temperature, effort)
    assert (request.streaming, request.max_output) == (streaming, most)
    assert set(model.names) == {str(config.get("model", ""))}


@pytest.mark.parametrize("kind", ["overloaded", "server", "rate"])
async def test_an_answer_that_broke_off_is_paid_for_whatever_broke_it(kind: FaultKind) -> None:
    broken = (ModelTextDelta(text="Hal"), Failed(kind=kind, why=f"fake:m: {kind}.", again=True))
    refused = (Failed(kind=kind, why=f"fake:m: {kind}."),)
    for answer, costs in ((broken, True), (refused, False)):
        async with team(Played(in_order(answer, DONE)), solo=False) as here:
            await here.ask()
            events = [told.event async for told in here.runtime.events(here.team)]
        (cut_off,) = [event for event in events if isinstance(event, StepInterrupted)]
        assert (cut_off.spent.money > 0) is costs


async def test_what_an_agent_was_told_between_stays_in_its_talk() -> None:
    ghost = (ToolCall(call_id="c1", name="ghost", arguments={}), Finished(reason="calls"))
    model = Played(in_order(ghost, DONE))
    async with team(model, solo=False) as here:
        await here.ask()
        await here.ask("And now?")
    before, after = model.asked[-2].messages, model.asked[-1].messages
    assert [one.content for one in after[: len(before)]] == [one.content for one in before]
