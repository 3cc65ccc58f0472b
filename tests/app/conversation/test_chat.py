"""A conversation that stays open: turns, interruptions, trouble, beginning anew, finding it, messages from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.conversation.capability_names import ASK, RUN
from greenroom.app.conversation.chat import (
    Chat,
    Turn,
    fail_idle_tasks,
    find_chat,
    list_chats,
    list_team_models,
    list_typed_texts,
)
from greenroom.app.conversation.factories import make_conversation_factories
from greenroom.app.conversation.send import send_to_run
from greenroom.app.conversation.start import (
    ASSISTANT,
    FIRST_TASK_ID,
    create_single_task_team,
    make_question_task,
    select_participants,
)
from greenroom.app.lookup import TaskReference
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import Bug, RefusedError, StoreFault
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.model import Failed, ToolCall, ToolSpec
from greenroom.core.rules.intents import AddTask, CancelTask, PauseTask
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team_state import TeamState
from tests.app.conversation.voice import HELD, PATIENCE, Voice, cast, talked
from tests.app.team import Held

DOWN = Failed(kind="auth", why="test:voice does not let us in.")
WRONG = Failed(kind="request", why="test:voice does not understand that.")


async def test_each_thing_that_is_said_is_a_turn_of_one_conversation() -> None:
    async with talked(["Hello.", "Fine."], notes="Be kind.") as talk:
        assert (await talk.say("Hi.")).answer == "Hello."
        turn = await talk.say("How are you?")
        assert (turn.state, turn.answer, turn.last) == ("answered", "Fine.", False)
        assert (turn.spent.tokens, turn.spent.money) == (15, 7), "what this turn has cost, not the one before"
        assert talk.voice.heard == ["user: Hi.", "assistant: Hello.", "user: How are you?"]
        assert "Be kind." in talk.voice.requests[0].messages[0].content
        assert talk.voice.called[0] == "test:voice"
        assert (await talk.chat.state()).tasks[TaskId("t1")].name == "Chat: Hi."


async def test_nothing_exists_before_something_was_said() -> None:
    async with talked() as talk:
        assert await talk.runtime.log.streams() == []
        with pytest.raises(Bug, match="no messages yet"):
            await talk.chat.state()


@pytest.mark.req("AG-34")
async def test_a_turn_can_be_interrupted_and_something_else_said_instead() -> None:
    async with talked([HELD, "Better."]) as talk:
        await talk.begin("Count to a million.")
        turn = await talk.interrupted()
        assert (turn.state, turn.answer, turn.last) == ("interrupted", HELD, False)
        assert (await talk.say("Say hello.")).answer == "Better."
        first, begun, second = talk.voice.heard
        assert first == "user: Count to a million."
        assert begun == f"assistant: {HELD} […]", "the words that were there to be read"
        assert second.startswith("user: (You were interrupted.")
        assert second.endswith("\n\nSay hello.")
        assert (await talk.say("And?")).answer == "Heard: And?", "it is said once that somebody was interrupted"


@pytest.mark.req("AG-34")
async def test_what_was_interrupted_can_go_on() -> None:
    async with talked([HELD, "One, two."]) as talk:
        await talk.begin("Count.")
        await talk.interrupted()
        await talk.chat.resume()
        assert (await talk.over()).answer == "One, two."
        assert talk.voice.heard == ["user: Count.", f"assistant: {HELD} […]", "user: Go on."]


async def test_an_interruption_that_comes_too_late_is_none() -> None:
    async with talked() as talk:
        await talk.say("Hi.")
        await talk.chat.interrupt()
        assert (await talk.say("Again.")).state == "answered"
        assert talk.voice.heard[-1] == "user: Again."


async def test_who_could_not_be_asked_is_asked_again_with_what_was_said_since() -> None:
    async with talked([DOWN, "Both."]) as talk:
        turn = await talk.say("One?")
        assert (turn.state, turn.why) == ("provider", "provider: test:voice does not let us in.")
        assert await talk.chat.is_working()
        assert (await talk.say("Two?")).answer == "Both."
        assert talk.voice.heard == ["user: One?", "user: Two?"], "one turn for both"


async def test_an_answer_that_is_no_use_says_why_and_the_chat_stays_open() -> None:
    async with talked([WRONG, "Now."]) as talk:
        turn = await talk.say("One?")
        assert (turn.state, turn.why, turn.last) == ("failed", "test:voice does not understand that.", False)
        await fail_idle_tasks(talk.runtime, talk.chat.team or pytest.fail("no team"))
        assert (await talk.say("Again?")).answer == "Now.", "nothing has ended the chat"


async def test_a_limit_holds_until_more_is_allowed() -> None:
    async with talked() as talk:
        turn = await talk.say("One?", limits=Limits(tokens=10))
        assert (turn.state, turn.why) == ("limit", "limit: team tokens")
        assert (await talk.say("Still?")).state == "limit"
        await talk.chat.set_limits(Limits(tokens=100_000))
        await talk.chat.resume()
        assert (await talk.over()).answer == "Heard: Still?"
        assert talk.voice.heard == ["user: One?", "user: Still?"]


@pytest.mark.req("AG-38", "AG-39")
async def test_clearing_begins_anew_and_keeps_who_the_agent_is() -> None:
    async with talked() as talk:
        await talk.say("My name is Ada.")
        thread = talk.chat.thread
        assert (await talk.chat.state()).threads[thread].size > 0
        await talk.chat.clear()
        assert (await talk.chat.state()).threads[thread].size == 0
        assert await talk.chat.list_turns() == []
        await talk.say("Who am I?")
        assert talk.voice.heard == ["user: Who am I?"]
        before, after = talk.voice.requests
        assert before.messages[0] == after.messages[0], "the system prompt is there at once"
        await talk.chat.clear()
        await talk.chat.clear()
        assert (await talk.say("And now?")).answer == "Heard: And now?"


@pytest.mark.req("AG-37")
async def test_a_person_continues_or_completes_with_a_summary() -> None:
    async with talked(["One."]) as talk:
        await talk.say("Count.")
        await talk.chat.resume()
        assert (await talk.over()).answer == "Heard: Go on.", "another turn"
        await talk.chat.complete("We counted.")
        turn = await talk.over()
        assert (turn.state, turn.why, turn.last) == ("finished", "We counted.", True)
        with pytest.raises(RefusedError):
            await talk.chat.send("More?")


@pytest.mark.req("AG-40")
async def test_chats_with_different_models_never_mix() -> None:
    async with talked() as talk:
        await talk.say("I am Ada.")
        other = Chat(talk.runtime, agent=talk.chat.agent)
        await other.create_team(
            select_participants(ASSISTANT, {}, str, model="test:other"), "I am Bob.", limits=Limits()
        )
        await other.open()
        await other.wait()
        assert list_team_models(await talk.chat.state()) == ("test:voice",)
        assert list_team_models(await other.state()) == ("test:other",)
        assert [one.prompt for one in await talk.chat.list_turns()] == ["I am Ada."]
        assert [one.prompt for one in await other.list_turns()] == ["I am Bob."]
        other.close()


async def test_a_chat_keeps_its_model_and_what_was_chosen_since() -> None:
    async with talked() as talk:
        await talk.say("Hi.")
        state = await talk.chat.state()
        assert list_team_models(state) == ("test:voice",)
        await talk.chat.set_model("test:other")
        assert list_team_models(await talk.chat.state()) == ("test:other",)


async def test_what_was_said_can_be_read_again_without_what_went_along() -> None:
    async with talked(["Hello.", ToolCall(call_id="1", name="nothing", arguments={}), "No such thing."]) as talk:
        await talk.say("Hi.")
        await talk.chat.send("File `a.md`: …\n\nSee @a.md", typed="See @a.md")
        await talk.over()
        said = await talk.chat.list_turns()
        assert [(one.prompt, one.answer) for one in said] == [("Hi.", "Hello."), ("See @a.md", "No such thing.")]
        assert said[0] == Turn(prompt="Hi.", answer="Hello.")
        teams = [talk.chat.team or pytest.fail("no team")]
        assert [line async for line in list_typed_texts(talk.runtime, teams, limit=9)] == ["See @a.md", "Hi."]
        assert [line async for line in list_typed_texts(talk.runtime, teams * 2, limit=1)] == ["See @a.md"]


async def test_a_chat_that_is_taken_up_again_is_the_same_one() -> None:
    async with talked() as talk:
        await talk.say("My name is Ada.")
        talk.chat.close()
        team = talk.chat.team or pytest.fail("no team")
        await talk.runtime.stop(team)
        again = Chat(talk.runtime, team=team, agent=talk.chat.agent)
        await again.open()
        await again.send("Who am I?")
        assert (await again.wait()).answer == "Heard: Who am I?"
        assert talk.voice.heard[0] == "user: My name is Ada."
        assert len(await talk.runtime.log.streams()) == 1, "no copy is left behind"
        again.close()


async def test_the_last_chat_is_the_newest_open_one_whatever_ran_since() -> None:
    runtime = Runtime(MemoryLog())
    old = await Chat(runtime, agent=cast().first).create_team(cast(), "One.", limits=Limits())
    over = await Chat(runtime, agent=cast().first).create_team(cast(), "Two.", limits=Limits())
    await runtime.ask(over, CancelTask(task_id=FIRST_TASK_ID))
    other = await create_single_task_team(runtime, ASK, cast(), "Three?", limits=Limits())
    assert await find_chat(runtime, "last") == old
    assert await find_chat(runtime, old[:4]) == old
    assert await list_chats(runtime) == [over, old]
    assert await list_chats(runtime, limit=1) == [over]
    with pytest.raises(RefusedError, match=f"'{other}' is not a chat"):
        await find_chat(runtime, other)
    with pytest.raises(RefusedError, match="is over"):
        await find_chat(runtime, over)
    with pytest.raises(RefusedError, match="There is no team 'nobody'"):
        await find_chat(runtime, "nobody")
    await runtime.close()


@pytest.mark.req("AG-42")
async def test_no_chat_or_one_that_cannot_be_read_is_no_error_for_who_wants_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = Runtime(MemoryLog())
    assert await find_chat(runtime, "last") is None
    await Chat(runtime, agent=cast().first).create_team(cast(), "One.", limits=Limits())

    async def damaged(_: Runtime, team: TeamId, at: int | None = None) -> TeamState:
        raise StoreFault(f"{team} is damaged.")

    monkeypatch.setattr(Runtime, "state", damaged)
    assert await find_chat(runtime, "last") is None
    monkeypatch.undo()
    await runtime.close()


FIRST_TASK = TaskId("t1")


async def test_it_is_read_before_the_work_is_over() -> None:
    voice = Voice(HELD, "Done, and in French.")
    runtime = Runtime(MemoryLog(), capability_factories=make_conversation_factories(voice, str))
    team = await create_single_task_team(runtime, RUN, cast(), "Write.", limits=Limits())
    await runtime.start(team)
    async with asyncio.timeout(PATIENCE):
        await voice.speaks.wait()
        told = await send_to_run(runtime, TaskReference(team=team), "In French, please.")
        assert (told.reader, told.task, told.paused) == ("assistant", "t1", "")
        assert told.owner is not None
        voice.goes_on.set()
        assert (await runtime.wait(team, FIRST_TASK)).reason == "Done, and in French."
    assert voice.heard == ["user: Write.", f"assistant: {HELD}", "user: In French, please."]
    await runtime.close()


async def test_beside_a_call_it_is_read_with_the_result_of_that_call() -> None:
    voice, tool = Voice(ToolCall(call_id="c1", name="held", arguments={}), "Done."), Held()
    spec = ToolSpec(name="held", description="Wait.", parameters={"type": "object"})
    kit = Capabilities([*build_conversation_skills(voice, [spec], solo=True), tool])
    runtime = Runtime(MemoryLog(), capability_factories={RUN: lambda _: kit})
    team = await create_single_task_team(
        runtime, RUN, cast(AgentSpec(name="ann", tools=("held",))), "Write.", limits=Limits()
    )
    await runtime.start(team)
    async with asyncio.timeout(PATIENCE):
        await tool.begun.wait()
        await send_to_run(runtime, TaskReference(team=team, task=FIRST_TASK), "In French, please.")
        tool.let_go.set()
        assert (await runtime.wait(team, FIRST_TASK)).reason == "Done."
    assert voice.heard == ["user: Write.", "assistant: ", "tool: let go", "user: In French, please."]
    assert len(voice.requests) == 2, "no turn more than it takes"
    await runtime.close()


async def test_what_was_said_first_is_read_first() -> None:
    voice = Voice("Done.", "Done, in French.", "Done, in red.")
    runtime = Runtime(MemoryLog(), capability_factories=make_conversation_factories(voice, str))
    team = await create_single_task_team(runtime, RUN, cast(), "Write.", limits=Limits())
    for text in ("In French, please.", "And in red."):
        await send_to_run(runtime, TaskReference(team=team), text)
    await runtime.start(team)
    async with asyncio.timeout(PATIENCE):
        await runtime.wait(team, FIRST_TASK)
    assert [one for one in voice.heard if one.startswith("user:")] == [
        "user: Write.",
        "user: In French, please.",
        "user: And in red.",
    ]
    await runtime.close()


async def test_a_team_that_nobody_runs_reads_it_later() -> None:
    voice = Voice()
    runtime = Runtime(MemoryLog(), capability_factories=make_conversation_factories(voice, str))
    team = await create_single_task_team(runtime, RUN, cast(), "Write.", limits=Limits())
    await runtime.ask(team, PauseTask(task_id=FIRST_TASK, why="lunch"))
    await runtime.stop(team)
    told = await send_to_run(runtime, TaskReference(team=team), "In French, please.")
    assert (told.owner, told.paused) == (None, "lunch")
    await runtime.close()


async def test_what_is_over_reads_nothing() -> None:
    voice = Voice()
    runtime = Runtime(MemoryLog(), capability_factories=make_conversation_factories(voice, str))
    team = await create_single_task_team(runtime, RUN, cast(), "Write.", limits=Limits())
    await runtime.start(team)
    async with asyncio.timeout(PATIENCE):
        await runtime.wait(team, FIRST_TASK)
    for found in (TaskReference(team=team), TaskReference(team=team, task=FIRST_TASK)):
        with pytest.raises(RefusedError, match=r"is over\. Start something new"):
            await send_to_run(runtime, found, "Hello?")
    await runtime.close()


async def test_a_person_is_not_told_anything_by_us() -> None:
    runtime = Runtime(MemoryLog())
    person = AgentId("you")
    team = await runtime.create("x", [(person, AgentSpec(name="you", kind="human"))])
    await runtime.ask(team, AddTask(name="mine", intention="", manager=person))
    with pytest.raises(RefusedError, match="Talk to that person directly"):
        await send_to_run(runtime, TaskReference(team=team), "Hello?")
    await runtime.close()


def settled(name: str) -> str:
    return {"": "p:normal", "fast": "p:small"}.get(name, name)


OTHERS: Mapping[str, AgentSpec] = {
    "ben": AgentSpec(name="ben", calls=("ann", "cleo"), llm_config={"model": "fast"}),
    "cleo": AgentSpec(name="cleo", tools=("look",), groups=("read",), language="zh"),
}


def test_the_assistant_is_alone_and_asks_the_normal_model() -> None:
    cast = select_participants(ASSISTANT, OTHERS, settled)
    assert (cast.first, cast.models, cast.missing) == ("assistant", ("p:normal",), ())


def test_an_agent_brings_those_it_calls_and_who_is_missing_is_said() -> None:
    ann = AgentSpec(name="ann", calls=("ben", "dora"), llm_config={"temperature": 0.5})
    cast = select_participants(ann, OTHERS, settled, model="p:large", language="en")
    specs = dict(cast.members)
    assert [name for name, _ in cast.members] == ["ann", "ben", "cleo"]
    assert cast.models == ("p:large", "p:small")
    assert cast.missing == ("dora",)
    assert specs[cast.first].llm_config == {"temperature": 0.5, "model": "p:large"}
    assert [spec.language for spec in specs.values()] == ["en", "en", "zh"]


def test_without_tools_nobody_has_any() -> None:
    cast = select_participants(OTHERS["cleo"], {}, settled, tools=False)
    ((_, spec),) = cast.members
    assert (spec.tools, spec.groups) == ((), ())


def test_a_name_that_is_cut_off_says_so() -> None:
    long = "add a JSON lines export and an XML export,\nwith tests and docs"
    task = make_question_task(long, select_participants(ASSISTANT, {}, str))
    assert task.name == "add a JSON lines export and an XML export, with tests and d…"
    assert task.intention == long
