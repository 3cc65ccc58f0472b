"""Who is woken after a commit. That nobody sleeps who could work is an invariant of every decision (invariants.py)."""

from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.ids import StepId, task_budget
from greenroom.core.rules import intents as i
from greenroom.core.rules.queue import find_touched_agents
from greenroom.core.state.step import StepTerms
from tests.core.house import ANN, BOB, BOSS, CY, SPECS, SYSTEM, T1, T2, House, question, reply, tool

COSTLY = StepTerms(effect="model", needs=Amounts(tokens=60))


def woken(house: House) -> set[str]:
    return {str(name) for name in find_touched_agents(house.state, house.fresh)}


def test_a_note_on_the_board_wakes_nobody() -> None:
    assert woken(House.furnished().do(i.PostNote(task_id=T1, content="x"))) == set()


def test_a_step_wakes_its_agent_when_it_is_queued_filled_in_or_over() -> None:
    house = House.furnished().queue(ANN, tool("shell"))
    assert woken(house) == {ANN}
    house.do(i.ModifyStep(step_id=StepId("ann#1"), work=tool("shell", {})))
    assert woken(house) == {ANN}
    house.run(ANN)
    assert woken(house) == {ANN}


def test_an_answer_wakes_who_waited_and_who_answered() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, BOB)[0]
    house.run(BOB, reply(waiting, ANN))
    assert woken(house) == {ANN, BOB}


def test_a_question_wakes_whom_it_is_for() -> None:
    house = House.furnished().queue(ANN).run(ANN, question(CY))
    assert woken(house) == {ANN, CY}


def test_room_in_a_budget_wakes_the_hungry() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN).queue(BOB)
    house.start(ANN, terms=COSTLY)
    house.start(BOB, terms=COSTLY)
    house.finish(ANN)
    assert woken(house) == {ANN, BOB}
    house.do(i.SetLimits(budget_id=task_budget(T1), limits=Limits(tokens=200)))
    assert woken(house) == {BOB}


def test_a_started_or_resumed_task_wakes_its_group() -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS, group=(CY,), start=False))
    assert woken(house.do(i.StartTask(task_id=T2))) == {BOSS, CY}
    assert woken(house.do(i.PauseTask(task_id=T2))) == {BOSS, CY}
    assert woken(house.do(i.ResumeTask(task_id=T2))) == {BOSS, CY}


def test_a_task_that_began_and_ended_in_one_commit_wakes_nobody() -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS, group=(CY,)))
    events = list(house.fresh)
    house.do(i.CancelTask(task_id=T2))
    assert find_touched_agents(house.state, [*events, *house.fresh]) == set()


def test_a_resumed_team_and_a_new_owner_wake_everybody() -> None:
    house = House.furnished().do(i.PauseTeam()).do(i.ResumeTeam())
    assert woken(house) == set(SPECS)
    assert woken(house.do(i.Recover(epoch=1, owner="me"), by=SYSTEM)) == set(SPECS)
