"""Models that never stop: what they begin again and again is ended by the house, and what there is counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count

import pytest

from greenroom.abilities.skills.planned.skills import MAX_AGENT_RESTARTS
from greenroom.abilities.tools.tool import wrap_long_tail
from greenroom.core.base.ids import AgentId
from greenroom.core.rules.intents import SendMessage
from greenroom.core.state.spec import TurnPolicy
from tests.abilities.skills.planned.digging import SPEC, Dig
from tests.abilities.skills.planned.planners import (
    BOSS,
    DONE,
    KIM,
    NOTHING_MORE,
    T1,
    Line,
    message,
    planner,
    said,
    step,
    tool,
)
from tests.organisation.crowd import crowd

ADA = AgentId("ada")
Lines = dict[tuple[str, str], Sequence[Line]]
REST: Lines = {
    ("ada", "quick_think"): [said("quick_think", "x")],
    ("ada", "think"): [said("think", "x")],
    ("ada", "reflection"): [NOTHING_MORE],
    ("ada", "summary"): [DONE],
    ("ada", "instruction_generation"): [said("instruction_generation", {"where": "here"})],
}
SHORT = TurnPolicy(rounds=3, repairs=1)


async def test_a_plan_that_only_plans_again_is_none() -> None:
    lines: Lines = {**REST, ("ada", "planning"): [said("planning", [step("planning")])]}
    async with crowd(lines, specs={"ada": planner("ada", turn=SHORT)}) as here:
        await asyncio.wait_for(here.work({"ada": "plan"}), 20)
        assert (await here.did(ADA))[:2] == ["!planning", "!planning"]
        assert "Step 1: a plan that only plans again never begins." in here.model.told("planning", 1)


async def test_to_look_back_and_plan_again_in_a_stage_ends_with_the_summary() -> None:
    lines: Lines = {
        **REST,
        ("ada", "planning"): [said("planning", [step("quick_think")])],
        ("ada", "reflection"): [said("reflection", [step("planning")])],
    }
    async with crowd(lines, specs={"ada": planner("ada", turn=SHORT)}) as here:
        await asyncio.wait_for(here.work({"ada": "plan"}), 20)
        done = await here.did(ADA)
        assert (done.count("planning"), done[-1]) == (4, "summary")


@pytest.mark.parametrize("again", ["reflection", "planning"])
async def test_a_manager_who_always_finds_something_to_do_stops_until_somebody_wants_something(again: str) -> None:
    lines: Lines = {
        ("boss", "planning"): [said("planning", [step("think")])],
        ("boss", "think"): [said("think", "x")],
        ("boss", "reflection"): [said("reflection", [step("think"), step(again)])],
    }
    request = SendMessage(task_id=T1, receiver=(BOSS,), message="Tea.", need_reply=True, kind="request", sender=KIM)
    async with crowd(lines, specs={"boss": planner("boss", manager=True, turn=SHORT)}) as here:
        await here.work()
        for number in (1, 2):
            await here.runtime.ask(here.team, request)
            assert await asyncio.wait_for(here.rest(), 20) == "idle"
            added = [one for one in await here.steps(BOSS) if one.work.executor == "reflection"]
            assert len(added) == 4 * number, "three times it may add something, each time somebody asks"


@pytest.mark.parametrize("asks", ["ask_info", "send_message", "waiting", "dig"])
async def test_word_of_what_an_agent_has_asked_for_itself_does_not_let_it_begin_anew(asks: str) -> None:
    """A question to the house, one to somebody with and without waiting for it, and a tool that is to be judged."""
    more = {"dig": tool("dig"), "ask_info": step("ask_info")}.get(asks, step("send_message"))
    question = message("ada", text="And?", need_reply=True, waiting=asks == "waiting")
    lines: Lines = {
        ("boss", "planning"): [said("planning", [step("think")])],
        ("boss", "think"): [said("think", "x")],
        ("boss", "reflection"): [said("reflection", [more, step("reflection")])],
        ("boss", "ask_info"): [said("ask_info", {"type": "5", "about": []})],
        ("boss", "send_message"): [said("send_message", question)],
        ("boss", "process_message"): [said("process_message", "I see.")],
        ("boss", "instruction_generation"): [said("instruction_generation", {"where": "here"})],
        ("boss", "tool_decision"): [said("tool_decision", {"decision": "end", "direction": ""})],
        ("ada", "send_message"): [said("send_message", message("boss", text="So."))],
    }
    boss = planner("boss", manager=True, turn=SHORT, tools=("dig",))
    request = SendMessage(task_id=T1, receiver=(BOSS,), message="Tea.", need_reply=True, kind="request", sender=KIM)
    async with crowd(lines, "ada", specs={"boss": boss}, executors=[wrap_long_tail(Dig())], tools=[SPEC]) as here:
        await here.work(group=["ada"])
        await here.runtime.ask(here.team, request)
        assert await asyncio.wait_for(here.rest(), 20) == "idle"
        done = await here.did(BOSS)
        assert done.count("reflection") == 4, "three times it may add something, and somebody asked once"
        assert done.count("tool_decision" if asks == "dig" else "process_message") == 3


def writing(*pair: str, asks: Callable[[str], Line], plan: str, reflection: str) -> Lines:
    """Two who write to each other, plan this, and look back like this."""
    return {
        (who, skill): [line]
        for who, other in (pair, pair[::-1])
        for skill, line in (
            ("planning", plan),
            ("send_message", asks(other)),
            ("process_message", said("process_message", "I see.")),
            ("reflection", reflection),
            ("summary", DONE),
        )
    }


REQUEST = SendMessage(task_id=T1, receiver=(BOSS, ADA), message="Tea.", need_reply=True, kind="request", sender=KIM)
PLAN = said("planning", [step("send_message"), step("reflection")])
AGAIN = said("reflection", [step("send_message"), step("reflection")])
SPECS = {"boss": planner("boss", manager=True, turn=SHORT), "ada": planner("ada", turn=SHORT)}


@pytest.mark.parametrize("waits", [True, False])
async def test_two_who_look_back_and_send_each_other_the_same_again_are_brought_to_an_end(waits: bool) -> None:
    """Each letter wants something of the other, so each would let it begin anew: but it wants nothing new."""
    lines = writing(
        "boss",
        "ada",
        asks=lambda other: said("send_message", message(other, text="Why?", need_reply=True, waiting=waits)),
        plan=PLAN,
        reflection=AGAIN,
    )
    async with crowd(lines, specs=SPECS) as here:
        await here.work(group=["ada"])
        for number in (1,) if waits else (1, 2):
            await here.runtime.ask(here.team, REQUEST)
            assert await asyncio.wait_for(here.rest(), 30) == "idle"
            looked = [(await here.did(one)).count("reflection") for one in (BOSS, ADA)]
            assert all(4 * number <= one <= 8 * number for one in looked), looked


async def test_two_who_tell_each_other_something_new_for_ever_are_brought_to_an_end() -> None:
    """No letter is like another, so each wants something new: but since a person spoke they have said a lot."""
    number = count()

    def more(other: str) -> Line:
        return lambda _: said("send_message", message(other, text=f"One more thought, number {next(number)}."))

    async with crowd(writing("boss", "ada", asks=more, plan=PLAN, reflection=AGAIN), specs=SPECS) as here:
        await here.work(group=["ada"])
        await here.runtime.ask(here.team, REQUEST)
        assert await asyncio.wait_for(here.rest(), 30) == "idle"
        looked = [(await here.did(one)).count("reflection") for one in (BOSS, ADA)]
        assert all(4 <= one <= MAX_AGENT_RESTARTS + 3 * 4 for one in looked), looked


@pytest.mark.req("MAS-178", "MAS-179")
async def test_a_tool_that_is_always_used_once_more_is_ended() -> None:
    more = said("tool_decision", {"decision": "continue", "direction": "Deeper."})
    lines: Lines = {**REST, ("ada", "planning"): [said("planning", [tool("dig")])], ("ada", "tool_decision"): [more]}
    spec = planner("ada", tools=("dig",), turn=SHORT)
    async with crowd(lines, specs={"ada": spec}, executors=[wrap_long_tail(Dig())], tools=[SPEC]) as here:
        await asyncio.wait_for(here.work({"ada": "dig"}), 20)
        done = await here.did(ADA)
        assert done.count("dig") == 3
        assert done[-3:] == ["tool_decision", "reflection", "summary"]
        last = [one for one in await here.steps(ADA) if one.work.executor == "tool_decision"][-1]
        made = (last.result or {})["tool_decision"]
        assert isinstance(made, dict)
        assert made["decision"] == "end"
