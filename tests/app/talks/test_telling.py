"""Something is said to whoever manages a task while it goes on."""

import asyncio

import pytest

from greenroom.abilities.skills.talking import talking
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.conversation.kits import talk_kits
from greenroom.app.conversation.names import RUN
from greenroom.app.conversation.send import tell
from greenroom.app.conversation.start import found_alone
from greenroom.app.kit import Kit
from greenroom.app.lookup import Found
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import Refused
from greenroom.core.base.ids import AgentId, TaskId
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.model import ToolCall, ToolSpec
from greenroom.core.rules.intents import AddTask, PauseTask
from greenroom.core.state.spec import AgentSpec
from tests.app.talks.voice import HELD, PATIENCE, Voice, cast
from tests.app.team import Held

FIRST = TaskId("t1")


async def test_it_is_read_before_the_work_is_over() -> None:
    voice = Voice(HELD, "Done, and in French.")
    runtime = Runtime(MemoryLog(), kits=talk_kits(voice, str))
    team = await found_alone(runtime, RUN, cast(), "Write.", limits=Limits())
    await runtime.start(team)
    async with asyncio.timeout(PATIENCE):
        await voice.speaks.wait()
        told = await tell(runtime, Found(team=team), "In French, please.")
        assert (told.reader, told.task, told.paused) == ("assistant", "t1", "")
        assert told.owner is not None
        voice.goes_on.set()
        assert (await runtime.wait(team, FIRST)).why == "Done, and in French."
    assert voice.heard == ["user: Write.", f"assistant: {HELD}", "user: In French, please."]
    await runtime.close()


async def test_beside_a_call_it_is_read_with_the_result_of_that_call() -> None:
    voice, tool = Voice(ToolCall(call_id="c1", name="held", arguments={}), "Done."), Held()
    spec = ToolSpec(name="held", description="Wait.", parameters={"type": "object"})
    kit = Kit(abilities=Abilities([*talking(voice, [spec], solo=True), tool]))
    runtime = Runtime(MemoryLog(), kits={RUN: lambda _: kit})
    team = await found_alone(runtime, RUN, cast(AgentSpec(name="ann", tools=("held",))), "Write.", limits=Limits())
    await runtime.start(team)
    async with asyncio.timeout(PATIENCE):
        await tool.begun.wait()
        await tell(runtime, Found(team=team, task=FIRST), "In French, please.")
        tool.let_go.set()
        assert (await runtime.wait(team, FIRST)).why == "Done."
    assert voice.heard == ["user: Write.", "assistant: ", "tool: let go", "user: In French, please."]
    assert len(voice.requests) == 2, "no turn more than it takes"
    await runtime.close()


async def test_what_was_said_first_is_read_first() -> None:
    voice = Voice("Done.", "Done, in French.", "Done, in red.")
    runtime = Runtime(MemoryLog(), kits=talk_kits(voice, str))
    team = await found_alone(runtime, RUN, cast(), "Write.", limits=Limits())
    for text in ("In French, please.", "And in red."):
        await tell(runtime, Found(team=team), text)
    await runtime.start(team)
    async with asyncio.timeout(PATIENCE):
        await runtime.wait(team, FIRST)
    assert [one for one in voice.heard if one.startswith("user:")] == [
        "user: Write.",
        "user: In French, please.",
        "user: And in red.",
    ]
    await runtime.close()


async def test_a_team_that_nobody_runs_reads_it_later() -> None:
    voice = Voice()
    runtime = Runtime(MemoryLog(), kits=talk_kits(voice, str))
    team = await found_alone(runtime, RUN, cast(), "Write.", limits=Limits())
    await runtime.ask(team, PauseTask(task_id=FIRST, why="lunch"))
    await runtime.stop(team)
    told = await tell(runtime, Found(team=team), "In French, please.")
    assert (told.owner, told.paused) == (None, "lunch")
    await runtime.close()


async def test_what_is_over_reads_nothing() -> None:
    voice = Voice()
    runtime = Runtime(MemoryLog(), kits=talk_kits(voice, str))
    team = await found_alone(runtime, RUN, cast(), "Write.", limits=Limits())
    await runtime.start(team)
    async with asyncio.timeout(PATIENCE):
        await runtime.wait(team, FIRST)
    for found in (Found(team=team), Found(team=team, task=FIRST)):
        with pytest.raises(Refused, match=r"is over\. Begin something new"):
            await tell(runtime, found, "Hello?")
    await runtime.close()


async def test_a_person_is_not_told_anything_by_us() -> None:
    runtime = Runtime(MemoryLog())
    person = AgentId("you")
    team = await runtime.create("x", [(person, AgentSpec(name="you", kind="human"))])
    await runtime.ask(team, AddTask(name="mine", intention="", manager=person))
    with pytest.raises(Refused, match="Talk to them yourself"):
        await tell(runtime, Found(team=team), "Hello?")
    await runtime.close()
