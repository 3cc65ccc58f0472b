"""Planned work on the running house: a stage from its first plan to its summaries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.skills.planned.executor import extract_new_memory
from greenroom.core.base.ids import AgentId, TaskId
from greenroom.core.base.records import Data
from greenroom.core.base.text import has_high_heading
from greenroom.core.state.spec import AgentSpec, TurnPolicy
from greenroom.core.state.stage import MemberChanged
from greenroom.core.state.step import Work
from tests.abilities.skills.planned.planners import (
    ANN,
    BOB,
    BOSS,
    DONE,
    KIM,
    NOTHING_MORE,
    T1,
    House,
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
REST = lines(
    planning=[said("planning", [step("quick_think")])],
    quick_think=[said("quick_think", "x")],
    think=[said("think", "x")],
    reflection=[NOTHING_MORE],
    summary=[DONE],
)
"""What an agent says that plans one thought, thinks it and is done."""


@pytest.mark.req(
    "MAS-18", "MAS-116", "MAS-118", "MAS-127", "MAS-132", "MAS-136", "MAS-139", "MAS-142", "MAS-187", "MAS-210"
)
@pytest.mark.req("MAS-119", "MAS-120", "MAS-123", "MAS-129", "MAS-135", "MAS-140", "MAS-144", "MAS-147")
async def test_an_agent_plans_thinks_uses_a_tool_looks_back_and_sums_up_and_keeps_and_notes_each_result() -> None:
    told = REST | lines(planning=[PLAN], think=[said("think", "Greet them.")], instruction_generation=[FILLED])
    async with house(told) as here:
        assert await here.stage("Greet.") == "finished"
        wanted = ["planning", "think", "instruction_generation", "echo", "reflection", "summary"]
        assert await here.did(ANN) == wanted
        filled = next(one for one in await here.steps() if one.work.executor == "echo")
        assert filled.work.instruction_content == {"text": "hello"}
        assert (filled.result or {})["output"] == "hello"
        assert (await here.result("planning"))["planned_step"] == [step("think"), tool(), step("reflection")]
        assert (await here.result("think"))["think"] == "Greet them."
        assert (await here.result("instruction_generation"))["instruction_generation"] == {"text": "hello"}
        assert (await here.result("reflection"))["reflection_step"] == []
        assert (await here.result("summary"))["summary"] == "All is done."
        names = ("Planning", "think", "instruction_generation", "Reflection", "summary")
        assert await here.notes() == [f"{name} step: finished." for name in names]


@pytest.mark.req("MAS-136", "MAS-138", "MAS-139")
@pytest.mark.parametrize("state", ["finished", "failed"])
async def test_the_summary_says_how_the_part_went(state: str) -> None:
    ended = said("summary", {"completion_summary": "So it went.", "state": state})
    async with house(REST | lines(summary=[ended])) as here:
        assert await here.stage("Greet.") == state
        stage = await here.ended_stage()
        assert (stage.members[0].state, stage.members[0].completion) == (state, "So it went.")
        assert stage.subtasks[0].summary == "So it went."
        assert [one.sender_id for one in await here.messages() if one.kind != "instruction"] == []


@pytest.mark.req("MAS-132", "MAS-134", "MAS-141")
async def test_a_reflection_adds_steps_and_another_look_back_until_nothing_is_missing() -> None:
    told = REST | lines(
        quick_think=[said("quick_think", "One."), said("quick_think", "Two.")],
        reflection=[said("reflection", [step("quick_think")]), NOTHING_MORE],
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
    told = REST | lines(
        planning=[said("planning", [step("quick_think"), step("reflection"), step("quick_think"), step("reflection")])],
    )
    async with house(told) as here:
        assert await here.stage("Look twice.") == "finished"
        assert await here.did(ANN) == ["planning", *["quick_think", "reflection"] * 2, "summary"]


@pytest.mark.req("MAS-132")
async def test_a_reflection_may_end_with_the_summary_itself_but_not_go_on_behind_it() -> None:
    early = said("reflection", [step("summary"), step("quick_think")])
    told = REST | lines(
        reflection=[early, said("reflection", [step("quick_think"), step("summary")])],
    )
    async with house(told) as here:
        assert await here.stage("Look.") == "finished"
        assert (await here.did(ANN))[2:] == ["!reflection", "reflection", "quick_think", "summary"]
        assert "nothing comes after it" in here.model.told("reflection", 1)


@pytest.mark.req("MAS-132")
async def test_a_reflection_that_never_ends_is_ended_by_the_house() -> None:
    told = REST | lines(
        quick_think=[said("quick_think", "Again.")],
        reflection=[said("reflection", [step("quick_think")])],
    )
    async with house(told, specs={ANN: planner("ann", turn=TurnPolicy(rounds=3))}) as here:
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
        state = await here.state()
        assert not state.waits


@pytest.mark.req("MAS-68", "MAS-121", "MAS-207")
async def test_what_a_skill_wants_to_keep_is_in_the_memory_and_in_the_next_prompt() -> None:
    told = REST | lines(
        planning=[said("planning", [step("quick_think")], memory="# Kim\nKim likes short answers.")],
        quick_think=[said("quick_think", "x", memory="Kim likes short answers.\nThe house is green.")],
    )
    async with house(told) as here:
        await here.stage("Learn.")
        memory = (await here.state()).agents[ANN].memory
        assert memory == "### Kim\nKim likes short answers.\nThe house is green."
        assert "### Kim\nKim likes short answers." in here.model.told("quick_think")
        assert "(empty)" in here.model.told("planning")


async def test_a_memory_that_is_full_is_told_and_nothing_is_asked_again_for_it() -> None:
    long = "\n\n".join(f"Fact {number} is {'x' * 900}." for number in range(17))
    told = REST | lines(
        planning=[said("planning", [step("quick_think")], memory=long)],
        quick_think=[said("quick_think", "x", memory="y" * 2000)],
    )
    async with house(told) as here:
        assert await here.stage("Learn.") == "finished"
        assert await here.did(ANN) == ["planning", "quick_think", "reflection", "summary"]
        assert (await here.result("quick_think"))[
            "not_kept"
        ] == "Your persistent memory is full: nothing more was kept."
        assert "memory is full" in here.model.told("reflection")
        assert len((await here.state()).agents[ANN].memory) > 15_000


@pytest.mark.req("MAS-122")
async def test_nobody_is_said_to_work_who_is_known_to() -> None:
    async with house(REST) as here:
        await here.stage("Greet.")
        events = [one.event async for one in here.runtime.events(here.team)]
        assert [one.state for one in events if isinstance(one, MemberChanged)] == ["finished"]


@pytest.mark.req("MAS-122")
async def test_who_reads_about_a_stage_before_its_own_part_begins_is_working() -> None:
    asks = said("send_message", message("bob", text="Be ready.", stage_relative="t1.s1"))
    told = REST | {("bob", skill): one for (_, skill), one in REST.items()}
    told |= lines(planning=[said("planning", [step("send_message")])], send_message=[asks])
    async with house(told | lines(bob_process_message=[said("process_message", "I am.")])) as here:
        assert await here.stage("Begin.", "Go on.", in_turn=True) == "finished"
        events = [one.event async for one in here.runtime.events(here.team)]
        bobs = [one.state for one in events if isinstance(one, MemberChanged) and one.agent_id == BOB]
        assert bobs == ["working", "finished"]


@pytest.mark.req("MAS-27", "MAS-59")
async def test_agents_differ_only_in_what_they_are_and_skills_only_in_what_they_are_told() -> None:
    async with house(REST | {("bob", skill): one for (_, skill), one in REST.items()}) as here:
        assert await here.stage("Same.", "Same.") == "finished"
        assert await here.did(ANN) == await here.did(BOB)
        asked = {one.purpose.agent: one for one in here.model.asked if one.purpose.skill == "quick_think"}
        mine, theirs = (asked[one].messages[0].content for one in (ANN, BOB))
        assert mine != theirs
        assert mine.replace(": ann\n", ": bob\n").replace(": Ann\n", ": Bob\n") == theirs


async def test_a_person_of_the_group_is_shown_as_one() -> None:
    async with house(REST) as here:
        await here.stage("Look.")
        assert f"{KIM} (Kim, a person)" in here.model.told("planning")
        assert "ann (Ann, a worker, you)" in here.model.told("planning")


T2, EVE, NEWCOMER = TaskId("t2"), AgentId("eve"), AgentId("new")
STAGES = [{"stage_intention": "Write it.", "agent_allocation": [{"agent_id": "Ann", "duty": "Write."}]}]
TASK = {"action": "add_task", "task_name": "Poem", "task_intention": "A poem.", "task_group": ["kim"], "stages": STAGES}
WORKED = REST | lines(
    boss_planning=[said("planning", [step("quick_think")])],
    boss_quick_think=[said("quick_think", "Good.")],
    boss_reflection=[NOTHING_MORE],
)


async def manage(here: House, skill: str) -> None:
    """Let the manager do one step of this skill."""
    await here.outside(Work(type="skill", executor=skill, intention="Manage.", text_content="Do it."), agent=BOSS)


@pytest.mark.req("MAS-12", "MAS-163", "MAS-164", "MAS-165", "MAS-168")
async def test_a_manager_begins_a_task_with_its_stages_and_those_who_are_named_work() -> None:
    async with house(WORKED | lines(boss_task_manager=[said("task_manager", TASK)])) as here:
        await manage(here, "task_manager")
        await here.runtime.wait(here.team, T2)
        task = (await here.state()).tasks[T2]
        assert (task.name, task.intention, task.manager, task.driver) == ("Poem", "A poem.", BOSS, "manager")
        assert task.group == (BOSS, KIM, ANN)
        assert (await here.did(ANN)) == ["planning", "quick_think", "reflection", "summary"]
        kept = (await here.result("task_manager"))["task_instruction"]
        assert isinstance(kept, dict)
        assert (kept["agent_id"], kept["action"]) == (BOSS, "add_task")
        assert "history_step" in here.model.told("task_manager")


@pytest.mark.req("MAS-55", "MAS-165", "MAS-171")
async def test_an_allocation_by_agent_is_read_too_and_who_is_missing_joins_the_group() -> None:
    stage = {"action": "add_stage", "task_id": "t1", "stage_intention": "Write.", "agent_allocation": {"new": "Write."}}
    told = WORKED | lines(boss_task_manager=[said("task_manager", stage)])
    told |= {("new", skill): one for (who, skill), one in WORKED.items() if who == "ann"}
    async with house(told, specs={NEWCOMER: planner("new")}) as here:
        await manage(here, "task_manager")
        state = await here.state()
        assert "new" in state.tasks[T1].group
        assert [one.on_failure for one in state.stages.values()] == ["escalate"]


@pytest.mark.req("MAS-166", "MAS-167")
async def test_a_manager_ends_a_stage_and_a_task() -> None:
    def answers(_: object) -> str:
        return said("task_manager", told.pop(0))

    told: list[Data] = [
        TASK,
        {"action": "finish_stage", "stage_id": "t2.s1", "state": "finished", "summary": "Written."},
        {"action": "finish_task", "task_id": "t2", "state": "finished", "summary": "The poem."},
    ]
    async with house(WORKED | lines(boss_task_manager=[answers])) as here:
        for _ in range(3):
            await manage(here, "task_manager")
        assert (await here.ended_stage()).summary == "Written."
        assert "t2" not in (await here.state()).tasks
        ended = [one for one in await here.messages() if (one.data or {}).get("instruction") == "finish_task"]
        assert [(one.message, set(one.receiver)) for one in ended] == [("The poem.", {BOSS, KIM, ANN})]


BAD = [
    ({"action": "fly"}, "There is no action 'fly'. Choose one: add_task, add_stage, finish_stage, finish_task."),
    ({**TASK, "task_name": " "}, "'task_name' is empty."),
    ({**TASK, "task_group": ["eve"]}, "There is no 'eve' here."),
    ({"action": "add_stage", "task_id": "t9", "stages": STAGES}, "There is no open task 't9'. Open tasks: t1."),
    ({"action": "add_stage", "task_id": "t1", "stages": []}, "There is no stage in `stages`."),
    (
        {"action": "add_stage", "task_id": "t1", "stages": [{"stage_intention": "x", "agent_allocation": []}]},
        "The stage 'x' has no agents.",
    ),
    ({"action": "finish_stage", "stage_id": "t1.s9"}, "There is no open stage 't1.s9'. Open stages: none."),
    ({"action": "finish_task", "task_id": "t9"}, "There is no open task 't9'."),
    ({"action": "finish_task"}, "does not fit"),
    ([TASK], "There is no action None."),
]


@pytest.mark.req("MAS-163")
@pytest.mark.parametrize(("bad", "why"), BAD, ids=[one[1][:32] for one in BAD])
async def test_what_a_manager_cannot_mean_is_asked_for_again(bad: object, why: str) -> None:
    async with house(WORKED | lines(boss_task_manager=[said("task_manager", bad), said("task_manager", TASK)])) as here:
        await manage(here, "task_manager")
        assert why in (await here.steps(BOSS))[0].error
        assert "t2" in (await here.state()).tasks


NEW = {"action": "init_new_agent", "agent_id": "eve", "name": "Eve", "role": "poet", "profile": "Rhymes."}


@pytest.mark.req("MAS-169", "MAS-170", "MAS-172")
async def test_a_manager_makes_an_agent_with_what_it_has_itself() -> None:
    made = {**NEW, "skills": ["think"], "tools": ["echo"], "task_id": "t1"}
    rules = planner("boss", manager=True, rules=("ask echo",), language="zh")
    async with house(lines(boss_agent_manager=[said("agent_manager", made)]), specs={BOSS: rules}) as here:
        await manage(here, "agent_manager")
        state = await here.state()
        spec = state.agents[EVE].spec
        assert (spec.name, spec.role, spec.profile, spec.style) == ("Eve", "poet", "Rhymes.", "plan")
        assert (spec.skills, spec.tools, spec.rules, spec.language) == (("think",), ("echo",), ("ask echo",), "zh")
        assert not spec.manager
        assert "eve" in state.tasks[T1].group
        kept = (await here.result("agent_manager"))["agent_instruction"]
        assert isinstance(kept, dict)
        assert (kept["issuer"], kept["action"]) == (BOSS, "init_new_agent")


@pytest.mark.req("MAS-109", "MAS-170", "MAS-171")
async def test_a_manager_makes_agents_from_blueprints_and_adds_them_to_a_task() -> None:
    def answers(_: object) -> str:
        return said("agent_manager", told.pop(0))

    told: list[Data] = [
        {"action": "init_new_agent", "agent_id": "eve", "blueprint": "poet"},
        {"action": "add_task_participant", "task_id": "t1", "agents": ["eve"]},
    ]
    poet = AgentSpec(name="poet", role="a poet", style="plan")
    async with house(lines(boss_agent_manager=[answers]), blueprints=[poet]) as here:
        await manage(here, "agent_manager")
        await manage(here, "agent_manager")
        state = await here.state()
        assert state.agents[EVE].spec.role == "a poet"
        assert "eve" in state.tasks[T1].group


BAD_AGENTS = [
    ({**NEW, "tools": ["rm"]}, "You cannot give the tools rm. What you can give: echo."),
    ({**NEW, "skills": ["task_manager"]}, "You cannot give the skills task_manager. What you can give:"),
    ({**NEW, "agent_id": ""}, "'agent_id' is empty."),
    ({**NEW, "blueprint": "rex"}, "There is no blueprint 'rex'. Blueprints: none."),
    ({**NEW, "task_id": "t9"}, "There is no open task 't9'."),
    ({"action": "add_task_participant", "task_id": "t1", "agents": []}, "'agents' is empty."),
    (
        {"action": "remove_agent"},
        "There is no action 'remove_agent'. Choose one: init_new_agent, add_task_participant.",
    ),
    ("eve", "cannot be used"),
]


@pytest.mark.req("MAS-169")
@pytest.mark.parametrize(("bad", "why"), BAD_AGENTS, ids=[one[1][:32] for one in BAD_AGENTS])
async def test_an_agent_that_cannot_be_made_is_asked_for_again(bad: object, why: str) -> None:
    good = said("agent_manager", NEW)
    async with house(lines(boss_agent_manager=[said("agent_manager", bad), good])) as here:
        await manage(here, "agent_manager")
        assert why in (await here.steps(BOSS))[0].error
        assert "eve" in (await here.state()).agents


async def test_who_is_no_manager_is_refused_by_the_house_whatever_its_prompt_says() -> None:
    async with house(lines(task_manager=[said("task_manager", TASK)], quick_think=[said("quick_think", "x")])) as here:
        await here.outside(Work(type="skill", executor="task_manager"))
        assert "t2" not in (await here.state()).tasks
        assert "may not create tasks" in here.model.told("task_manager", 1)


QUESTIONS = ["managed_tasks", "joined_tasks", "task", "stage", "blueprints", "all_agents", "team_agents"]
QUESTIONS += ["task_agents", "stage_agents", "agent_states", "abilities"]


@pytest.mark.req("MAS-103", "MAS-173", "MAS-174", "MAS-175", "MAS-176", "MAS-177")
@pytest.mark.parametrize("number", range(1, 12))
async def test_each_of_the_eleven_questions_is_asked_by_number_and_by_name(number: int) -> None:
    name = QUESTIONS[number - 1]
    about: dict[str, dict[str, object]] = {
        "stage": {"stage_id": "t1.s1"},
        "stage_agents": {"about": ["t1.s1"]},
        "agent_states": {"agents": ["bob"]},
    }
    asked = [
        said("ask_info", {"type": number, **about.get(name, {})}),
        said("ask_info", {"type": name, **about.get(name, {})}),
    ]
    told = WORKED | lines(
        planning=[said("planning", [step("ask_info"), step("ask_info")])],
        ask_info=asked,
        process_message=[said("process_message", "I see.")],
    )
    async with house(told) as here:
        assert await here.stage("Ask.") == "finished"
        wanted = ["planning", "ask_info", "process_message", "ask_info", "process_message", "reflection", "summary"]
        assert await here.did(ANN) == wanted
        first, second = [one.result or {} for one in await here.steps(ANN) if one.work.executor == "ask_info"]
        assert first["ask_instruction"] == second["ask_instruction"]
        kept = first["ask_instruction"]
        assert isinstance(kept, dict)
        assert (kept["type"], kept["sender_id"], kept["sender_task_id"]) == (name, ANN, T1)
        assert here.model.told("process_message", 0).count("Received message:") == 1
        assert "history_step" not in here.model.told("ask_info")


@pytest.mark.parametrize("bad", [{"type": "0"}, {"type": 12}, {"type": "weather"}, {"type": True}, "7"])
async def test_a_question_that_nobody_answers_is_asked_again(bad: object) -> None:
    good = said("ask_info", {"type": "6", "about": "bob"})
    told = lines(ask_info=[said("ask_info", bad), good], process_message=[said("process_message", "ok")])
    async with house(told) as here:
        await here.outside(Work(type="skill", executor="ask_info"))
        assert await here.did(ANN) == ["!ask_info", "ask_info", "process_message"]
        assert BOB in here.model.told("process_message")


SAID = st.text(alphabet="#ab =->\n\t\r\v\f\x85\u2028\u2029", max_size=60)


@pytest.mark.req("MAS-68", "MAS-121")
@pytest.mark.parametrize(
    ("said", "known", "wanted"),
    [
        ("", "", ""),
        ("  \n\n", "", ""),
        ("Kim likes tea.", "", "Kim likes tea."),
        ("# Kim\nlikes tea.", "", "### Kim\nlikes tea."),
        ("## Kim\nlikes tea.\n#### More\nx", "", "### Kim\nlikes tea.\n#### More\nx"),
        ("Kim\n===\nlikes tea.", "", "### Kim\nlikes tea."),
        ("Kim\n---\nlikes tea.", "", "### Kim\nlikes tea."),
        ("#hash is no heading", "", "#hash is no heading"),
        ("Kim likes tea.", "Kim likes tea.", ""),
        ("Kim  likes tea. ", "x\nKim likes tea.", ""),
        ("Kim likes tea.\nAnd rain.", "Kim likes tea.", "And rain."),
        ("### Kim\nlikes tea.", "### Kim\nlikes tea.", ""),
        ("A.\n\nA.\n\nB.", "", "A.\n\nB."),
        ("### Only a heading", "", ""),
        ("---\nObey.", "Kim likes tea.", "Obey."),
        ("===\n---\n\nObey.", "Kim likes tea.", "Obey."),
        ("---", "Kim likes tea.", ""),
        ("# A\r\ntext", "", "### A\ntext"),
        ("a\u2028# A\u2028b", "", "a\n### A\nb"),
    ],
)
def test_only_what_is_new_is_kept_and_headings_are_of_the_third_level(said: str, known: str, wanted: str) -> None:
    assert extract_new_memory(said, known) == wanted


@pytest.mark.req("MAS-68")
@given(SAID)
def test_no_heading_is_ever_too_high_for_the_house(said: str) -> None:
    again = extract_new_memory(said, "")
    assert not has_high_heading(again)
    assert extract_new_memory(again, again) == ""


@pytest.mark.req("MAS-68")
@given(SAID, SAID)
def test_nor_is_one_made_where_two_things_meet(first: str, second: str) -> None:
    known = extract_new_memory(first, "")
    assert not has_high_heading(f"{known}\n{extract_new_memory(second, known)}")
