"""People in the house: what they hear, where they talk among themselves, and what is written down of what they do."""

import pytest

from greenroom.core.base.errors import Rejection
from greenroom.core.base.ids import AgentId, GroupId, StageId, TaskId
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step
from greenroom.core.state.thread import Thread
from tests.core.house import ANN, BOSS, CY, HUE, PIA, S1, T1, T2, House, plan, skill, thread, tool

IVY = AgentId("ivy")
PEOPLE = GroupId("people")
FORM = i.FormGroup(group_id=PEOPLE, task_id=T1, participants=(HUE, IVY))
SAYS = i.SendMessage(task_id=T1, receiver=(), message="Is it good?", group=PEOPLE)
SENT = i.RecordStep(agent_id=HUE, work=skill("send_message"), task_id=T1, result={"send_message": "hello"})


def two_people() -> House:
    """The house, with a second person in it."""
    house = House.furnished(stages=(plan(("one", ANN), ("two", HUE)),))
    house.do(i.AddAgent(agent_id=IVY, spec=AgentSpec(name="Ivy", kind="human")))
    return house.do(i.AddParticipants(task_id=T1, agents=(IVY,)))


def told(house: House, person: AgentId) -> list[str]:
    """The instructions that a person has heard."""
    letters = [one for one in house.archived(Message) if person in one.receiver and one.kind == "instruction"]
    return [str((one.data or {})["instruction"]) for one in letters]


# ---------------------------------------------------------------------------------------------- what they hear


@pytest.mark.req("MAS-251")
def test_a_person_hears_that_they_belong_to_a_task_now_and_nobody_hears_it_twice() -> None:
    house = two_people()
    assert told(house, IVY) == ["update_working_memory"]
    assert house.said().message == "You take part in task t1 (job): do the job"
    house.do(i.AddParticipants(task_id=T1, agents=(IVY, HUE)))
    assert told(house, IVY) == ["update_working_memory"]
    assert told(house, HUE) == []


def test_a_person_hears_of_the_task_that_a_manager_made_for_them() -> None:
    house = two_people()
    house.queue(BOSS).run(BOSS, i.AddTask(name="news", intention="read it", manager=BOSS, group=(IVY, ANN)))
    assert house.said().message == "You take part in task t2 (news): read it"
    assert house.said().receiver == (IVY,)


@pytest.mark.req("MAS-249")
def test_a_person_in_a_stage_hears_how_it_ended_and_nobody_else_does() -> None:
    house = two_people().assign()
    house.do(i.FinishStage(stage_id=S1, state="failed", summary="No time."), by=BOSS)
    message = house.said()
    assert message.message == "Stage t1.s1 (a goal) is failed. No time."
    about = {"about": "a goal: No time."}
    assert message.data == {"instruction": "finish_stage", "stage_id": S1, "state": "failed", **about}
    assert (message.receiver, message.need_reply) == ((HUE,), False)


def test_a_stage_without_people_ends_without_a_word() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign()
    before = house.said() if house.archived(Message) else None
    house.do(i.FinishStage(stage_id=S1), by=BOSS)
    assert not house.archived(Message) or house.said() == before


@pytest.mark.req("MAS-166", "MAS-250")
def test_the_people_of_the_task_above_hear_how_a_task_ended() -> None:
    house = House.furnished()
    house.queue(BOSS).run(BOSS, i.AddTask(name="news", intention="read it", manager=BOSS))
    house.do(i.FinishTask(task_id=T2, summary="All is read."), by=BOSS)
    message = house.said()
    assert (message.message, message.receiver) == ("All is read.", (BOSS, HUE))
    assert message.data == {"instruction": "finish_task", "task_id": T2, "state": "finished"}


def test_who_manages_hears_nothing_from_themselves() -> None:
    house = House.furnished()
    house.do(i.AddTask(name="mine", intention="x", manager=HUE, stages=(plan(("one", HUE)),)))
    house.assign(StageId("t2.s1")).do(i.FinishStage(stage_id=StageId("t2.s1")), by=HUE)
    assert told(house, HUE) == []


# ---------------------------------------------------------------------------------------------- the standing task


@pytest.mark.req("MAS-8")
def test_a_standing_task_is_made_and_ended_by_people_only() -> None:
    house = House.furnished()
    base = i.AddTask(name="base", intention="be there", manager=BOSS, standing=True, driver="manager")
    house.refused("not_manager", base, by=BOSS)
    house.do(base)
    assert house.task(T2).standing
    house.refused("standing", i.FinishTask(task_id=T2), by=BOSS)
    house.refused("standing", i.CancelTask(task_id=T2), by=BOSS)
    house.do(i.FinishTask(task_id=T2), by=HUE)
    assert T2 not in house.state.tasks


# ---------------------------------------------------------------------------------------------- groups


@pytest.mark.req("MAS-237", "MAS-243")
def test_what_is_said_in_a_group_reaches_its_people_and_the_models_that_are_named_and_no_others() -> None:
    house = two_people().do(FORM, by=HUE)
    house.do(SAYS, by=HUE)
    assert (house.said().receiver, house.said().group) == ((IVY,), PEOPLE)
    assert house.todo(CY) == house.todo(ANN) == []
    house.do(evolve(SAYS, receiver=(CY,), need_reply=True), by=IVY)
    assert house.said().receiver == (HUE, CY)
    assert house.todo(CY) == ["converse"]
    assert house.todo(ANN) == []
    assert not house.state.mail, "in a group no person owes an answer"


@pytest.mark.req("MAS-238")
def test_only_people_of_the_task_take_part_in_a_group_and_only_they_form_one() -> None:
    house = two_people()
    house.refused("not_a_person", evolve(FORM, participants=(HUE, CY)))
    house.refused("not_a_person", FORM, by=CY)
    house.refused("not_in_group", evolve(FORM, participants=(HUE, AgentId("ghost"))))
    house.refused("small_group", evolve(FORM, participants=(HUE, HUE)))
    house.refused("bad_group", evolve(FORM, group_id=GroupId("a b")))
    house.refused("unknown_task", evolve(FORM, task_id=TaskId("t9")))


def test_a_group_is_formed_again_with_others_but_not_in_another_task() -> None:
    house = two_people().do(FORM)
    house.do(i.AddAgent(agent_id=AgentId("joe"), spec=AgentSpec(name="Joe", kind="human")))
    house.do(i.AddParticipants(task_id=T1, agents=(AgentId("joe"),)))
    house.do(evolve(FORM, participants=(HUE, IVY, AgentId("joe"))))
    assert house.state.groups[PEOPLE].participants == (HUE, IVY, "joe")
    house.do(i.AddTask(name="other", intention="x", manager=BOSS, group=(HUE, IVY)))
    house.refused("group_exists", evolve(FORM, task_id=T2))


def test_who_takes_no_part_says_nothing_in_a_group_and_nobody_waits_there() -> None:
    house = two_people().do(FORM)
    house.refused("not_in_group", SAYS, by=CY)
    house.refused("unknown_group", evolve(SAYS, group=GroupId("ghosts")), by=HUE)
    house.refused("no_waiting_here", evolve(SAYS, need_reply=True, waiting=True), by=HUE)


def test_who_is_gone_hears_nothing_and_a_group_is_over_with_its_task() -> None:
    house = two_people().do(FORM)
    house.do(i.AddAgent(agent_id=AgentId("joe"), spec=AgentSpec(name="Joe", kind="human")))
    house.do(
        i.AddParticipants(task_id=T1, agents=(AgentId("joe"),)), evolve(FORM, participants=(HUE, IVY, AgentId("joe")))
    )
    house.do(i.RemoveAgent(agent_id=IVY)).do(SAYS, by=HUE)
    assert house.said().receiver == ("joe",)
    house.do(i.FinishTask(task_id=T1))
    assert not house.state.groups


# ---------------------------------------------------------------------------------------------- what they do


@pytest.mark.req("MAS-235", "MAS-253")
def test_what_a_person_did_is_a_step_of_theirs_that_is_over() -> None:
    house = two_people().assign().do(evolve(SENT, stage_id=S1), by=HUE)
    (step,) = [one for one in house.archived(Step) if one.agent_id == HUE]
    assert (step.state, step.result, step.stage_id, step.work.executor) == (
        "finished",
        {"send_message": "hello"},
        S1,
        "send_message",
    )
    assert house.todo(HUE) == []
    assert isinstance(house.state.threads[thread(HUE, "t1")], Thread)


@pytest.mark.req("MAS-244")
def test_a_tool_that_a_person_ran_by_hand_is_recorded_also_when_it_failed() -> None:
    house = two_people()
    house.do(evolve(SENT, work=tool("shell", {"script": "ls"}), state="failed", result=None, error="No such file."))
    (step,) = [one for one in house.archived(Step) if one.agent_id == HUE]
    assert (step.state, step.error, step.work.executor) == ("failed", "No such file.", "shell")


def test_only_what_people_did_in_their_own_tasks_is_written_down_afterwards() -> None:
    house = two_people()
    house.refused("not_a_person", evolve(SENT, agent_id=CY), by=CY)
    house.refused("not_a_person", SENT, by=CY)
    house.refused("unknown_agent", evolve(SENT, agent_id=AgentId("ghost")))
    house.refused("unknown_task", evolve(SENT, task_id=TaskId("t9")))
    house.refused("unknown_stage", evolve(SENT, stage_id=StageId("t1.s9")))
    house.do(i.AddTask(name="other", intention="x", manager=BOSS))
    house.refused("not_in_group", evolve(SENT, task_id=T2))


# ---------------------------------------------------------------------------------------------- what they say


@pytest.mark.req("MAS-12", "MAS-239")
def test_a_persons_request_is_what_a_planner_plans_next() -> None:
    house = House.furnished().queue(PIA, skill("think"))
    house.do(i.SendMessage(task_id=T1, receiver=(PIA,), message="Write a report.", kind="request"), by=HUE)
    assert house.todo(PIA) == ["planning", "think"]
    assert house.texts(PIA)[0].endswith("Write a report.")


@pytest.mark.req("MAS-24", "MAS-239")
def test_what_else_a_person_writes_to_a_planner_is_handled_at_once_and_a_models_message_in_its_turn() -> None:
    house = House.furnished().queue(PIA, skill("think"))
    house.do(i.SendMessage(task_id=T1, receiver=(PIA,), message="By the way."), by=HUE)
    house.do(i.SendMessage(task_id=T1, receiver=(PIA,), message="Is it so?", need_reply=True), by=HUE)
    house.do(i.SendMessage(task_id=T1, receiver=(PIA,), message="From a model.", kind="request"), by=CY)
    assert house.todo(PIA) == ["process_message", "send_message", "think", "process_message"]


@pytest.mark.req("MAS-15")
def test_a_manager_who_plans_decides_by_a_plan_how_to_go_on_after_a_stage() -> None:
    house = House.furnished()
    lead = AgentId("lead")
    house.do(i.AddAgent(agent_id=lead, spec=AgentSpec(name="Lead", style="plan", manager=True)))
    house.do(
        i.AddTask(name="x", intention="x", manager=lead, group=(ANN,), driver="manager", stages=(plan(("a", ANN)),))
    )
    house.assign(StageId("t2.s1"))
    house.run(ANN, i.QueueSteps(agent_id=ANN, works=()))
    stage = house.state.stages[StageId("t2.s1")]
    house.do(i.ReportStage(stage_id=stage.stage_id), by="system")
    assert house.todo(lead) == ["planning"]


@pytest.mark.req("MAS-235", "MAS-253")
def test_what_a_person_says_is_sent_and_written_down_at_once_or_not_at_all() -> None:
    house = two_people()
    hello = i.SendMessage(task_id=T1, receiver=(ANN,), message="Hello, Ann.", sender=HUE)
    decided = house.ask(evolve(SENT, says=hello))
    assert not isinstance(decided, Rejection)
    kinds = [type(one).__name__ for one in decided.events]
    assert kinds.index("MessageSent") < kinds.index("StepEnded"), "first it is done, then it is written down"
    assert house.said().message == "Hello, Ann."
    before = len(house.archived(Step))
    house.refused("unknown_receiver", evolve(SENT, says=evolve(hello, receiver=(AgentId("nobody"),))))
    assert len(house.archived(Step)) == before
    house.refused("unknown_stage", evolve(SENT, stage_id=StageId("t1.s9"), says=hello))
    assert house.said().message == "Hello, Ann.", "what cannot be written down is not done either"
    assert len([one for one in house.log if isinstance(one, MessageSent) and one.message.sender_id == HUE]) == 1
