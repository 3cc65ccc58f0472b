"""Planted circles: agents who all ask the next one and wait. However it goes, nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from greenroom.core.base.ids import AgentId
from greenroom.core.state.team_state import TeamState
from tests.abilities.skills.planned.planners import DONE, NOTHING_MORE, Line, message, said, step
from tests.organisation.crowd import Together, crowd

NAMES = ("ada", "bea", "cia", "dea", "eva")
STEPS = ["planning", "send_message", "send_message", "process_message", "reflection", "summary"]


def circle(names: Sequence[str]) -> dict[tuple[str, str], Sequence[Line]]:
    """Let every agent ask the next one, and answer the one before."""
    lines: dict[tuple[str, str], Sequence[Line]] = {}
    for place, who in enumerate(names):
        question = message(names[(place + 1) % len(names)], text="Well?", need_reply=True, waiting=True)
        answer = message(names[place - 1], text="This.")
        lines[who, "planning"] = [said("planning", [step("send_message")])]
        lines[who, "send_message"] = [said("send_message", question), said("send_message", answer)]
        lines[who, "process_message"] = [said("process_message", "I see.")]
        lines[who, "reflection"] = [NOTHING_MORE]
        lines[who, "summary"] = [DONE]
    return lines


@pytest.mark.req("MAS-26", "MAS-268", "MAS-271", "MAS-272")
@pytest.mark.parametrize("size", [2, 5])
async def test_who_waits_in_a_circle_still_answers_and_all_go_on(size: int) -> None:
    names = NAMES[:size]
    lines = circle(names)
    async with crowd(lines, *names, model=Together(lines, size)) as here:
        await asyncio.wait_for(here.work(dict.fromkeys(names, "ask")), 20)
        (stage,) = await here.stages()
        assert {member.agent_id: member.state for member in stage.members} == dict.fromkeys(names, "finished")
        assert [why.rpartition(" ")[2] for why in await here.releases()] == ["reply"] * size
        for who in names:
            assert await here.did(AgentId(who)) == STEPS


@pytest.mark.req("MAS-273")
@pytest.mark.parametrize("size", [2, 5])
async def test_one_who_never_answers_is_not_waited_for_longer_than_the_team_allows(size: int) -> None:
    names = NAMES[:size]
    lines = circle(names)

    def others_finished(state: TeamState) -> bool:
        members = [member for stage in state.stages.values() for member in stage.members]
        return {member.agent_id for member in members if member.state == "finished"} >= set(names[1:])

    async with crowd(lines, *names, model=Together(lines, size, silent="ada"), waiting_timeout=300) as here:
        await here.work(dict.fromkeys(names, "ask"), wait=False)
        await here.until(others_finished)
        assert f"{names[-1]}>1:ada timeout" in await here.releases()
        state = await here.state()
        assert not [name for name in names[1:] if state.agents[AgentId(name)].step_lock]
        assert state.agents[AgentId("ada")].running is not None, "it alone still does what nobody waits for"
