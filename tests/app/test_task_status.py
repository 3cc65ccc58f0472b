"""How a task stands: working, waiting for a person, paused, or idle."""

from greenroom.app.task_status import read_status
from greenroom.core.base.ids import TaskId
from greenroom.core.rules.intents import AddTask, PauseTask, PauseTeam, ResumeTask, SetTimer
from greenroom.core.state.step import StepTerms
from tests.core.house import ANN, BOB, BOSS, CY, HUE, MINUTE, SYSTEM, T1, T2, House, plan, question, skill

ASK = StepTerms(effect="model", verdict="ask", question="may I?", digest="d")
SIDE = AddTask(name="side", intention="s", manager=BOSS, group=(ANN, BOB, CY, HUE), driver="manager")


def word(house: House, task: TaskId = T1) -> tuple[str, str]:
    found = read_status(house.state, task)
    assert found is not None
    return found.state, found.reason


def test_a_task_that_is_not_open_stands_nowhere() -> None:
    assert read_status(House.furnished().state, TaskId("t9")) is None


def test_a_task_with_nothing_to_do_is_idle() -> None:
    assert word(House.furnished()) == ("idle", "no agent has anything to do")


def test_an_agent_that_waits_for_one_that_waits_for_a_yes_waits_for_a_person() -> None:
    house = House.furnished().queue(ANN).run(ANN, question(BOB))
    assert word(house)[0] == "working"
    house.start(BOB, terms=ASK)
    assert word(house) == ("waiting", "may I?")


def test_a_chain_of_questions_that_ends_at_a_person_waits_for_a_person() -> None:
    house = House.furnished().queue(ANN).run(ANN, question(BOB)).run(BOB, question(HUE))
    assert word(house) == ("waiting", "how?")


def test_a_timeout_of_a_question_to_a_person_is_no_work() -> None:
    house = House.furnished().queue(ANN).run(ANN, question(HUE, timeout=MINUTE))
    assert house.state.timers
    assert word(house) == ("waiting", "how?")


def test_a_chain_through_another_task_waits_for_a_person_too() -> None:
    house = House.furnished().do(SIDE).queue(ANN).run(ANN, question(BOB)).run(BOB, question(HUE, task=T2))
    assert word(house) == ("waiting", "how?")


def test_an_approval_in_the_way_of_an_answer_in_another_task_is_waited_for() -> None:
    house = House.furnished(waiting_timeout=None).do(SIDE).queue(ANN).queue(ANN).run(ANN, question(BOB, task=T2))
    assert word(house)[0] == "working"
    house.start(BOB, terms=ASK)
    assert word(house) == ("waiting", "may I?")


def test_an_agent_that_is_held_by_a_question_in_another_task_waits_for_its_person() -> None:
    house = House.furnished().do(SIDE).queue(ANN).queue(ANN, task=T2)
    house.run(ANN).run(ANN, question(HUE, task=T2)).queue(ANN)
    assert word(house) == ("waiting", "how?")


def test_a_subtask_whose_agent_waits_for_a_person_elsewhere_waits_for_them() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign().do(SIDE).run(ANN, question(HUE, task=T2))
    assert word(house) == ("waiting", "how?")


def test_a_person_with_a_subtask_is_waited_for() -> None:
    assert word(House.furnished(stages=(plan(("one", HUE)),)).assign())[0] == "waiting"


def test_who_is_waited_for_and_works_elsewhere_is_work() -> None:
    house = House.furnished(waiting_timeout=None).do(SIDE).queue(BOB, task=T2)
    house.start(BOB)
    house.queue(ANN).run(ANN, question(BOB, task=T2))
    assert word(house)[0] == "working"


def test_what_somebody_does_for_others_does_not_answer_what_waits_for_a_person() -> None:
    house = House.furnished().do(SIDE, SIDE).queue(ANN).run(ANN, question(BOB, task=T2))
    house.start(BOB, terms=ASK)
    house.queue(BOB, task=TaskId("t3"))
    assert house.next(BOB) is not None
    assert word(house) == ("waiting", "may I?")


def test_a_wait_that_only_time_ends_is_work() -> None:
    house = House.furnished().do(SIDE).queue(ANN).run(ANN, question(BOB, task=T2)).do(PauseTask(task_id=T2))
    assert word(house)[0] == "working"


def test_a_wait_that_nothing_ends_is_none() -> None:
    house = House.furnished(waiting_timeout=None).do(SIDE).queue(ANN).run(ANN, question(BOB, task=T2))
    assert word(house.do(PauseTask(task_id=T2)))[0] == "idle"


def test_a_call_to_wake_is_work() -> None:
    house = House.furnished().do(SetTimer(agent_id=ANN, task_id=T1, name="tea", due=2_000_000), by=ANN)
    assert word(house)[0] == "working"


def test_a_part_of_a_paused_task_is_paused() -> None:
    house = House.furnished().queue(BOSS)
    house.run(BOSS, AddTask(name="part", intention="p", manager=BOSS, group=(ANN,), driver="manager"))
    house.do(SetTimer(agent_id=ANN, task_id=T2, name="tea", due=2_000_000), by=ANN)
    house.queue(ANN, skill(), task=T2).do(PauseTask(task_id=T1))
    assert word(house, T2) == ("paused", "paused by a person")
    house.do(ResumeTask(task_id=T1))
    assert word(house, T2)[0] == "working"
    assert word(house.do(PauseTeam(why="limit: money"), by=SYSTEM), T2) == ("limit", "limit: money")
