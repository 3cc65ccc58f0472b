"""Planned work on the running house: a stage from its first plan to its summaries."""

import pytest

from greenroom.core.state.spec import Turn
from greenroom.core.state.stage import MemberChanged
from tests.abilities.skills.planned.planners import (
    ANN,
    BOB,
    DONE,
    KIM,
    NOTHING_MORE,
    house,
    lines,
    message,
    planner,
    said,
    step,
    tool,
)

PLAN = said("planning", [step("think"), tool(), step("reflection")])
FILLED = said("instruction_generation", {"text": "hello"})


@pytest.mark.req(
    "MAS-18", "MAS-116", "MAS-118", "MAS-127", "MAS-132", "MAS-136", "MAS-139", "MAS-142", "MAS-187", "MAS-210"
)
async def test_an_agent_plans_thinks_uses_a_tool_looks_back_and_sums_up() -> None:
    told = lines(
        planning=[PLAN],
        think=[said("think", "Greet them.")],
        instruction_generation=[FILLED],
        reflection=[NOTHING_MORE],
        summary=[DONE],
    )
    async with house(told) as here:
        assert await here.stage("Greet.") == "finished"
        wanted = ["planning", "think", "instruction_generation", "echo", "reflection", "summary"]
        assert await here.did(ANN) == wanted
        filled = next(one for one in await here.steps() if one.work.executor == "echo")
        assert filled.work.instruction_content == {"text": "hello"}
        assert (filled.result or {})["output"] == "hello"


@pytest.mark.req("MAS-119", "MAS-120", "MAS-123", "MAS-129", "MAS-135", "MAS-140", "MAS-144", "MAS-147")
async def test_every_skill_keeps_its_result_under_its_key_and_notes_its_end_on_the_board() -> None:
    told = lines(
        planning=[PLAN],
        think=[said("think", "Greet them.")],
        instruction_generation=[FILLED],
        reflection=[NOTHING_MORE],
        summary=[DONE],
    )
    async with house(told) as here:
        await here.stage("Greet.")
        assert (await here.result("planning"))["planned_step"] == [step("think"), tool(), step("reflection")]
        assert (await here.result("think"))["think"] == "Greet them."
        assert (await here.result("instruction_generation"))["instruction_generation"] == {"text": "hello"}
        assert (await here.result("reflection"))["reflection_step"] == []
        assert (await here.result("summary"))["summary"] == "All is done."
        assert await here.notes() == [
            "Planning step: finished.",
            "think step: finished.",
            "instruction_generation step: finished.",
            "Reflection step: finished.",
            "summary step: finished.",
        ]


@pytest.mark.req("MAS-136", "MAS-138", "MAS-139")
@pytest.mark.parametrize("state", ["finished", "failed"])
async def test_the_summary_says_how_the_part_went(state: str) -> None:
    ended = said("summary", {"completion_summary": "So it went.", "state": state})
    told = lines(planning=[said("planning", [step("think")])], think=[said("think", "x")], summary=[ended])
    told |= lines(reflection=[NOTHING_MORE])
    async with house(told) as here:
        assert await here.stage("Greet.") == state
        stage = await here.ended_stage()
        assert (stage.members[0].state, stage.members[0].completion) == (state, "So it went.")
        assert stage.subtasks[0].summary == "So it went."
        assert [one.sender_id for one in await here.messages() if one.kind != "instruction"] == []


@pytest.mark.req("MAS-132", "MAS-134", "MAS-141")
async def test_a_reflection_adds_steps_and_another_look_back_until_nothing_is_missing() -> None:
    told = lines(
        planning=[said("planning", [step("quick_think")])],
        quick_think=[said("quick_think", "One."), said("quick_think", "Two.")],
        reflection=[said("reflection", [step("quick_think")]), NOTHING_MORE],
        summary=[DONE],
    )
    async with house(told) as here:
        assert await here.stage("Count to two.") == "finished"
        wanted = ["planning", "quick_think", "reflection", "quick_think", "reflection", "summary"]
        assert await here.did(ANN) == wanted
        for skill in ("reflection", "summary"):
            assert "Your goal: Count to two." in here.model.told(skill)
            assert "Stage goal: Make it good." in here.model.told(skill)


@pytest.mark.req("MAS-132")
async def test_a_plan_may_look_back_several_times_and_ends_once() -> None:
    told = lines(
        planning=[said("planning", [step("quick_think"), step("reflection"), step("quick_think"), step("reflection")])],
        quick_think=[said("quick_think", "x")],
        reflection=[NOTHING_MORE],
        summary=[DONE],
    )
    async with house(told) as here:
        assert await here.stage("Look twice.") == "finished"
        assert await here.did(ANN) == ["planning", *["quick_think", "reflection"] * 2, "summary"]


@pytest.mark.req("MAS-132")
async def test_a_reflection_may_end_with_the_summary_itself_but_not_go_on_behind_it() -> None:
    early = said("reflection", [step("summary"), step("quick_think")])
    told = lines(
        planning=[said("planning", [step("quick_think")])],
        quick_think=[said("quick_think", "x")],
        reflection=[early, said("reflection", [step("quick_think"), step("summary")])],
        summary=[DONE],
    )
    async with house(told) as here:
        assert await here.stage("Look.") == "finished"
        assert (await here.did(ANN))[2:] == ["!reflection", "reflection", "quick_think", "summary"]
        assert "nothing comes after it" in here.model.told("reflection", 1)


@pytest.mark.req("MAS-132")
async def test_a_reflection_that_never_ends_is_ended_by_the_house() -> None:
    told = lines(
        planning=[said("planning", [step("quick_think")])],
        quick_think=[said("quick_think", "Again.")],
        reflection=[said("reflection", [step("quick_think")])],
        summary=[DONE],
    )
    async with house(told, specs={ANN: planner("ann", turn=Turn(rounds=3))}) as here:
        assert await here.stage("Count.") == "finished"
        assert (await here.did(ANN)).count("reflection") == 4
        assert "as often as it may be" in here.model.told("summary")


@pytest.mark.req("MAS-24", "MAS-150", "MAS-152", "MAS-153", "MAS-154", "MAS-157", "MAS-159", "MAS-162", "MAS-273")
async def test_two_agents_work_together_one_asks_and_waits_the_other_answers() -> None:
    asks = said("send_message", message("Bob", text="How many?", need_reply=True, waiting=True, stage_relative="t1.s1"))
    answers = said("send_message", message("ann", text="Three.", stage_relative="t1.s1"))
    told = lines(
        planning=[said("planning", [step("send_message", "Ask Bob how many."), step("think")])],
        send_message=[asks],
        process_message=[said("process_message", "There are three.")],
        think=[said("think", "So three.")],
        reflection=[NOTHING_MORE],
        summary=[DONE],
        bob_planning=[said("planning", [step("quick_think")])],
        bob_quick_think=[said("quick_think", "I count.")],
        bob_send_message=[answers],
        bob_reflection=[NOTHING_MORE],
        bob_summary=[DONE],
    )
    async with house(told) as here:
        assert await here.stage("Find out.", "Count.") == "finished"
        mine = await here.did(ANN)
        assert mine.index("send_message") < mine.index("process_message") < mine.index("think")
        question, answer = [one for one in await here.messages() if one.kind in ("request", "response")]
        assert question.waiting is not None
        assert answer.return_waiting_id == question.waiting[0]
        (sent,) = [one.result or {} for one in await here.steps(BOB) if one.work.executor == "send_message"]
        assert sent["send_message"] == {
            "task_id": "t1",
            "sender_id": "bob",
            "receiver": ["ann"],
            "message": "Three.",
            "stage_relative": "t1.s1",
            "need_reply": False,
            "waiting": False,
            "return_waiting_id": question.waiting[0],
        }
        assert (await here.result("process_message"))["process_message"] == "There are three."
        assert "Three." in here.model.told("process_message")
        world = await here.world()
        assert not world.waits


@pytest.mark.req("MAS-68", "MAS-121", "MAS-207")
async def test_what_a_skill_wants_to_keep_is_in_the_memory_and_in_the_next_prompt() -> None:
    told = lines(
        planning=[said("planning", [step("quick_think")], memory="# Kim\nKim likes short answers.")],
        quick_think=[said("quick_think", "x", memory="Kim likes short answers.\nThe house is green.")],
        reflection=[NOTHING_MORE],
        summary=[DONE],
    )
    async with house(told) as here:
        await here.stage("Learn.")
        memory = (await here.world()).agents[ANN].memory
        assert memory == "### Kim\nKim likes short answers.\nThe house is green."
        assert "### Kim\nKim likes short answers." in here.model.told("quick_think")
        assert "(empty)" in here.model.told("planning")


async def test_a_memory_that_is_full_is_told_and_nothing_is_asked_again_for_it() -> None:
    long = "\n\n".join(f"Fact {number} is {'x' * 900}." for number in range(17))
    told = lines(
        planning=[said("planning", [step("quick_think")], memory=long)],
        quick_think=[said("quick_think", "x", memory="y" * 2000)],
        reflection=[NOTHING_MORE],
        summary=[DONE],
    )
    async with house(told) as here:
        assert await here.stage("Learn.") == "finished"
        assert await here.did(ANN) == ["planning", "quick_think", "reflection", "summary"]
        assert (await here.result("quick_think"))[
            "not_kept"
        ] == "Your persistent memory is full: nothing more was kept."
        assert "memory is full" in here.model.told("reflection")
        assert len((await here.world()).agents[ANN].memory) > 15_000


@pytest.mark.req("MAS-122")
async def test_nobody_is_said_to_work_who_is_known_to() -> None:
    told = lines(planning=[said("planning", [step("think")])], think=[said("think", "x")], reflection=[NOTHING_MORE])
    async with house(told | lines(summary=[DONE])) as here:
        await here.stage("Greet.")
        events = [one.event async for one in here.runtime.events(here.team)]
        assert [one.state for one in events if isinstance(one, MemberChanged)] == ["finished"]


@pytest.mark.req("MAS-122")
async def test_who_reads_about_a_stage_before_its_own_part_begins_is_working() -> None:
    asks = said("send_message", message("bob", text="Be ready.", stage_relative="t1.s1"))
    told = lines(planning=[said("planning", [step("send_message")])], send_message=[asks], reflection=[NOTHING_MORE])
    told |= lines(summary=[DONE], bob_process_message=[said("process_message", "I am.")])
    told |= lines(bob_planning=[said("planning", [step("quick_think")])], bob_quick_think=[said("quick_think", "x")])
    told |= lines(bob_reflection=[NOTHING_MORE], bob_summary=[DONE])
    async with house(told) as here:
        assert await here.stage("Begin.", "Go on.", in_turn=True) == "finished"
        events = [one.event async for one in here.runtime.events(here.team)]
        bobs = [one.state for one in events if isinstance(one, MemberChanged) and one.agent_id == BOB]
        assert bobs == ["working", "finished"]


@pytest.mark.req("MAS-27", "MAS-59")
async def test_agents_differ_only_in_what_they_are_and_skills_only_in_what_they_are_told() -> None:
    told = lines(planning=[said("planning", [step("quick_think")])], quick_think=[said("quick_think", "x")])
    told |= lines(reflection=[NOTHING_MORE], summary=[DONE])
    told |= {("bob", skill): one for (_, skill), one in told.items()}
    async with house(told) as here:
        assert await here.stage("Same.", "Same.") == "finished"
        assert await here.did(ANN) == await here.did(BOB)
        asked = {one.purpose.agent: one for one in here.model.asked if one.purpose.skill == "quick_think"}
        mine, theirs = (asked[one].messages[0].content for one in (ANN, BOB))
        assert mine != theirs
        assert mine.replace(": ann\n", ": bob\n").replace(": Ann\n", ": Bob\n") == theirs


async def test_a_person_of_the_group_is_shown_as_one() -> None:
    told = lines(planning=[said("planning", [step("quick_think")])], quick_think=[said("quick_think", "x")])
    async with house(told | lines(reflection=[NOTHING_MORE], summary=[DONE])) as here:
        await here.stage("Look.")
        assert f"{KIM} (Kim, a person)" in here.model.told("planning")
        assert "ann (Ann, a worker, you)" in here.model.told("planning")
