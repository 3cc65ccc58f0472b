"""Sending: who may write to whom, and what the receiver gets to do."""

import re

import pytest

from greenroom.core.base.ids import AgentId, StageId, SubtaskId, TaskId, WaitingId
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.state.mas_format import format_task
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import SubtaskHandedOver
from tests.core.house import (
    ANN,
    BOB,
    BOSS,
    CY,
    DOOR,
    HUE,
    PIA,
    S1,
    S2,
    SYSTEM,
    T1,
    T2,
    House,
    plan,
    question,
    reply,
    skill,
    thread,
)

ONE = SubtaskId("t1.s1.1")
HELLO = i.SendMessage(task_id=T1, receiver=(BOB,), message="hello")
OVER = i.SendMessage(task_id=T1, receiver=(BOB,), message="yours now", delivery="handoff", handoff_summary="half done")


@pytest.mark.req("MAS-30", "MAS-100", "MAS-152")
def test_a_sent_message_is_an_event_and_with_its_receivers_at_once() -> None:
    house = House.furnished().queue(ANN)
    house.run(ANN, i.SendMessage(task_id=T1, receiver=(BOB, CY), message="hello", need_reply=True))
    (sent,) = house.happened(MessageSent)
    message = sent.message
    assert (message.task_id, message.sender_id, message.receiver, message.message) == (T1, ANN, (BOB, CY), "hello")
    assert (message.stage_relative, message.need_reply) == ("no_relative", True)
    assert (message.waiting, message.return_waiting_id) == (None, None)
    assert (message.message_id, message.sent_at, message.kind) == ("ann>1", house.now, "notification")
    assert (len(house.agent(BOB).todo), len(house.agent(CY).todo)) == (1, 1)
    assert house.archived(Message) == [message]


@pytest.mark.req("MAS-29", "MAS-49")
def test_messages_of_every_task_are_delivered_and_no_queue_keeps_one() -> None:
    house = House.furnished()
    for name in ("second", "third"):
        house.do(i.AddTask(name=name, intention="x", manager=BOSS, group=(ANN, BOB, CY)))
    for task in (T1, T2, TaskId("t3")):
        house.do(i.SendMessage(task_id=task, receiver=(BOB, CY), message=f"about {task}"), by=ANN)
        assert format_task(house.task(task), (), ())["communication_queue"] == []
    for agent in (BOB, CY):
        delivered = [house.state.steps[name] for name in house.agent(agent).todo]
        assert [(step.task_id, step.work.text_content.splitlines()[1]) for step in delivered] == [
            ("t1", "about t1"),
            ("t2", "about t2"),
            ("t3", "about t3"),
        ]


@pytest.mark.req("MAS-154")
def test_the_id_to_return_stands_in_the_text_of_the_step_or_there_is_none() -> None:
    house = House.furnished().do(question(BOB), HELLO, by=ANN)
    asked, told = (house.state.steps[name] for name in house.agent(BOB).todo)
    assert re.findall("<return_waiting_id>(.*)</return_waiting_id>", asked.work.text_content) == [asked.answers]
    assert "return_waiting_id" not in told.work.text_content
    assert told.answers is None
    house.run(BOB, reply(WaitingId(str(asked.answers)), ANN))
    assert house.said().return_waiting_id == asked.answers
    assert house.released(str(asked.answers)) == "reply"


@pytest.mark.req("MAS-223", "MAS-225", "MAS-227")
@pytest.mark.parametrize(
    ("receiver", "need_reply", "executor"),
    [(PIA, True, "send_message"), (PIA, False, "process_message"), (BOB, True, "converse"), (BOB, False, "converse")],
)
def test_a_message_is_a_step_at_the_end_of_the_receivers_queue(
    receiver: AgentId, need_reply: bool, executor: str
) -> None:
    house = House.furnished().queue(receiver, skill("merge"))
    house.do(i.SendMessage(task_id=T1, receiver=(receiver,), message="hello", need_reply=need_reply, sender=ANN))
    assert house.todo(receiver) == ["merge", executor]


@pytest.mark.req("MAS-224")
def test_the_receivers_step_names_the_sender_and_holds_the_message() -> None:
    house = House.furnished().do(HELLO, by=ANN)
    work = house.last(BOB).work
    assert work.intention == "A message from ann is in text_content."
    assert work.text_content == "from: ann\nhello"


@pytest.mark.req("MAS-222", "MAS-271")
@pytest.mark.parametrize(("receiver", "executor"), [(PIA, "send_message"), (BOB, "converse")])
def test_a_message_whose_sender_waits_is_next_and_carries_its_own_waiting_id(receiver: AgentId, executor: str) -> None:
    house = House.furnished().queue(receiver, skill("merge"))
    house.queue(ANN).run(ANN, question(CY, receiver))
    assert house.todo(receiver) == [executor, "merge"]
    step = house.state.steps[house.agent(receiver).todo[0]]
    assert step.answers == f"ann>1:{receiver}"
    assert step.work.text_content.endswith(f"<return_waiting_id>ann>1:{receiver}</return_waiting_id>")


@pytest.mark.req("MAS-153", "MAS-269")
def test_waiting_makes_one_id_per_receiver_and_locks_the_sender() -> None:
    house = House.furnished().queue(ANN).run(ANN, question(BOB, CY))
    assert house.said().waiting == ("ann>1:bob", "ann>1:cy")
    assert house.agent(ANN).step_lock == ("ann>1:bob", "ann>1:cy")
    assert [(wait.waiter, wait.on) for _, wait in sorted(house.state.waits.items())] == [(ANN, BOB), (ANN, CY)]


def test_a_person_gets_a_letter_and_no_step() -> None:
    house = House.furnished().queue(ANN).run(ANN, question(HUE))
    assert house.todo(HUE) == []
    assert list(house.state.mail) == ["ann>1"]
    house.do(reply(WaitingId("ann>1:hue"), ANN), by=HUE)
    assert not house.state.mail
    assert house.agent(ANN).step_lock == ()


def test_a_letter_to_several_people_and_agents_waits_for_the_people() -> None:
    house = House.furnished().queue(ANN).run(ANN, question(BOB, HUE))
    house.run(BOB, reply(WaitingId("ann>1:bob"), ANN))
    (letter,) = house.state.mail.values()
    assert (letter.receiver, letter.waiting) == ((HUE,), ("ann>1:hue",))


def test_a_note_to_a_person_that_needs_no_answer_is_not_owed() -> None:
    house = House.furnished().do(i.SendMessage(task_id=T1, receiver=(HUE,), message="fyi", sender=ANN))
    assert not house.state.mail


# ---------------------------------------------------------------------------------------------- who


def test_a_door_writes_as_the_person_or_as_whom_it_names() -> None:
    house = House.furnished().do(HELLO, by=DOOR)
    assert house.said().sender_id == HUE
    house.do(evolve(HELLO, sender=CY), by="door:page")
    assert house.said().sender_id == CY
    house.refused("unknown_agent", evolve(HELLO, sender=AgentId("ghost")), by=DOOR)


def test_an_agent_writes_as_itself_only() -> None:
    house = House.furnished()
    house.refused("not_yours", evolve(HELLO, sender=CY), by=ANN)
    house.refused("not_yours", HELLO, by="stranger")
    house.do(evolve(HELLO, sender=ANN), by=ANN)


def test_only_the_group_talks_in_a_task() -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS, group=(ANN,)))
    house.refused("not_in_group", i.SendMessage(task_id=T2, receiver=(ANN,), message="x"), by=BOB)
    house.refused("unknown_receiver", i.SendMessage(task_id=T2, receiver=(BOB,), message="x"), by=ANN)


def test_a_person_from_outside_may_ask_and_be_answered() -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS, group=(ANN,)))
    house.do(question(ANN, task=T2), by=HUE)
    house.run(ANN, reply(WaitingId("hue>1:ann"), HUE, T2))
    assert house.agent(HUE).step_lock == ()


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (evolve(HELLO, task_id=TaskId("t9")), "unknown_task"),
        (evolve(HELLO, receiver=()), "no_receiver"),
        (evolve(HELLO, receiver=(AgentId("ghost"),)), "unknown_receiver"),
        (evolve(HELLO, receiver=(BOB, BOB)), "double_receiver"),
        (evolve(HELLO, message="  \n"), "empty_message"),
        (evolve(HELLO, stage_relative=StageId("t9.s1")), "unknown_stage"),
        (evolve(HELLO, stage_relative=StageId("t2.s1")), "unknown_stage"),
        (evolve(HELLO, waiting=True), "waits_for_nothing"),
        (evolve(question(BOB), receiver=(ANN, BOB)), "waits_for_nothing"),
        (evolve(HELLO, delivery="call"), "bad_call"),
        (evolve(HELLO, return_waiting_id=WaitingId("x>1:ann")), "unknown_waiting_id"),
        (OVER, "nothing_to_hand_off"),
        (evolve(OVER, receiver=(BOB, CY)), "bad_handoff"),
        (evolve(OVER, receiver=(ANN,)), "bad_handoff"),
        (evolve(OVER, need_reply=True), "bad_handoff"),
    ],
)
def test_a_message_that_cannot_be_sent_is_refused(wish: i.SendMessage, code: str) -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS, stages=(plan(("one", ANN)),)))
    house.refused(code, wish, by=ANN)


def test_agents_of_greenroom_read_no_messages() -> None:
    house = House.furnished().do(i.AddAgent(agent_id=AgentId("checks"), spec=AgentSpec(name="checks", kind="system")))
    house.do(i.AddParticipants(task_id=T1, agents=(AgentId("checks"),)))
    for by in (ANN, HUE):
        house.refused("system_receiver", evolve(HELLO, receiver=(AgentId("checks"),)), by=by)


def test_nobody_writes_into_a_task_that_is_ending() -> None:
    house = House.furnished().queue(BOB)
    house.start(BOB)
    house.do(i.CancelTask(task_id=T1)).refused("unknown_task", HELLO, by=ANN)


# ---------------------------------------------------------------------------------------------- where


@pytest.mark.req("MAS-155")
def test_a_message_about_a_stage_goes_to_the_work_on_it() -> None:
    house = House.furnished(stages=(plan(("one", BOB)),)).assign()
    house.do(evolve(HELLO, stage_relative=S1), by=ANN)
    step = house.last(BOB)
    assert (step.thread_id, step.stage_id) == (thread(BOB, ONE), S1)
    house.do(evolve(HELLO, receiver=(CY,), stage_relative=S1), by=ANN)
    assert (house.last(CY).thread_id, house.last(CY).stage_id) == (thread(CY, T1), S1)


def test_a_person_who_ends_a_stage_ends_the_messages_about_it_too() -> None:
    house = House.furnished(stages=(plan(("one", BOB)),)).assign()
    house.do(evolve(HELLO, receiver=(BOB, CY), stage_relative=S1), by=ANN).do(i.FinishStage(stage_id=S1), by=HUE)
    assert house.todo(BOB) == house.todo(CY) == []


@pytest.mark.req("MAS-155")
def test_a_message_about_no_stage_survives_the_stage() -> None:
    house = House.furnished(stages=(plan(("one", BOB)),)).assign().do(HELLO, by=ANN)
    assert (house.last(BOB).thread_id, house.last(BOB).stage_id) == (thread(BOB, T1), None)
    house.do(i.FinishStage(stage_id=S1))
    assert house.todo(BOB) == ["converse"]


def test_a_message_about_a_stage_whose_work_is_done_goes_to_the_task() -> None:
    house = House.furnished(stages=(plan(("one", BOB), ("two", CY)),)).assign()
    house.run(BOB, i.FinishSubtask(subtask_id=ONE, stage_id=S1)).do(evolve(HELLO, stage_relative=S1), by=ANN)
    assert house.last(BOB).thread_id == thread(BOB, T1)


def test_an_answer_goes_where_it_was_asked_for() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign().run(ANN, question(BOB))
    house.run(BOB, reply(WaitingId("ann>1:bob"), ANN))
    assert (house.last(ANN).thread_id, house.last(ANN).stage_id) == (thread(ANN, ONE), S1)


def test_an_answer_to_a_conversation_that_is_over_goes_to_the_task() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign().run(ANN, question(BOB))
    house.do(i.FinishStage(stage_id=S1)).run(BOB, reply(WaitingId("ann>1:bob"), ANN))
    assert (house.last(ANN).thread_id, house.last(ANN).stage_id) == (thread(ANN, T1), None)


def test_an_answer_about_another_stage_still_belongs_to_the_work_that_asked() -> None:
    house = House.furnished(stages=(plan(("one", ANN)), plan(("two", BOB)))).assign().run(ANN, question(BOB))
    house.run(BOB, evolve(reply(WaitingId("ann>1:bob"), ANN), stage_relative=S2))
    assert (house.last(ANN).thread_id, house.last(ANN).stage_id) == (thread(ANN, ONE), S1)


def test_a_call_has_a_conversation_of_its_own_that_closes_when_it_is_over() -> None:
    house = House.furnished().queue(ANN).run(ANN, evolve(question(BOB), delivery="call"))
    assert house.last(BOB).thread_id == thread(BOB, "ann>1")
    house.run(BOB, i.QueueSteps(agent_id=BOB, works=(skill(),)))
    assert thread(BOB, "ann>1") in house.state.threads
    house.run(BOB, reply(WaitingId("ann>1:bob"), ANN))
    assert thread(BOB, "ann>1") not in house.state.threads
    assert house.agent(ANN).step_lock == ()


# ---------------------------------------------------------------------------------------------- hand-off


def test_a_handoff_moves_the_subtask_and_the_control() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign()
    house.run(ANN, i.QueueSteps(agent_id=ANN, works=(skill("merge"), skill("reflection"))))
    house.run(ANN, OVER)
    assert house.todo(ANN) == []
    assert house.ended("ann#3").state == "skipped"
    stage = house.state.stages[S1]
    assert (stage.subtasks[0].agent, stage.subtasks[0].state) == (BOB, "running")
    step = house.last(BOB)
    assert (step.thread_id, step.stage_id, step.subtask_id) == (thread(BOB, ONE), S1, ONE)
    assert step.work.text_content == "from: ann\nsummary_of_sender_work: half done\nyours now"
    assert (house.said().data, house.said().need_reply) == (None, False)


def test_after_a_handoff_the_subtask_is_the_others_to_give_away_and_to_end() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign().queue(ANN, skill(), task=T1)
    house.run(ANN, OVER)
    house.do(i.QueueSteps(agent_id=ANN, works=(skill(), skill()), thread_id=thread(ANN, ONE)))
    house.run(ANN).run(ANN, evolve(OVER, receiver=(CY,)))
    assert house.codes() == ["nothing_to_hand_off"]
    house.run(ANN, i.FinishSubtask(subtask_id=ONE, stage_id=S1))
    assert house.codes() == ["not_manager"]
    house.run(BOB, evolve(OVER, receiver=(ANN,)))
    assert house.state.stages[S1].subtasks[0].agent == ANN


def test_a_subtask_that_is_over_is_not_handed_off() -> None:
    house = House.furnished(stages=(plan(("one", ANN), ("two", CY)),)).assign()
    house.run(ANN, i.FinishSubtask(subtask_id=ONE, stage_id=S1), OVER)
    assert house.codes() == ["nothing_to_hand_off"]


def test_a_subtask_is_handed_off_in_its_own_task() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign()
    house.do(i.AddTask(name="side", intention="x", manager=BOSS, group=(ANN, BOB)))
    house.run(ANN, evolve(OVER, task_id=T2))
    assert house.codes() == ["nothing_to_hand_off"]


def test_a_handoff_to_a_person_is_a_letter_that_ending_the_subtask_answers() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign()
    house.run(ANN, evolve(OVER, receiver=(HUE,), data={"why": "a signature"}))
    assert len(house.happened(SubtaskHandedOver)) == 1
    (letter,) = house.state.mail.values()
    assert letter.data == {"why": "a signature", "subtask_id": ONE}
    house.do(i.FinishSubtask(subtask_id=ONE, stage_id=S1), by=HUE)
    assert not house.state.mail


def test_a_handoff_lets_those_go_who_waited_for_the_old_agent() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign().queue(CY).run(CY, question(ANN, stage=S1))
    house.run(ANN, OVER)
    assert house.released("cy>1:ann") == "unanswered"


def test_the_same_stage_may_not_be_started_by_a_message() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).do(evolve(HELLO, stage_relative=S1), by=ANN)
    assert house.state.stages[S1].state == "init"
    house.do(i.StartStage(stage_id=S1), by=SYSTEM)


def test_a_letter_to_two_people_stays_until_both_have_answered() -> None:
    her = AgentId("her")
    house = House.furnished().do(i.AddAgent(agent_id=her, spec=AgentSpec(name="Her", kind="human")))
    house.do(i.AddParticipants(task_id=T1, agents=(her,)))
    house.do(i.SendMessage(task_id=T1, receiver=(HUE, her), message="when?", need_reply=True, sender=ANN))
    house.do(i.RemoveAgent(agent_id=HUE))
    assert [letter.receiver for letter in house.state.mail.values()] == [(her,)]
    house.do(i.RemoveAgent(agent_id=her))
    assert not house.state.mail
