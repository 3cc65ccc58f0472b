"""The schedule: what is due, found in the tasks that changed as in all of them."""

import pytest

from greenroom.actors.stage_scheduler import find_changed_tasks, schedule
from greenroom.core.base.ids import AgentId, StageId, SubtaskId, TaskId, WaitingId
from greenroom.core.rules import intents as i
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import StepTerms
from tests.core.house import ANN, BOB, BOSS, CY, HUE, S1, S2, SYSTEM, T1, T2, House, plan, question, reply, skill, tool

ONE, TWO = SubtaskId("t1.s1.1"), SubtaskId("t1.s1.2")
DONE = i.FinishSubtask(subtask_id=ONE, stage_id=S1, summary="fine")
OVER = [i.FinishStage, i.FinishTask]


def staged(*stages: i.StagePlan) -> House:
    """One stage in which Ann works, unless told otherwise."""
    return House.furnished(stages=stages or (plan(("one", ANN)),))


def due(house: House) -> list[i.Intent]:
    """What the last commit made due."""
    return schedule(house.state, sorted(find_changed_tasks(house.state, house.fresh)))


def kinds(house: House) -> list[type]:
    return [type(one) for one in due(house)]


def about(message: str = "please note", *, reply: bool = False) -> i.SendMessage:
    return i.SendMessage(task_id=T1, receiver=(CY,), message=message, need_reply=reply, stage_relative=S1)


# ---------------------------------------------------------------------------------------------- stages in order


def test_the_first_stage_starts_when_its_task_does() -> None:
    assert due(staged()) == [i.StartStage(stage_id=S1)]
    house = House.furnished()
    house.do(i.AddTask(name="x", intention="x", manager=BOSS, stages=(plan(("one", ANN)),), start=False))
    assert due(house) == []
    assert due(house.do(i.StartTask(task_id=T2))) == [i.StartStage(stage_id=StageId("t2.s1"))]


def test_a_stage_that_is_added_starts_when_no_other_is_there() -> None:
    house = House.furnished().do(i.AddStages(task_id=T1, stages=(plan(("one", ANN)),)), by=BOSS)
    assert due(house) == [i.StartStage(stage_id=S1)]


def test_a_subtask_begins_when_what_it_needs_is_done() -> None:
    house = staged(plan(("one", ANN), ("two", BOB, ("one",)))).do(i.StartStage(stage_id=S1), by=SYSTEM)
    assert due(house) == [i.AssignSubtask(subtask_id=ONE, stage_id=S1)]
    house.assign()
    assert due(house) == []
    assert due(house.run(ANN, DONE)) == [i.AssignSubtask(subtask_id=TWO, stage_id=S1)]


def test_a_subtask_whose_need_failed_is_skipped() -> None:
    house = staged(plan(("one", ANN), ("two", BOB, ("one",)))).assign()
    house.do(i.FinishSubtask(subtask_id=ONE, stage_id=S1, state="failed"), by=ANN)
    (skipped,) = due(house)
    assert isinstance(skipped, i.FinishSubtask)
    assert (skipped.subtask_id, skipped.state) == (TWO, "skipped")


def test_the_next_stage_starts_when_one_is_over() -> None:
    house = staged(plan(("one", ANN)), plan(("two", BOB))).assign().run(ANN, DONE)
    assert kinds(house) == [i.FinishStage]
    assert due(house.do(*due(house), by=SYSTEM)) == [i.StartStage(stage_id=S2)]


def test_a_stage_that_its_manager_drives_is_reported_once() -> None:
    house = House.furnished()
    house.do(i.AddTask(name="x", intention="x", manager=BOSS, stages=(plan(("one", ANN)),), driver="manager"))
    stage = StageId("t2.s1")
    house.assign(stage).run(ANN, i.FinishSubtask(subtask_id=SubtaskId("t2.s1.1"), stage_id=stage))
    assert due(house) == [i.ReportStage(stage_id=stage)]
    house.do(*due(house), by=SYSTEM)
    assert schedule(house.state, [T2]) == []


# ---------------------------------------------------------------------------------------------- who got stuck


def test_who_has_no_steps_left_and_said_nothing_has_failed() -> None:
    (failed,) = due(staged().assign().run(ANN))
    assert isinstance(failed, i.FinishSubtask)
    assert failed.state == "failed"


def test_who_waits_for_somebody_is_not_stuck_until_the_wait_is_over() -> None:
    house = staged().assign().run(ANN, question(HUE))
    assert due(house) == []
    house.do(reply(WaitingId("ann>1:hue"), ANN), by=HUE).run(ANN)
    assert kinds(house) == [i.FinishSubtask]


def elsewhere() -> House:
    """Ann works in a stage of t1 and waits for a person in t2."""
    house = (
        staged().assign().do(i.AddTask(name="other", intention="o", manager=BOSS, group=(ANN, HUE), driver="manager"))
    )
    return house.run(ANN, question(HUE, task=T2))


def test_who_waited_in_a_task_that_is_over_is_told_where_it_works() -> None:
    house = elsewhere().do(i.CancelTask(task_id=T2))
    assert house.agent(ANN).step_lock == ()
    assert house.texts(ANN) == ["hue will not answer: the task is over (message ann>1)."]
    assert house.last(ANN).task_id == T1


def test_the_end_of_a_wait_moves_every_task_of_who_waited() -> None:
    house = elsewhere().do(i.CancelTask(task_id=T2))
    assert find_changed_tasks(house.state, house.fresh) >= {T1}


# ---------------------------------------------------------------------------------------------- pauses


def test_nothing_is_due_in_a_pause_and_everything_after_it() -> None:
    for pause, resume in (
        (i.PauseTask(task_id=T1), i.ResumeTask(task_id=T1)),
        (i.PauseTeam(), i.ResumeTeam()),
    ):
        house = staged().do(pause)
        assert schedule(house.state, [T1]) == []
        assert due(house.do(resume)) == [i.StartStage(stage_id=S1)]


def test_nothing_is_due_in_a_part_of_a_paused_task_until_that_goes_on() -> None:
    house = House.furnished().queue(BOSS)
    house.run(BOSS, i.AddTask(name="part", intention="p", manager=BOSS, stages=(plan(("one", ANN)),)))
    house.do(i.PauseTask(task_id=T1))
    assert schedule(house.state, [T2]) == []
    assert due(house.do(i.ResumeTask(task_id=T1))) == [i.StartStage(stage_id=StageId("t2.s1"))]


# ---------------------------------------------------------------------------------------------- messages


@pytest.mark.req("MAS-155")
def test_a_stage_waits_for_the_messages_about_it() -> None:
    house = staged().assign().run(ANN, about(), about(reply=True), DONE)
    assert due(house) == []
    house.run(CY)
    assert due(house) == []
    assert kinds(house.run(CY)) == OVER


@pytest.mark.req("MAS-155")
def test_a_stage_does_not_wait_for_what_else_is_in_the_same_conversation() -> None:
    house = staged().assign().run(ANN, about(), DONE).queue(CY)
    assert house.agent(CY).todo == ("cy#1", "cy#2")
    assert kinds(house.run(CY)) == OVER


@pytest.mark.req("MAS-155")
def test_a_stage_waits_for_messages_that_reach_who_is_done_with_it() -> None:
    to_ann = i.SendMessage(task_id=T1, receiver=(ANN,), message="look", stage_relative=S1)
    house = staged().assign().do(to_ann, by=BOB).run(ANN, DONE)
    assert house.last(ANN).subtask_id == ONE
    assert due(house) == []
    assert kinds(house.run(ANN)) == OVER


@pytest.mark.req("MAS-155")
def test_a_stage_waits_for_a_call_about_it_to_be_over() -> None:
    house = staged().assign().queue(BOSS)
    house.run(
        BOSS,
        i.SendMessage(
            task_id=T1, receiver=(CY,), message="?", need_reply=True, waiting=True, delivery="call", stage_relative=S1
        ),
    )
    house.run(ANN, DONE).start(CY)
    house.do(reply(WaitingId("boss>1:cy"), BOSS), by=CY)
    assert due(house) == []
    assert kinds(house.finish(CY)) == OVER


@pytest.mark.req("MAS-155")
def test_a_stage_waits_for_the_answer_of_a_person_about_it() -> None:
    house = staged().assign().queue(CY).run(CY, question(HUE, stage=S1)).run(ANN, DONE)
    assert due(house) == []
    house.do(reply(WaitingId("cy>1:hue"), CY), by=HUE).run(CY)
    assert kinds(house) == OVER


@pytest.mark.req("MAS-155")
def test_a_message_about_a_stage_that_waits_for_approval_holds_up_the_stage() -> None:
    house = staged().assign().run(ANN, about(), DONE)
    house.start(CY, terms=StepTerms(effect="model", verdict="ask", question="may I?", digest="d"))
    assert due(house) == []
    house.do(i.AnswerApproval(approval_id=house.question(CY).approval_id, answer="denied"), by=HUE)
    assert kinds(house) == OVER


@pytest.mark.req("MAS-155")
def test_a_report_waits_for_the_messages_too() -> None:
    house = House.furnished()
    house.do(
        i.AddTask(name="x", intention="x", manager=BOSS, group=(CY,), stages=(plan(("one", ANN)),), driver="manager")
    )
    stage = StageId("t2.s1")
    note = i.SendMessage(task_id=T2, receiver=(CY,), message="note", stage_relative=stage)
    house.assign(stage).run(ANN, note, i.FinishSubtask(subtask_id=SubtaskId("t2.s1.1"), stage_id=stage))
    assert due(house) == []
    assert kinds(house.run(CY)) == [i.ReportStage]


@pytest.mark.req("MAS-155")
def test_a_stage_does_not_wait_for_messages_to_an_agent_that_is_gone() -> None:
    house = staged().assign().run(ANN, about(), DONE).do(i.RemoveAgent(agent_id=CY))
    assert kinds(house) == OVER


@pytest.mark.req("MAS-155")
def test_a_message_that_comes_while_the_house_ends_the_stage_is_not_lost() -> None:
    house = staged().assign().run(ANN, DONE)
    end, finish = due(house)
    house.do(about(), by=BOB)
    house.refused("stage_has_letters", end, by=SYSTEM)
    house.refused("stage_has_letters", i.ReportStage(stage_id=S1), by=SYSTEM)
    house.refused("stage_active", finish, by=SYSTEM)
    house.run(CY).do(*due(house), by=SYSTEM)
    assert T1 not in house.state.tasks


def test_steps_that_are_no_messages_hold_up_no_stage() -> None:
    house = staged().assign().run(ANN, i.QueueSteps(agent_id=ANN, works=(skill(),)), DONE)
    assert kinds(house) == OVER


def test_a_task_that_is_not_open_is_not_looked_at() -> None:
    assert schedule(House.furnished().state, [TaskId("t9")]) == []


def test_a_subtask_goes_on_while_another_agent_has_a_step_in_it() -> None:
    queue = AgentId("queue")
    house = staged().do(i.AddAgent(agent_id=queue, spec=AgentSpec(name="queue", kind="system", tools=("merge",))))
    house.do(i.AddParticipants(task_id=T1, agents=(queue,))).assign()
    assert due(house.run(ANN, i.QueueSteps(agent_id=queue, works=(tool("merge", {}),)))) == []
    (stalled,) = due(house.run(queue))
    assert isinstance(stalled, i.FinishSubtask)
    assert (stalled.subtask_id, stalled.state) == (ONE, "failed")
