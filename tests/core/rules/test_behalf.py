"""Whoever brings an agent into a conversation binds it there; a word in one that goes on already binds nobody."""

import pytest

from greenroom.core.base.ids import AgentId, Principals
from greenroom.core.base.records import evolve
from greenroom.core.ports.codec import decode_world, encode_world
from greenroom.core.rules import intents as i
from tests.core.house import ANN, BOB, BOSS, CY, S1, T1, T2, House, plan, skill, thread

HANDOFF = i.SendMessage(task_id=T1, receiver=(BOB,), message="go on", delivery="handoff", handoff_summary="half")
OTHER = i.AddTask(name="other", intention="x", manager=BOSS, group=(BOSS, ANN, BOB))


def post(*receivers: AgentId) -> i.SendMessage:
    return i.SendMessage(task_id=T1, receiver=receivers, message="do it")


def bound_by(house: House, agent: AgentId, place: str = T1) -> Principals:
    """On whose behalf the agent works in this place."""
    return house.world.threads[thread(agent, place)].on_behalf


def test_what_a_person_asks_for_is_done_on_nobody_s_behalf() -> None:
    assert bound_by(House.furnished().queue(ANN), ANN) == ()


def test_a_first_message_binds_and_so_do_those_who_bind_its_sender() -> None:
    house = House.furnished().queue(ANN).run(ANN, post(BOB)).run(BOB, post(CY))
    assert (bound_by(house, BOB), bound_by(house, CY)) == ((ANN,), (BOB, ANN))
    assert decode_world(encode_world(house.world)) == house.world


def test_a_word_in_a_conversation_that_goes_on_binds_nobody() -> None:
    house = House.furnished().queue(BOB).queue(ANN).run(ANN, post(BOB))
    assert bound_by(house, BOB) == ()


@pytest.mark.parametrize("first", [ANN, BOSS])
def test_a_report_binds_neither_the_manager_nor_those_for_whom_it_was_made(first: AgentId) -> None:
    house = House.furnished().queue(first).run(first, post(BOB)).run(BOB, post(first))
    assert (bound_by(house, first), bound_by(house, BOB)) == ((), (first,))
    house = House.furnished().queue(BOB).run(BOB, post(BOSS))
    assert bound_by(house, BOSS) == (), "though it is the first word that it hears"


def test_who_is_handed_a_subtask_is_bound_by_who_had_it_and_by_their_manager() -> None:
    house = House.furnished(stages=(plan(("draft", ANN)),)).assign()
    (draft,) = house.world.stages[S1].subtasks
    assert bound_by(house, ANN, draft.subtask_id) == (BOSS,)
    house.run(ANN, HANDOFF)
    assert bound_by(house, BOB, draft.subtask_id) == (ANN, BOSS)


def test_a_part_of_a_stage_is_bound_by_the_manager_whoever_was_before_it() -> None:
    house = House.furnished(stages=(plan(("draft", ANN), ("check", BOB, ("draft",))),)).assign()
    draft, check = house.world.stages[S1].subtasks
    house.run(ANN, i.FinishSubtask(subtask_id=draft.subtask_id, stage_id=S1, state="finished")).assign()
    assert bound_by(house, BOB, check.subtask_id) == (BOSS,)


def test_a_manager_who_works_for_somebody_binds_its_workers_with_that_one() -> None:
    house = House.furnished(stages=(plan(("draft", ANN)),)).queue(BOSS)
    opened = house.world.threads[thread(BOSS, T1)]
    house.world = evolve(
        house.world, threads=house.world.threads.set(opened.thread_id, evolve(opened, on_behalf=(CY,)))
    )
    house.replayed = house.world
    house.assign()
    (draft,) = house.world.stages[S1].subtasks
    assert bound_by(house, ANN, draft.subtask_id) == (BOSS, CY)


def test_work_that_an_agent_takes_into_another_of_its_conversations_stays_bound() -> None:
    house = House.furnished().do(OTHER).queue(BOB, task=T2).run(BOB).queue(ANN).run(ANN, post(BOB))
    assert (bound_by(house, BOB), bound_by(house, BOB, T2)) == ((ANN,), ())
    house.run(BOB, i.QueueSteps(agent_id=BOB, works=(skill(),), task_id=T2))
    assert bound_by(house, BOB, T2) == (ANN,)


def test_a_timer_wakes_an_agent_for_those_for_whom_it_was_set() -> None:
    house = House.furnished().do(OTHER).queue(ANN).run(ANN, post(BOB))
    house.run(BOB, i.SetTimer(agent_id=BOB, task_id=T2, name="later", due=house.now, text="push"))
    (timer,) = house.world.timers.values()
    house.do(i.FireTimer(timer_id=timer.timer_id), by="system")
    assert bound_by(house, BOB, T2) == (ANN,)
