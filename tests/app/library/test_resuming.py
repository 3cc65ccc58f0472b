"""Runs that were cut off: which there are, how they stand, and how one goes on with them."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from greenroom import Agent, Greenroom, GreenroomError, ModelFault, Refused, Result, Returned, WorldFault, tool
from greenroom.app.library.results import kits_of_programs
from greenroom.app.library.run import EARLY
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TeamId
from tests.abilities.skills.talks import Played, calls, in_order, says


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
        assert (newest.run, newest.agent, newest.text, newest.state) == (result.run, "bob", "Well?", "finished")
        assert (oldest.agent, oldest.text, oldest.state) == ("ann", "Wait for it.", "stopped")
        assert (newest.over, newest.talk, oldest.over) == (True, False, False)
        assert timedelta() <= datetime.now(UTC) - oldest.begun < timedelta(minutes=1)
        assert [one.run for one in await house.runs(agent)] == [oldest.run]
        assert [one.run for one in await house.runs(most=1)] == [newest.run]


async def test_a_run_goes_on_where_it_was_and_is_heard(tmp_path: Path) -> None:
    agent, _ = await cut_off(tmp_path)
    async with Greenroom(tmp_path) as house:
        (left,) = await house.runs()
        heard = [one async for one in house.stream(agent, resume=left.run)]
    assert isinstance(heard[1], Returned)
    assert isinstance(heard[-1], Result)
    assert (heard[1].output, heard[-1].output, heard[-1].run) == ("waited", "Done.", left.run)


async def test_the_newest_run_of_an_agent_need_not_be_named(tmp_path: Path) -> None:
    agent, _ = await cut_off(tmp_path)
    async with Greenroom(tmp_path) as house:
        assert (await agent.run(resume="last", house=house)).output == "Done."
        with pytest.raises(WorldFault, match="no run of the agent 'ann' that could go on"):
            await house.resume(agent, "last")


async def test_a_run_that_is_over_has_the_same_result_again() -> None:
    agent = Agent("ann", model=Played(in_order(says("Once."), says("Twice."))))
    async with Greenroom(memory=True) as house:
        result = await house.run(agent, "Well?")
        assert await house.resume(agent, result.run) == result


async def test_every_fault_of_a_run_names_it() -> None:
    agent = Agent("ann", output_type=int, repairs=0, model=Played(lambda _: says("many")))
    async with Greenroom(memory=True) as house:
        with pytest.raises(ModelFault) as fault:
            await house.run(agent, "Well?")
        with pytest.raises(GreenroomError) as heard:
            _ = [one async for one in house.stream(agent, "Well?")]
        assert [one.run for one in await house.runs()] == [heard.value.run, fault.value.run]
        with pytest.raises(WorldFault) as none:
            await house.run(agent, "")
        assert none.value.run == ""


async def test_a_run_that_somebody_ended_does_not_say_how_to_go_on() -> None:
    begun = asyncio.Event()
    agent = slow(begun, asyncio.Event())
    async with Greenroom(memory=True) as house, house.start(agent, "Wait.") as run:
        await asyncio.wait_for(begun.wait(), 10)
        await run.cancel()
        with pytest.raises(Refused, match=r"^It is cancelled: cancelled by a person$") as fault:
            await run.result()
    assert fault.value.run == run.id


async def test_what_a_program_keeps_can_only_go_on_in_a_program(tmp_path: Path) -> None:
    agent = Agent("ann", model=Played(lambda _: says("Yes.")))
    async with Greenroom(tmp_path) as house:
        result = await house.run(agent, "Well?")
        async with house.chat(agent) as talk:
            await talk.say("Hi.")
    runtime = await Runtime.open(tmp_path, kits=kits_of_programs())
    try:
        with pytest.raises(WorldFault, match=rf"belongs to a program.*house\.resume\(agent, '{result.run}'\)"):
            await runtime.start(result.run)
        with pytest.raises(WorldFault, match=rf"house\.chat\(agent, resume='{talk.id}'\)"):
            await runtime.start(TeamId(talk.id))
    finally:
        await runtime.close()


async def test_what_nobody_listens_to_does_not_pile_up() -> None:
    words = [one for text in ["word "] * (3 * EARLY) for one in says(text)[:1]]
    agent = Agent("ann", model=Played(lambda _: (*words, *says("end.")[1:])))
    async with Greenroom(memory=True) as house:
        async with house.start(agent, "Talk.") as run:
            await run.result()
            assert len([one async for one in run.heard()]) == EARLY + 1, "the newest pieces, and the result"
        heard = [one async for one in house.stream(agent, "Talk.")]
    assert len(heard) == 3 * EARLY + 1, "who listens hears all"
