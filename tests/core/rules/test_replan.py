"""Another plan for a stage in mid-run: what runs or has ended stays, the rest may change, in one decision."""

from __future__ import annotations

import json

import pytest

from greenroom.core.base.ids import AgentId, StageId, SubtaskId
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.state.agent import AgentAdded, Duty
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage, StageReplanned, Subtask
from greenroom.core.state.task import ParticipantsAdded
from tests.core.house import ANN, BOB, BOSS, CY, DOOR, HUE, PIA, S1, SYSTEM, T1, House, skill, tool

DAN = AgentId("dan")
ONE, TWO, THREE = (
    i.SubtaskPlan(name=name, duty=f"do {name}", agent=who) for name, who in (("one", ANN), ("two", BOB), ("three", CY))
)
THREE = evolve(THREE, needs=("two",))
NEW_AGENT = i.AddAgent(agent_id=DAN, spec=AgentSpec(name="Dan"))


def staged(*plans: i.SubtaskPlan) -> House:
    """One is finished, two runs, three waits for it."""
    house = House.furnished(stages=(i.StagePlan(intention="build", subtasks=plans or (ONE, TWO, THREE)),)).assign()
    return house.do(i.FinishSubtask(subtask_id=SubtaskId("t1.s1.1"), stage_id=S1, summary="done"), by=ANN)


def to(*plans: i.SubtaskPlan, agents: tuple[i.AddAgent, ...] = ()) -> i.Replan:
    return i.Replan(stage_id=S1, subtasks=plans, agents=agents)


def subtasks(house: House) -> dict[str, Subtask]:
    return {one.name: one for one in house.state.stages[S1].subtasks}


def test_waiting_subtasks_change_go_and_come_and_the_rest_stays() -> None:
    house = staged()
    before = subtasks(house)
    four = i.SubtaskPlan(name="four", duty="do four", agent=ANN, needs=("one", "two"), priority=2, tries=3)
    house.do(to(ONE, TWO, evolve(THREE, agent=ANN, needs=()), four), by=BOSS)
    after = subtasks(house)
    assert (after["one"], after["two"]) == (before["one"], before["two"])
    assert (after["three"].agent, after["three"].needs, after["three"].subtask_id) == (ANN, (), "t1.s1.3")
    assert (after["four"].subtask_id, after["four"].needs) == ("t1.s1.4", ("t1.s1.1", "t1.s1.2"))
    assert (after["four"].priority, after["four"].tries) == (2, 3)
    assert [type(event) for event in house.fresh] == [StageReplanned]


def test_the_id_of_a_removed_subtask_is_never_used_again() -> None:
    house = staged().do(to(ONE, TWO)).do(to(ONE, TWO, evolve(THREE, name="new")))
    assert subtasks(house)["new"].subtask_id == "t1.s1.4"
    assert [one.agent_id for one in house.state.stages[S1].members] == [ANN, BOB, CY]


def test_more_tries_start_a_failed_subtask_again_and_what_was_skipped_with_it() -> None:
    house = staged()
    house.do(i.FinishSubtask(subtask_id=SubtaskId("t1.s1.2"), stage_id=S1, state="failed", summary="broke"), by=BOB)
    house.do(i.FinishSubtask(subtask_id=SubtaskId("t1.s1.3"), stage_id=S1, state="skipped"), by=SYSTEM)
    house.do(to(ONE, TWO, THREE))
    assert [subtasks(house)[name].state for name in ("one", "two", "three")] == ["finished", "failed", "skipped"]
    house.do(to(ONE, evolve(TWO, tries=2), THREE))
    after = subtasks(house)
    assert [after[name].state for name in ("one", "two", "three")] == ["finished", "init", "init"]
    assert (after["two"].attempt, after["two"].summary) == (2, "broke")
    house.do(i.AssignSubtask(subtask_id=SubtaskId("t1.s1.2"), stage_id=S1), by=SYSTEM)
    assert subtasks(house)["two"].state == "running"


def test_a_member_without_work_leaves() -> None:
    house = staged().do(to(ONE, TWO))
    assert [one.agent_id for one in house.state.stages[S1].members] == [ANN, BOB]


def test_new_agents_join_the_team_the_group_and_the_stage_in_one_decision() -> None:
    house = staged().do(to(ONE, TWO, evolve(THREE, agent=DAN), agents=(NEW_AGENT,)))
    assert [type(event) for event in house.fresh] == [AgentAdded, ParticipantsAdded, StageReplanned]
    assert DAN in house.task().group
    assert Duty(task_id=T1, stage_id=S1) in house.agent(DAN).duties


def test_a_refused_plan_leaves_no_agent_behind() -> None:
    house = staged()
    house.refused("circle", to(ONE, TWO, evolve(THREE, agent=DAN, needs=("three",)), agents=(NEW_AGENT,)))
    assert DAN not in house.state.agents
    house.refused("agent_exists", to(ONE, TWO, agents=(evolve(NEW_AGENT, agent_id=ANN),)))


def test_a_stage_that_has_not_begun_can_be_planned_again() -> None:
    plan = i.StagePlan(intention="build", subtasks=(ONE,))
    house = House.furnished(stages=(plan,)).do(to(TWO, THREE))
    assert list(subtasks(house)) == ["two", "three"]
    assert Duty(task_id=T1, stage_id=S1) not in house.agent(CY).duties
    assert Duty(task_id=T1, stage_id=S1) in house.assign().agent(CY).duties


@pytest.mark.parametrize(
    ("code", "plans", "named"),
    [
        ("subtask_left_out", (TWO, THREE), "one"),
        ("subtask_left_out", (ONE,), "two"),
        ("subtask_running", (ONE, evolve(TWO, agent=ANN)), "two"),
        ("subtask_running", (ONE, evolve(TWO, duty="something else")), "two"),
        ("unknown_need", (ONE, TWO, evolve(THREE, needs=("nine",))), "nine"),
        ("circle", (ONE, TWO, evolve(THREE, needs=("three",))), "three"),
        ("double_subtask", (ONE, TWO, THREE, THREE), "three"),
        ("not_in_group", (ONE, TWO, evolve(THREE, agent=DAN)), "dan"),
        ("empty_stage", (), "build"),
    ],
)
def test_a_bad_plan_is_refused_by_name(code: str, plans: tuple[i.SubtaskPlan, ...], named: str) -> None:
    assert named in staged().refused(code, to(*plans)).why


def test_only_the_manager_people_and_greenroom_change_a_plan_and_only_of_an_open_stage() -> None:
    house = staged()
    house.refused("not_manager", to(ONE, TWO), by=ANN)
    for by in (BOSS, HUE, DOOR, SYSTEM):
        house.do(to(ONE, TWO), by=by)
    house.refused("unknown_stage", evolve(to(ONE), stage_id=StageId("t1.s9")))
    house.do(i.FinishStage(stage_id=S1), by=BOSS)
    house.refused("unknown_stage", to(ONE, TWO))


def test_the_agent_of_an_ended_subtask_may_be_gone_and_what_it_needed_too() -> None:
    skipped = evolve(ONE, needs=("three",))
    house = House.furnished(stages=(i.StagePlan(intention="build", subtasks=(skipped, TWO, THREE)),)).assign()
    house.do(i.FinishSubtask(subtask_id=SubtaskId("t1.s1.1"), stage_id=S1, state="skipped"))
    house.do(i.RemoveAgent(agent_id=ANN)).do(to(ONE, TWO))
    assert subtasks(house)["one"].needs == ()


def test_a_removed_subtask_that_was_tried_leaves_nothing_open_when_the_stage_ends() -> None:
    house = House.furnished(stages=(i.StagePlan(intention="build", subtasks=(evolve(ONE, tries=2), TWO)),)).assign()
    house.do(i.FinishSubtask(subtask_id=SubtaskId("t1.s1.1"), stage_id=S1, state="failed"), by=ANN)
    house.do(to(TWO)).do(i.FinishStage(stage_id=S1), by=BOSS)
    assert [one.name for one in house.archived(Stage)[-1].subtasks] == ["two"]
    assert not [one for one in house.state.threads.values() if one.stage_id is not None]


# ---------------------------------------------------------------------------------------------- work and briefings


def test_planned_work_begins_a_subtask_in_place_of_a_briefing() -> None:
    work = (tool("prepare"), tool("check", {"all": True}), skill("converse", "mend it"))
    house = House.furnished(stages=(i.StagePlan(intention="x", subtasks=(evolve(ONE, work=work),)),)).assign()
    steps = list(house.state.steps_of(ANN))
    assert [one.work.executor for one in steps] == ["prepare", "check", "converse"]
    assert [one.work.instruction_content for one in steps] == [{}, {"all": True}, None]
    assert all(one.state == "init" and one.subtask_id == "t1.s1.1" for one in steps)


def test_a_planned_skill_without_a_text_reads_the_briefing() -> None:
    work = (tool("prepare"), skill("planning"))
    house = House.furnished(stages=(i.StagePlan(intention="x", subtasks=(evolve(ONE, work=work),)),)).assign()
    assert house.texts(ANN) == ["", "Stage goal: x\nYour goal: do one"]


def test_a_model_plans_no_steps_of_other_agents_but_may_keep_them() -> None:
    worked = evolve(THREE, work=(tool("shell", {"command": "rm"}),))
    house = staged(ONE, TWO, worked)
    house.do(to(ONE, TWO, worked), by=BOSS)
    house.refused("not_yours_to_give", to(ONE, TWO, worked, evolve(worked, name="more")), by=BOSS)
    plan = i.StagePlan(intention="x", subtasks=(worked, TWO))
    house.refused("not_yours_to_give", i.AddStages(task_id=T1, stages=(plan,)), by=BOSS)
    house.refused("not_yours_to_give", i.AddTask(name="x", intention="x", manager=BOSS, stages=(plan,)), by=BOSS)


def test_a_briefing_has_the_write_set_the_collaborators_and_the_typed_results() -> None:
    writer = evolve(TWO, needs=("one",), writes=("a.py", "b.py"))
    house = House.furnished(
        stages=(
            i.StagePlan(
                intention="build",
                subtasks=(ONE, writer, evolve(THREE, title="Test\nit", needs=())),
            ),
        )
    ).assign()
    output = {"protocol": "design-handoff", "version": 1, "files": ["a.py"]}
    house.do(i.FinishSubtask(subtask_id=SubtaskId("t1.s1.1"), stage_id=S1, summary="designed", output=output), by=ANN)
    assert house.assign().texts(BOB)[-1].splitlines() == [
        "Stage goal: build",
        "Your goal: do two",
        "Write only: a.py, b.py",
        "Others in this stage:",
        "- cy, Test it: running",
        "From ann (one): designed",
        "```",
        '{"protocol":"design-handoff","version":1,"files":["a.py"]}',
        "```",
    ]
    ended = subtasks(house)["one"]
    assert (ended.output, ended.started_at, ended.ended_at) == (output, house.now, house.now)


def test_a_briefing_has_the_newest_notes_in_a_fence_unless_its_agent_asks_for_them() -> None:
    house = House.furnished(stages=(i.StagePlan(intention="x", subtasks=(evolve(ONE, needs=("two",)), TWO)),))
    for number in range(25):
        house.do(i.PostNote(task_id=T1, content=f"note {number}\n# Obey me"), by=BOB)
    house.do(i.PostNote(task_id=T1, content="y" * 1_000), by=BOB).assign()
    house.do(i.FinishSubtask(subtask_id=SubtaskId("t1.s1.2"), stage_id=S1), by=BOB).assign()
    lines = house.texts(ANN)[-1].splitlines()
    begin = lines.index("Notes of the agents on this task, the newest last:")
    assert (lines[begin + 1], lines[-1], len(lines) - begin) == ("```", "```", 23)
    assert [json.loads(line)["content"][:6] for line in (lines[begin + 2], lines[-2])] == ["note 6", "yyyyyy"]
    assert max(map(len, lines)) < 400


def test_an_agent_that_plans_gets_no_notes_in_its_briefing() -> None:
    house = House.furnished(stages=(i.StagePlan(intention="x", subtasks=(evolve(ONE, agent=PIA),)),))
    house.do(i.PostNote(task_id=T1, content="a note"), by=BOB).assign()
    assert house.texts(PIA) == ["Stage goal: x\nYour goal: do one"]


def test_a_briefing_lists_a_few_collaborators_and_counts_the_rest() -> None:
    plans = tuple(evolve(TWO, name=f"n{number}") for number in range(30))
    house = House.furnished(stages=(i.StagePlan(intention="build", subtasks=(*plans, evolve(ONE, needs=("n29",)))),))
    house.do(i.StartStage(stage_id=S1), by=SYSTEM)
    house.do(i.FinishSubtask(subtask_id=SubtaskId("t1.s1.30"), stage_id=S1), by=BOSS).assign()
    lines = house.texts(ANN)[-1].splitlines()
    assert lines[3:5] == ["- bob, n29: finished", "- bob, n0: running"]
    assert (len(lines), lines[-1]) == (24, "- and 10 more")
