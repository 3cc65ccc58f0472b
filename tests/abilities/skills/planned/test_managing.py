"""Managers: tasks, stages, agents and questions about the house."""

import pytest

from greenroom.core.base.ids import AgentId, TaskId
from greenroom.core.base.records import Data
from greenroom.core.state.spec import AgentSpec
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
    planner,
    said,
    step,
)

T2, EVE, NEWCOMER = TaskId("t2"), AgentId("eve"), AgentId("new")
STAGES = [{"stage_intention": "Write it.", "agent_allocation": [{"agent_id": "Ann", "duty": "Write."}]}]
TASK = {"action": "add_task", "task_name": "Poem", "task_intention": "A poem.", "task_group": ["kim"], "stages": STAGES}
WORKED = lines(
    planning=[said("planning", [step("quick_think")])],
    quick_think=[said("quick_think", "A poem.")],
    reflection=[NOTHING_MORE],
    summary=[DONE],
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
        task = (await here.world()).tasks[T2]
        assert (task.name, task.manager, task.driver) == ("Poem", BOSS, "manager")
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
        world = await here.world()
        assert "new" in world.tasks[T1].group
        assert [one.on_failure for one in world.stages.values()] == ["escalate"]


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
        assert "t2" not in (await here.world()).tasks
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
        "The stage 'x' is allotted to nobody.",
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
        assert "t2" in (await here.world()).tasks


NEW = {"action": "init_new_agent", "agent_id": "eve", "name": "Eve", "role": "poet", "profile": "Rhymes."}


@pytest.mark.req("MAS-169", "MAS-170", "MAS-172")
async def test_a_manager_makes_an_agent_with_what_it_has_itself() -> None:
    made = {**NEW, "skills": ["think"], "tools": ["echo"], "task_id": "t1"}
    rules = planner("boss", manager=True, rules=("ask echo",), language="zh")
    async with house(lines(boss_agent_manager=[said("agent_manager", made)]), specs={BOSS: rules}) as here:
        await manage(here, "agent_manager")
        world = await here.world()
        spec = world.agents[EVE].spec
        assert (spec.name, spec.role, spec.profile, spec.style) == ("Eve", "poet", "Rhymes.", "plan")
        assert (spec.skills, spec.tools, spec.rules, spec.language) == (("think",), ("echo",), ("ask echo",), "zh")
        assert not spec.manager
        assert "eve" in world.tasks[T1].group
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
        world = await here.world()
        assert world.agents[EVE].spec.role == "a poet"
        assert "eve" in world.tasks[T1].group


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
        assert "eve" in (await here.world()).agents


async def test_who_is_no_manager_is_refused_by_the_house_whatever_its_prompt_says() -> None:
    async with house(lines(task_manager=[said("task_manager", TASK)], quick_think=[said("quick_think", "x")])) as here:
        await here.outside(Work(type="skill", executor="task_manager"))
        assert "t2" not in (await here.world()).tasks
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
