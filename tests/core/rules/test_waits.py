"""Waiting: who waits for whom, how an id comes back, and why nobody waits for ever."""

import pytest

from greenroom.core.base.ids import AgentId, TaskId, TeamId, WaitingId, timer_id
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.rules.queue import is_waiting_for
from greenroom.core.state.message import WaitReleased
from greenroom.core.state.step import StepTerms
from tests.core.house import ANN, BOB, BOSS, CY, HUE, MINUTE, PIA, SYSTEM, T1, T2, House, question, reply, skill


@pytest.mark.req("MAS-64", "MAS-267", "MAS-268")
def test_who_waits_runs_nothing_and_is_called_waiting_and_nobody_is_locked_before() -> None:
    house = House.furnished().queue(ANN, skill(), skill())
    assert (house.agent(ANN).step_lock, house.agent(ANN).working_state) == ((), "working")
    house.run(ANN, question(BOB))
    assert house.agent(ANN).working_state == "waiting"
    assert house.next(ANN) is None
    house.refused(
        "not_next", i.StartStep(step_id=house.agent(ANN).todo[0], terms=StepTerms(effect="pure"), work=skill()), by=ANN
    )


@pytest.mark.req("MAS-270", "MAS-273")
def test_an_answer_with_the_id_lets_the_waiter_go_on() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, BOB)[0]
    house.run(BOB, reply(waiting, ANN))
    assert house.agent(ANN).step_lock == ()
    assert house.released(waiting) == "reply"
    assert house.next(ANN) is not None


def test_an_answer_without_the_id_does_not_count_as_one() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, BOB)[0]
    house.queue(BOB, skill(), place="last").do(i.SendMessage(task_id=T1, receiver=(ANN,), message="by the way"), by=BOB)
    assert house.agent(ANN).step_lock == (waiting,)


@pytest.mark.req("MAS-272")
def test_who_asked_several_goes_on_when_all_have_answered() -> None:
    house = House.furnished().queue(ANN, skill(), skill("merge")).run(ANN, question(BOB, CY))
    bob, cy = house.agent(ANN).step_lock
    house.run(CY, reply(cy, ANN))
    assert house.next(ANN) is None
    house.run(BOB, reply(bob, ANN))
    assert house.next(ANN) is not None


@pytest.mark.req("MAS-271")
def test_answers_are_read_next_in_the_order_they_came_and_other_messages_queue() -> None:
    house = House.furnished().queue(ANN, skill(), skill("merge")).run(ANN, question(BOB, CY))
    bob, cy = house.agent(ANN).step_lock
    house.do(i.SendMessage(task_id=T1, receiver=(ANN,), message="fyi", sender=PIA))
    house.run(CY, reply(cy, ANN)).run(BOB, reply(bob, ANN))
    assert house.senders(ANN) == ["from: cy", "from: bob", "", "from: pia"]


def test_only_the_waiter_reads_an_answer_next_and_its_other_receivers_in_turn() -> None:
    house = House.furnished().queue(CY, skill("merge"))
    waiting = house.ask_agent(ANN, BOB)[0]
    house.run(BOB, evolve(reply(waiting, ANN), receiver=(ANN, CY)))
    assert house.senders(CY) == ["", "from: bob"]


@pytest.mark.parametrize(
    ("waiting", "receiver", "task", "code"),
    [
        ("ann>9:bob", ANN, T1, "unknown_waiting_id"),
        ("ann>1:cy", ANN, T1, "unknown_waiting_id"),
        ("ann>1:bob", CY, T1, "wrong_receiver"),
        ("ann>1:bob", ANN, T2, "wrong_task"),
    ],
)
def test_an_id_is_returned_by_whom_it_was_given_to_and_where_it_was_asked(
    waiting: str, receiver: AgentId, task: TaskId, code: str
) -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS, group=(ANN, BOB)))
    house.ask_agent(ANN, BOB, CY)
    house.refused(code, reply(WaitingId(waiting), receiver, task), by=BOB)
    assert len(house.agent(ANN).step_lock) == 2


def test_an_id_is_returned_once() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, BOB)[0]
    house.do(reply(waiting, ANN), by=BOB)
    house.refused("unknown_waiting_id", reply(waiting, ANN), by=BOB)


# ---------------------------------------------------------------------------------------------- no deadlock


def test_a_locked_agent_still_answers() -> None:
    house = House.furnished()
    house.ask_agent(ANN, CY)
    waiting = house.ask_agent(BOB, ANN)[0]
    house.run(ANN, reply(waiting, BOB))
    assert house.agent(BOB).step_lock == ()
    assert house.agent(ANN).working_state == "waiting"


def test_a_clarifying_question_back_is_allowed_and_both_go_on() -> None:
    house = House.furnished()
    first = house.ask_agent(ANN, BOB)[0]
    house.run(BOB, question(ANN))
    second = house.agent(BOB).step_lock[0]
    assert is_waiting_for(house.state, ANN, BOB)
    assert is_waiting_for(house.state, BOB, ANN)
    house.run(ANN, reply(second, BOB))
    house.run(BOB).run(BOB, reply(first, ANN))
    assert not house.state.waits


def test_a_locked_agent_may_not_ask_who_waits_for_it() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB)
    house.run(BOB, question(ANN))
    house.run(ANN, question(BOB))
    assert house.codes() == ["wait_cycle"]


def test_a_locked_agent_may_not_close_a_circle_through_others() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB)
    house.run(BOB, question(CY)).run(CY, question(ANN))
    house.refused("wait_cycle", question(BOB), by=ANN)
    house.refused("wait_cycle", question(PIA, CY), by=ANN)
    house.do(question(PIA), by=ANN)


def test_a_locked_agent_may_write_without_waiting_to_whom_it_likes() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB)
    house.run(BOB, question(ANN))
    house.do(i.SendMessage(task_id=T1, receiver=(BOB,), message="hm", need_reply=True), by=ANN)


def test_who_waits_for_nobody_waits_for_nobody() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB, CY)
    assert not is_waiting_for(house.state, BOB, ANN)
    assert not is_waiting_for(house.state, ANN, PIA)


def test_word_for_an_answer_that_was_put_off_is_read_although_somebody_else_is_waited_for() -> None:
    house = House.furnished()
    house.ask_agent(BOB, PIA)
    house.ask_agent(ANN, BOB)
    house.run(BOB, question(CY))
    assert house.next(BOB) is None
    house.run(CY, reply(WaitingId("bob>2:cy"), BOB))
    assert house.agent(BOB).step_lock == ("bob>1:pia",)
    step = house.start(BOB)
    assert step.work.text_content.startswith("from: cy")
    house.finish(BOB)
    assert house.start(BOB).answers == "ann>1:bob"


def test_an_answer_that_was_put_off_until_several_came_waits_for_all_of_them() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB)
    house.run(BOB, question(CY, PIA))
    house.run(PIA, reply(WaitingId("bob>1:pia"), BOB))
    assert house.next(BOB) is None
    house.run(CY, reply(WaitingId("bob>1:cy"), BOB))
    assert house.senders(BOB) == ["from: pia", "from: cy", "from: ann"]


# ---------------------------------------------------------------------------------------------- timeouts


def test_a_wait_for_an_agent_ends_at_the_teams_bound() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, BOB)[0]
    timer = i.FireTimer(timer_id=timer_id(waiting, "wait"))
    house.later(MINUTE - 1).refused("too_early", timer, by=SYSTEM)
    house.later(1).do(timer, by=SYSTEM)
    assert house.released(waiting) == "timeout"
    assert house.texts(ANN) == ["bob did not answer in time (message ann>1)."]
    assert house.agent(ANN).step_lock == ()


def test_the_late_answer_is_refused_and_the_debtor_reads_why() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, BOB, timeout=5)[0]
    house.later(5).fire(waiting).run(BOB, reply(waiting, ANN))
    assert house.codes() == ["unknown_waiting_id"]


def test_a_notice_is_read_in_the_reading_skill_of_who_plans() -> None:
    house = House.furnished()
    waiting = house.ask_agent(PIA, BOB, timeout=5)[0]
    house.later(5).fire(waiting)
    assert house.todo(PIA) == ["process_message"]


def test_a_person_may_take_their_time_unless_the_sender_says_otherwise() -> None:
    house = House.furnished()
    house.ask_agent(ANN, HUE)
    assert not house.state.timers
    house.ask_agent(CY, HUE, timeout=7)
    assert [timer.due for timer in house.state.timers.values()] == [house.now + 7]


def test_a_team_without_a_bound_waits_on() -> None:
    house = House.furnished(waiting_timeout=None)
    house.ask_agent(ANN, BOB)
    assert not house.state.timers


def test_nothing_expires_unless_configured() -> None:
    assert i.CreateTeam(team_id=TeamId("t"), name="t").waiting_timeout is None


def test_a_person_who_waits_is_told_nothing() -> None:
    house = House.furnished().do(question(BOB, timeout=5), by=HUE)
    house.later(5).fire(WaitingId("hue>1:bob"))
    assert house.todo(HUE) == []
    assert house.agent(HUE).step_lock == ()


def test_a_wait_that_was_asked_at_a_door_is_answered_in_the_task() -> None:
    house = House.furnished().do(question(BOB, timeout=5), by=ANN)
    house.later(5).fire(WaitingId("ann>1:bob"))
    assert house.last(ANN).thread_id == "ann@t1"


def test_time_runs_while_a_task_is_paused() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, BOB)[0]
    house.do(i.PauseTask(task_id=T1)).later(MINUTE).fire(waiting)
    assert house.released(waiting) == "timeout"
    assert house.next(ANN) is None


# ---------------------------------------------------------------------------------------------- releases


def test_a_removed_answer_lets_its_waiter_go() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, BOB)[0]
    house.do(i.RemoveStep(step_id=house.agent(BOB).todo[0]), by=BOB)
    assert house.released(waiting) == "unanswered"


def test_waits_of_a_task_that_is_over_are_released_without_a_word() -> None:
    house = House.furnished()
    house.ask_agent(ANN, HUE)
    house.do(i.CancelTask(task_id=T1))
    assert [event.why for event in house.happened(WaitReleased)] == ["task_over"]


def test_a_wait_in_another_task_is_told_there_when_its_own_conversation_is_over() -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS, group=(ANN, BOB)))
    house.queue(ANN).run(ANN, question(BOB, task=T2)).queue(CY)
    house.start(CY)
    house.do(i.CancelTask(task_id=T1)).later(MINUTE).fire(WaitingId("ann>1:bob"))
    assert house.last(ANN).task_id == T2


def test_nobody_is_told_anything_in_a_task_that_is_ending() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, HUE, timeout=5)[0]
    house.queue(CY)
    house.start(CY)
    house.do(i.CancelTask(task_id=T1)).later(5).fire(waiting)
    assert house.todo(ANN) == []


def test_a_circle_is_found_once_where_many_ways_lead_to_it() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB, CY)
    house.run(BOB, question(PIA)).run(CY, question(PIA))
    assert not is_waiting_for(house.state, ANN, BOSS)
    assert is_waiting_for(house.state, ANN, PIA)


def test_word_that_no_answer_comes_is_read_next() -> None:
    house = House.furnished().queue(ANN, skill(), skill("merge")).run(ANN, question(BOB, timeout=5))
    house.later(5).fire(WaitingId("ann>1:bob"))
    assert house.todo(ANN) == ["converse", "merge"]


def test_word_that_no_answer_comes_is_read_before_what_was_put_off_for_it() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB)
    house.run(BOB, question(CY, timeout=5))
    house.later(5).fire(WaitingId("bob>1:cy"))
    assert house.senders(BOB) == ["cy did not answer in time (message bob>1).", "from: ann"]
