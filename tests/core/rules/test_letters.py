"""What people are asked: a plain message is the answer where it can only be one; what has its own verb waits for it."""

import pytest

from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, MessageId, StageId, SubtaskId, WaitingId, task_budget
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.state.message import MessageSettled
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import StageReported
from greenroom.core.state.step import StepTerms
from tests.core.house import ANN, BOB, BOSS, CY, DOOR, HUE, S1, SYSTEM, T1, T2, House, plan, question, thread

HER = AgentId("her")
PLAIN = i.SendMessage(task_id=T1, receiver=(ANN,), message="like this")
LETTER = i.SendMessage(task_id=T1, receiver=(HUE,), message="when?", need_reply=True)


def asked(*receivers: AgentId) -> House:
    """Ann asks these and waits; she has more to do."""
    return House.furnished().queue(ANN).queue(ANN).run(ANN, question(*receivers or (HUE,)))


def with_her(house: House) -> House:
    """There is a second person."""
    house.do(i.AddAgent(agent_id=HER, spec=AgentSpec(name="Her", kind="human")))
    return house.do(i.AddParticipants(task_id=T1, agents=(HER,)))


def test_letters_have_one_number_for_all_people_that_never_changes() -> None:
    house = with_her(asked()).do(evolve(LETTER, receiver=(HER, ANN)), by=BOB)
    house.do(i.SendMessage(task_id=T1, receiver=(HUE,), message="no answer is wanted"), by=BOB)
    house.do(i.SendMessage(task_id=T1, receiver=(ANN,), message="a model's", need_reply=True), by=BOB)
    assert dict(house.state.letters) == {"ann>1": 1, "bob>1": 2}
    house.do(PLAIN, by=HUE).do(LETTER, by=CY)
    assert dict(house.state.letters) == {"bob>1": 2, "cy>1": 3}
    assert house.state.team.letters_made == 3


# ---------------------------------------------------------------------------------------------- plain answers


@pytest.mark.parametrize("by", [HUE, DOOR])
def test_a_plain_message_to_who_waits_is_the_answer(by: str) -> None:
    house = asked().do(PLAIN, by=by)
    assert house.released("ann>1:hue") == "reply"
    assert house.said().return_waiting_id == "ann>1:hue"
    assert not house.state.mail
    assert house.senders(ANN)[0] == "from: hue", "it is read next, where it was asked for"
    assert house.agent(ANN).step_lock == ()


def test_an_answer_with_its_id_is_still_one() -> None:
    house = asked().do(evolve(PLAIN, return_waiting_id=WaitingId("ann>1:hue")), by=HUE)
    assert len(house.happened(MessageSettled)) == 1
    assert not house.state.mail


def test_a_plain_message_settles_a_letter_that_nobody_waits_for() -> None:
    house = House.furnished().do(evolve(LETTER, sender=ANN)).do(PLAIN, by=HUE)
    assert not house.state.mail
    assert house.said().return_waiting_id is None


def test_a_plain_message_goes_to_the_conversation_that_asked() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign().run(ANN, question(HUE)).do(PLAIN, by=HUE)
    assert house.last(ANN).thread_id == thread(ANN, "t1.s1.1")


def test_with_several_letters_open_a_plain_message_answers_none_of_them() -> None:
    house = asked().do(evolve(LETTER, sender=ANN)).do(PLAIN, by=HUE)
    assert len(house.state.mail) == 2
    assert house.agent(ANN).step_lock == ("ann>1:hue",)
    assert house.senders(ANN)[-1] == "from: hue", "it simply goes out"


def test_a_plain_message_to_several_who_asked_answers_none_of_them() -> None:
    house = asked().queue(BOB).run(BOB, question(HUE)).do(evolve(PLAIN, receiver=(ANN, BOB)), by=HUE)
    assert len(house.state.mail) == 2
    house.do(evolve(PLAIN, receiver=(CY, BOB)), by=HUE)
    assert house.released("bob>1:hue") == "reply"
    assert list(house.state.mail) == ["ann>1"]


def test_a_plain_message_to_somebody_else_or_in_another_task_answers_nothing() -> None:
    house = asked().do(i.AddTask(name="side", intention="x", manager=BOSS, group=(ANN, HUE)))
    house.do(evolve(PLAIN, receiver=(BOB,)), evolve(PLAIN, task_id=T2), by=HUE)
    assert list(house.state.mail) == ["ann>1"]


def test_a_message_of_an_agent_is_no_persons_answer() -> None:
    house = asked().do(PLAIN, by=BOB)
    assert list(house.state.mail) == ["ann>1"]


def test_a_person_who_asks_back_and_waits_has_not_answered() -> None:
    house = asked().do(question(ANN), by=HUE)
    assert list(house.state.mail) == ["ann>1"]
    assert house.agent(ANN).step_lock == ("ann>1:hue",)
    assert house.next(ANN) is not None, "a locked agent still answers"


def test_each_of_two_people_answers_for_themselves() -> None:
    house = with_her(House.furnished()).queue(ANN).run(ANN, question(HER, HUE)).do(PLAIN, by=HUE)
    assert house.released("ann>1:hue") == "reply"
    assert house.agent(ANN).step_lock == ("ann>1:her",)
    house.do(PLAIN, by=HER)
    assert not house.state.mail


def test_an_answer_that_cannot_be_sent_settles_nothing() -> None:
    house = asked().do(i.SetLimits(budget_id=task_budget(T1), limits=Limits(hops=1)))
    house.refused("limit_reached", PLAIN, by=HUE)
    assert list(house.state.mail) == ["ann>1"]


def test_a_question_about_a_step_is_not_answered_by_a_plain_message() -> None:
    house = asked().queue(BOB)
    house.start(BOB, terms=StepTerms(effect="effectful", verdict="ask", question="delete it?", digest="d"))
    house.do(evolve(PLAIN, receiver=(BOB,)), by=HUE)
    assert len(house.state.approvals) == 1
    assert "bob>1" in house.state.mail


def test_a_duty_is_not_done_by_a_plain_message_and_does_not_stand_in_the_way_of_an_answer() -> None:
    house = House.furnished(stages=(plan(("one", HUE)),)).assign()
    house.queue(BOSS).run(BOSS, question(HUE)).do(evolve(PLAIN, receiver=(BOSS,)), by=HUE)
    assert house.released("boss>2:hue") == "reply"
    (duty,) = house.state.mail.values()
    assert duty.data == {"subtask_id": "t1.s1.1"}


# ---------------------------------------------------------------------------------------------- reports


def managed_by(person: AgentId) -> House:
    """A task of a person, with a stage in which nothing is left to do."""
    house = House.furnished()
    house.do(i.AddTask(name="x", intention="x", manager=person, stages=(plan(("one", ANN)),), driver="manager"))
    house.do(i.StartStage(stage_id=STAGE), by=SYSTEM)
    house.do(i.FinishSubtask(subtask_id=SubtaskId("t2.s1.1"), stage_id=STAGE, summary="fine"), by=ANN)
    return house.do(i.ReportStage(stage_id=STAGE), by=SYSTEM)


STAGE = StageId("t2.s1")


def test_a_person_who_manages_is_told_by_letter_that_a_stage_has_nothing_left_to_do() -> None:
    house = managed_by(HUE)
    (letter,) = house.state.mail.values()
    assert (letter.receiver, letter.need_reply, letter.data) == ((HUE,), True, {"stage_id": STAGE})
    assert (letter.task_id, letter.stage_relative) == (T2, STAGE)
    assert letter.message.splitlines()[1:] == ["- ann, one: finished. fine"]
    assert house.todo(HUE) == []
    house.refused("reported", i.ReportStage(stage_id=STAGE), by=SYSTEM)
    assert len([event for event in house.log if isinstance(event, StageReported)]) == 1


def test_ending_the_stage_is_the_answer_to_its_report() -> None:
    house = managed_by(HUE).do(i.FinishStage(stage_id=STAGE), by=HUE)
    assert not house.state.mail


def test_a_report_goes_with_its_task() -> None:
    house = managed_by(HUE).do(i.CancelTask(task_id=T2))
    assert not house.state.mail


def test_a_report_of_another_stage_stays_unanswered() -> None:
    house = managed_by(HUE).do(i.AddTask(name="y", intention="y", manager=BOSS, stages=(plan(("one", ANN)),)))
    other = StageId("t3.s1")
    house.do(i.StartStage(stage_id=other), i.FinishStage(stage_id=other), by=SYSTEM)
    assert len(house.state.mail) == 1


def test_a_manager_that_is_no_person_gets_a_step_and_no_letter() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign().do(i.ReportStage(stage_id=S1), by=SYSTEM)
    assert house.todo(BOSS) == ["converse"]
    assert not house.state.mail


def test_of_several_letters_the_named_one_is_answered_and_the_others_stay() -> None:
    house = House.furnished().queue(BOSS)
    asks = i.SendMessage(task_id=T1, receiver=(HUE,), message="Which?", need_reply=True)
    house.run(BOSS, asks, evolve(asks, message="And when?"))
    first, second = sorted(house.state.mail)
    answer = i.SendMessage(task_id=T1, receiver=(BOSS,), message="The red one.", answers=MessageId(first))
    house.refused("unknown_letter", evolve(answer, answers=MessageId("boss>9")), by=HUE)
    house.refused("unknown_letter", evolve(answer, receiver=(CY,)), by=HUE)
    house.do(answer, by=HUE)
    assert list(house.state.mail) == [second]
