"""Planted circles: agents who all ask the next one and wait. However it goes, nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from greenroom.core.base.ids import AgentId
from greenroom.core.rules.intents import SendMessage
from greenroom.core.state.step import Work
from greenroom.core.state.team_state import TeamState
from tests.abilities.skills.planned.planners import DONE, KIM, NOTHING_MORE, T1, Line, message, said, step
from tests.organisation.crowd import Crowd, Rogue, Together, crowd

NAMES = ("ada", "bea", "cia", "dea", "eva")
SIZES = [2, 5]
PLAN = said("planning", [step("send_message")])
READ = said("process_message", "I see.")


def asks(receiver: str, text: str = "Well?") -> str:
    return said("send_message", message(receiver, text=text, need_reply=True, waiting=True))


def tells(receiver: str, text: str = "This.") -> str:
    return said("send_message", message(receiver, text=text))


def circle(names: Sequence[str], **answers: Line) -> dict[tuple[str, str], Sequence[Line]]:
    """Everybody asks the next one, and answers the one before, if nothing else is said."""
    found: dict[tuple[str, str], Sequence[Line]] = {}
    for place, who in enumerate(names):
        before, behind = names[place - 1], names[(place + 1) % len(names)]
        found[who, "planning"] = [PLAN]
        found[who, "send_message"] = [asks(behind), answers.get(who, tells(before))]
        found[who, "process_message"] = [READ]
        found[who, "reflection"] = [NOTHING_MORE]
        found[who, "summary"] = [DONE]
    return found


async def planted(here: Crowd, names: Sequence[str]) -> None:
    """One stage for all of them, until nothing more happens."""
    await asyncio.wait_for(here.work(dict.fromkeys(names, "ask")), 20)


async def ended(here: Crowd) -> Mapping[str, str]:
    """How everybody stands in the stage."""
    (stage,) = await here.stages()
    return {one.agent_id: one.state for one in stage.members}


@pytest.mark.req("MAS-26", "MAS-268", "MAS-271", "MAS-272")
@pytest.mark.parametrize("size", SIZES)
async def test_who_waits_in_a_circle_still_answers_and_all_go_on(size: int) -> None:
    names = NAMES[:size]
    lines = circle(names)
    async with crowd(lines, *names, model=Together(lines, size)) as here:
        await planted(here, names)
        assert await ended(here) == dict.fromkeys(names, "finished")
        assert len(await here.releases()) == size
        assert all(one.endswith(" reply") for one in await here.releases())
        for who in names:
            assert await here.did(AgentId(who)) == [
                "planning",
                "send_message",
                "send_message",
                "process_message",
                "reflection",
                "summary",
            ]


def asking_back(names: Sequence[str]) -> dict[tuple[str, str], Sequence[Line]]:
    """Everybody asks back before they answer."""
    lines = circle(names)
    for place, who in enumerate(names):
        before, behind = names[place - 1], names[(place + 1) % len(names)]
        lines[who, "send_message"] = [asks(behind), asks(before, "Why?"), tells(before)]
    return lines


@pytest.mark.parametrize("size", SIZES)
async def test_who_asks_back_instead_of_answering_is_told_no_and_answers(size: int) -> None:
    names = NAMES[:size]
    lines = asking_back(names)
    async with crowd(lines, *names, model=Together(lines, size)) as here:
        await planted(here, names)
        assert await ended(here) == dict.fromkeys(names, "finished")
        assert not (await here.world()).waits
        shown = "\n".join(one.content for request in here.model.asked for one in request.messages)
        assert "which is waiting itself. Answer first; or send the message without waiting." in shown


@pytest.mark.parametrize("size", SIZES)
async def test_one_who_writes_to_somebody_else_instead_of_answering_lets_its_waiter_go(size: int) -> None:
    names = NAMES[:size]
    lines = circle(names, ada=tells("kim", "I do not know."))
    async with crowd(lines, *names, model=Together(lines, size)) as here:
        await planted(here, names)
        assert await ended(here) == dict.fromkeys(names, "finished")
        waiter = names[-1]
        assert [one for one in await here.releases() if not one.endswith(" reply")] == [f"{waiter}>1:ada unanswered"]
        steps = [one for one in await here.steps(AgentId(waiter)) if one.work.executor == "process_message"]
        assert steps[0].work.text_content == f"ada handled the message without answering it (message {waiter}>1)."


@pytest.mark.req("MAS-273")
@pytest.mark.parametrize("size", SIZES)
async def test_one_who_never_answers_is_not_waited_for_longer_than_the_team_allows(size: int) -> None:
    names = NAMES[:size]
    lines = circle(names)
    async with crowd(lines, *names, model=Together(lines, size, silent="ada"), waiting_timeout=300) as here:
        await here.work(dict.fromkeys(names, "ask"), wait=False)
        await here.until(lambda world: _finished(world) >= set(names[1:]))
        assert f"{names[-1]}>1:ada timeout" in await here.releases()
        world = await here.world()
        assert not [one for one in names[1:] if world.agents[AgentId(one)].step_lock]
        assert world.agents[AgentId("ada")].running is not None, "it alone still does what nobody waits for"


def _finished(world: TeamState) -> set[str]:
    return {it.agent_id for one in world.stages.values() for it in one.members if it.state == "finished"}


async def test_a_circle_through_a_person_goes_on_as_far_as_it_can_without_them() -> None:
    """Ada asks Kim, Kim asks Bea, Bea asks Ada: Ada answers while she waits, and Bea answers Kim, who sees Ada's."""
    lines: dict[tuple[str, str], Sequence[Line]] = {
        ("ada", "planning"): [PLAN],
        ("ada", "send_message"): [asks("kim"), tells("bea")],
        ("bea", "send_message"): [asks("ada"), tells("kim", "Ada says this.")],
        ("bea", "planning"): [PLAN],
        **{(who, "process_message"): [READ] for who in ("ada", "bea")},
        **{(who, "reflection"): [NOTHING_MORE] for who in ("ada", "bea")},
        **{(who, "summary"): [DONE] for who in ("ada", "bea")},
    }
    async with crowd(lines, "ada", "bea") as here:
        assert await here.work({"ada": "ask"}, group=["bea"]) == "waiting"
        await here.says(AgentId("bea"), "What does Ada say?", waiting=True)
        assert await here.rest() == "waiting"
        world = await here.world()
        assert [(one.waiter, one.on) for one in world.waits.values()] == [("ada", "kim")], "nobody else is left waiting"
        (letter,) = world.mail.values()
        assert (letter.sender_id, letter.receiver, letter.message) == ("ada", ("kim",), "Well?")
        assert "Ada says this." in [one.message for one in await here.messages()]
        await here.says(AgentId("ada"), "Well.")
        assert await here.rest() == "idle"
        assert await ended(here) == {"ada": "finished"}
        assert not (await here.world()).waits


@pytest.mark.req("MAS-245", "MAS-273")
@pytest.mark.parametrize("timeout", [None, 100])
async def test_a_person_who_never_answers_is_waited_for_and_shown_unless_the_asker_has_no_time(
    timeout: int | None,
) -> None:
    asked = SendMessage(task_id=T1, receiver=(KIM,), message="Well?", need_reply=True, waiting=True, timeout=timeout)
    lines: dict[tuple[str, str], Sequence[Line]] = {
        ("ada", "process_message"): [READ],
        ("ada", "think"): [said("think", "x")],
    }
    async with crowd(lines, "ada", executors=[Rogue(asked)], waiting_timeout=50) as here:
        await here.work(group=["ada"])
        works = (Work(type="skill", executor="quick_think"), Work(type="skill", executor="think"))
        await here.queue("ada", *works)
        if timeout is None:
            assert await here.rest() == "waiting", "what holds for agents holds for no person"
            assert [one.message for one in (await here.world()).mail.values()] == ["Well?"]
            assert await here.did(AgentId("ada")) == ["quick_think"]
        else:
            await here.until(lambda world: not world.waits and not world.steps)
            assert await here.did(AgentId("ada")) == ["quick_think", "process_message", "think"]
            assert "kim did not answer in time" in here.model.told("process_message")
            assert not (await here.world()).mail, "nobody owes what nobody waits for"
