"""Tasks: creating, starting, pausing, ending."""

from typing import Literal

import pytest

from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, StageId, SubtaskId, TaskId, task_budget
from greenroom.core.rules import intents as i
from greenroom.core.state.mas_format import collect_working_memory
from greenroom.core.state.stage import Stage, SubtaskEnd
from greenroom.core.state.task import Task, TaskEnded, TaskPaused
from greenroom.core.state.thread import Noticed
from tests.core.house import ANN, BOB, BOSS, CY, DOOR, HUE, PIA, S1, S2, SYSTEM, T1, T2, House, plan, skill

MORE = i.AddTask(name="more", intention="do more", manager=ANN)


@pytest.mark.req("MAS-43", "MAS-44", "MAS-45", "MAS-46", "MAS-47", "MAS-50", "MAS-101")
def test_a_task_has_its_manager_its_group_and_its_stages_in_order() -> None:
    house = House.furnished()
    stages = (plan(("one", BOB)), plan(("two", CY)))
    house.do(i.AddTask(name="more", intention="do more", manager=ANN, group=(PIA, ANN), stages=stages), by=BOSS)
    task = house.task(T2)
    assert (task.name, task.intention, task.manager, task.group) == ("more", "do more", ANN, (ANN, PIA, BOB, CY))
    assert task.stages == ("t2.s1", "t2.s2")
    assert task.state == "running"
    assert (task.parent, task.depth) == (None, 0)


@pytest.mark.req("MAS-41")
@pytest.mark.parametrize("by", [BOSS, HUE, DOOR])
def test_agents_and_people_make_and_change_what_a_task_is(by: str) -> None:
    house = House.furnished().do(i.AddTask(name="more", intention="x", manager=BOSS, group=(ANN,), start=False), by=by)
    stage = StageId("t2.s1")
    house.do(i.AddStages(task_id=T2, stages=(plan(("one", ANN)),)), i.StartTask(task_id=T2), by=by)
    house.do(i.StartStage(stage_id=stage), by=by)
    house.do(i.UpdateStageAgentState(stage_id=stage, agent_id=ANN, state="working"), by=by)
    member = house.state.stages[stage].find_member(ANN)
    assert member is not None
    assert (house.task(T2).state, member.state) == ("running", "working")
    house.do(i.FinishStage(stage_id=stage), i.FinishTask(task_id=T2), by=by)
    assert T2 not in house.state.tasks


@pytest.mark.req("MAS-41")
@pytest.mark.parametrize("by", [ANN, BOSS, HUE, DOOR])
def test_an_agents_state_is_changed_by_itself_by_others_and_by_people(by: str) -> None:
    house = House.furnished(stages=(plan(("one", BOB)),)).do(
        i.UpdateWorkingMemory(agent_id=ANN, task_id=T1, stage_id=S1), by=by
    )
    assert S1 in collect_working_memory(house.state, ANN)[T1]
    steps = i.QueueSteps(agent_id=ANN, works=(skill(),), task_id=T1)
    house.do(i.SendMessage(task_id=T1, receiver=(ANN,), message="do this too") if by == BOSS else steps, by=by)
    assert house.agent(ANN).working_state == "working"


def test_a_task_may_wait_to_be_started() -> None:
    house = House.furnished().do(i.AddTask(name="more", intention="x", manager=ANN, start=False))
    assert house.task(T2).state == "init"
    house.refused("not_manager", i.StartTask(task_id=T2), by=BOB)
    house.do(i.StartTask(task_id=T2), by=ANN)
    assert house.task(T2).state == "running"
    house.refused("task_started", i.StartTask(task_id=T2), by=ANN)


def test_a_task_begins_with_its_limits() -> None:
    house = House.furnished().do(i.AddTask(name="more", intention="x", manager=ANN, limits=Limits(money=5)))
    assert house.state.budgets[task_budget(T2)].limits == Limits(money=5)


def test_only_a_manager_creates_tasks_and_only_for_agents_there_are() -> None:
    house = House.furnished()
    house.refused("not_manager", MORE, by=ANN)
    house.refused("unknown_agent", i.AddTask(name="x", intention="x", manager=AgentId("ghost")), by=BOSS)
    house.refused("unknown_agent", i.AddTask(name="x", intention="x", manager=ANN, group=(AgentId("ghost"),)), by=BOSS)
    empty = i.StagePlan(intention="nothing", subtasks=())
    house.refused("empty_stage", i.AddTask(name="x", intention="x", manager=ANN, stages=(empty,)), by=BOSS)


def test_a_model_makes_nobody_manage_a_task_who_is_a_person_and_is_told_so() -> None:
    house = House.furnished()
    wanted = i.AddTask(name="more", intention="more", manager=HUE)
    house.refused("not_yours_to_give", wanted, by=BOSS)
    house.queue(BOSS).run(BOSS, wanted)
    (told,) = house.happened(Noticed)
    assert "'boss' may not make 'hue' manage a task" in told.text
    assert set(house.state.tasks) == {T1}
    house.do(wanted, by=HUE)
    assert house.task(T2).manager == HUE


@pytest.mark.parametrize(
    ("subtasks", "code"),
    [
        ((), "empty_stage"),
        ((i.SubtaskPlan(name="a", duty="", agent=ANN), i.SubtaskPlan(name="a", duty="", agent=BOB)), "double_subtask"),
        ((i.SubtaskPlan(name="a", duty="", agent=AgentId("ghost")),), "not_in_group"),
        ((i.SubtaskPlan(name="a", duty="", agent=ANN, needs=("b",)),), "unknown_need"),
        ((i.SubtaskPlan(name="a", duty="", agent=ANN, needs=("a",)),), "circle"),
        (
            (
                i.SubtaskPlan(name="a", duty="", agent=ANN, needs=("b",)),
                i.SubtaskPlan(name="b", duty="", agent=ANN, needs=("a",)),
            ),
            "circle",
        ),
    ],
)
def test_a_plan_that_cannot_work_is_refused(subtasks: tuple[i.SubtaskPlan, ...], code: str) -> None:
    house = House.furnished()
    stage = i.StagePlan(intention="x", subtasks=subtasks)
    house.refused(code, i.AddStages(task_id=T1, stages=(plan(("fine", ANN)), stage)), by=BOSS)
    assert house.task().stages == ()


@pytest.mark.req("MAS-50", "MAS-101")
def test_stages_are_appended_by_the_manager() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).do(
        i.AddStages(task_id=T1, stages=(plan(("two", BOB)), plan(("three", CY)))), by=BOSS
    )
    assert house.task().stages == (S1, S2, "t1.s3")
    house.refused("not_manager", i.AddStages(task_id=T1, stages=()), by=ANN)
    house.refused("unknown_task", i.AddStages(task_id=T2, stages=()), by=BOSS)


def test_a_stage_id_is_not_given_again_after_its_stage_ended() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign().do(i.FinishStage(stage_id=S1))
    house.do(i.AddStages(task_id=T1, stages=(plan(("two", BOB)),)))
    assert house.task().stages == (S2,)


@pytest.mark.req("MAS-51", "MAS-52", "MAS-101")
@pytest.mark.parametrize("state", ["finished", "failed"])
def test_the_manager_ends_a_task_with_a_summary_and_evidence(state: Literal["finished", "failed"]) -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign()
    house.do(i.FinishTask(task_id=T1, state=state, summary="that was it", evidence=("tests ran",)), by=BOSS)
    (task,) = house.archived(Task)
    assert (task.state, task.summary, task.evidence, task.ended_at) == (state, "that was it", ("tests ran",), house.now)
    assert [(stage.state, stage.subtasks[0].state) for stage in house.archived(Stage)] == [("cancelled", "cancelled")]
    assert not house.state.tasks


@pytest.mark.req("MAS-101")
def test_the_group_is_told_that_the_task_is_over() -> None:
    house = House.furnished().do(i.FinishTask(task_id=T1), by=BOSS)
    said = house.said()
    assert said.receiver == (BOSS, ANN, BOB, CY, PIA, HUE)
    assert said.data == {"instruction": "finish_task", "task_id": T1, "state": "finished"}
    assert said.message == "The task is finished."


@pytest.mark.parametrize(
    "intent",
    [
        i.StartTask(task_id=T1),
        i.FinishTask(task_id=T1),
        i.CancelTask(task_id=T1),
        i.PauseTask(task_id=T1),
        i.ResumeTask(task_id=T1),
        i.AddStages(task_id=T1, stages=()),
        i.SendMessage(task_id=T1, receiver=(ANN,), message="x"),
        i.PostNote(task_id=T1, content="x"),
    ],
    ids=lambda intent: type(intent).__name__,
)
@pytest.mark.parametrize("end", [i.FinishTask(task_id=T1), i.CancelTask(task_id=T1)], ids=["finished", "cancelled"])
def test_a_task_that_is_over_stays_over(end: i.Intent, intent: i.Intent) -> None:
    House.furnished().do(end).refused("unknown_task", intent)


@pytest.mark.parametrize(
    "intent",
    [i.StartTask(task_id=T1), i.FinishTask(task_id=T1), i.CancelTask(task_id=T1), i.PauseTask(task_id=T1)],
    ids=lambda intent: type(intent).__name__,
)
def test_a_task_that_is_ending_takes_no_other_end(intent: i.Intent) -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(i.CancelTask(task_id=T1)).refused("task_ending", intent)
    house.refused("task_ending", i.ResumeTask(task_id=T1))
    house.refused("unknown_task", i.AddStages(task_id=T1, stages=()))


@pytest.mark.parametrize(
    "intent",
    [i.FinishTask(task_id=T1), i.CancelTask(task_id=T1), i.PauseTask(task_id=T1)],
    ids=lambda intent: type(intent).__name__,
)
def test_only_the_manager_or_a_person_ends_or_pauses_a_task(intent: i.Intent) -> None:
    house = House.furnished()
    house.refused("not_manager", intent, by=ANN)
    house.do(intent, by=BOSS)


def test_a_paused_task_is_resumed_by_a_person_only() -> None:
    house = House.furnished()
    house.refused("not_paused", i.ResumeTask(task_id=T1))
    house.do(i.PauseTask(task_id=T1, why="tea"), by=BOSS)
    assert house.task().paused == "tea"
    house.refused("not_a_person", i.ResumeTask(task_id=T1), by=BOSS)
    house.do(i.ResumeTask(task_id=T1), by=HUE)
    assert house.task().paused is None
    house.refused("unknown_task", i.ResumeTask(task_id=TaskId("t9")))


def test_pausing_again_keeps_the_first_reason() -> None:
    house = House.furnished().do(i.PauseTask(task_id=T1, why="tea")).do(i.PauseTask(task_id=T1, why="cake"))
    assert not house.happened(TaskPaused)
    assert house.task().paused == "tea"


def test_pausing_lets_what_runs_finish_and_now_does_not() -> None:
    house = House.furnished().queue(ANN).queue(BOB)
    house.start(ANN)
    house.do(i.PauseTask(task_id=T1))
    assert house.running(ANN).state == "running"
    assert house.next(BOB) is None
    house.do(i.PauseTask(task_id=T1, now=True))
    assert house.running(ANN).state == "cancelling"


def test_ending_one_task_leaves_the_work_of_others_alone() -> None:
    house = House.furnished().do(i.AddTask(name="more", intention="x", manager=BOSS, group=(ANN,)), by=SYSTEM)
    house.queue(ANN).queue(ANN, task=T2).do(i.CancelTask(task_id=T1))
    assert house.next(ANN) == "ann#2"
    assert list(house.state.tasks) == [T2]


def test_a_task_created_after_its_parent_ended_in_the_same_step_stands_alone() -> None:
    house = House.furnished().queue(BOSS)
    house.run(BOSS, i.FinishTask(task_id=T1), i.AddTask(name="next", intention="x", manager=BOSS))
    assert (house.task(T2).parent, house.task(T2).depth) == (None, 0)


def test_a_task_created_by_a_step_of_a_part_that_ends_belongs_to_the_whole() -> None:
    house = House.furnished().queue(BOSS).run(BOSS, i.AddTask(name="part", intention="x", manager=BOSS, group=(ANN,)))
    house.queue(ANN, task=T2).queue(BOSS, task=T2).start(ANN)
    house.run(BOSS, i.FinishTask(task_id=T2), i.AddTask(name="next", intention="x", manager=BOSS))
    assert house.task(T2).state == "cancelling"
    assert (house.task(TaskId("t3")).parent, house.task(TaskId("t3")).depth) == (T1, 1)


def nested() -> House:
    """t1 with a part t2, which has a part t3."""
    house = House.furnished().queue(BOSS).run(BOSS, i.AddTask(name="part", intention="x", manager=BOSS, group=(ANN,)))
    house.queue(BOSS, task=T2)
    return house.run(
        BOSS, i.AddTask(name="piece", intention="x", manager=BOSS, group=(ANN,), stages=(plan(("a", BOB)),))
    )


@pytest.mark.parametrize("end", [i.FinishTask(task_id=T1), i.CancelTask(task_id=T1)], ids=["finished", "cancelled"])
def test_the_parts_of_a_task_end_with_it(end: i.Intent) -> None:
    house = nested().queue(ANN, task=T2).queue(ANN, task=TaskId("t3"))
    house.do(i.AddTask(name="other", intention="x", manager=BOSS))
    house.do(end)
    assert list(house.state.tasks) == ["t4"]
    assert {task.task_id: task.state for task in house.archived(Task)} | {T1: ""} == {
        T1: "",
        T2: "cancelled",
        "t3": "cancelled",
    }


def test_a_whole_is_over_when_its_last_part_is_dead() -> None:
    house = nested().queue(ANN, task=TaskId("t3"))
    house.start(ANN)
    house.do(i.CancelTask(task_id=T2)).do(i.CancelTask(task_id=T1))
    assert sorted(house.state.tasks) == [T1, T2, "t3"]
    house.release(ANN)
    assert [event.task_id for event in house.happened(TaskEnded)] == ["t3", T2, T1]
    assert not house.state.tasks


def test_a_paused_task_pauses_its_parts() -> None:
    house = nested().queue(ANN, task=TaskId("t3")).do(i.PauseTask(task_id=T1))
    assert house.next(ANN) is None
    house.do(i.ResumeTask(task_id=T1))
    assert house.next(ANN) is not None


def test_ending_a_part_leaves_the_whole_alone() -> None:
    house = nested().do(i.CancelTask(task_id=T2))
    assert list(house.state.tasks) == [T1]


@pytest.mark.parametrize(("word", "end"), [("finished", "finished"), ("failed", "failed")])
def test_a_stage_with_nothing_left_to_do_ends_with_its_task_as_its_subtasks_did(word: SubtaskEnd, end: str) -> None:
    house = House.furnished(stages=(plan(("one", ANN)), plan(("two", BOB)))).assign()
    house.do(i.FinishSubtask(subtask_id=SubtaskId("t1.s1.1"), stage_id=S1, state=word), by=BOSS)
    house.do(i.FinishTask(task_id=T1), by=BOSS)
    assert [(one.stage_id, one.state) for one in house.archived(Stage)] == [(S1, end), (S2, "cancelled")]
