"""Working time is a hard cap: it is reserved before, a clock ends the attempt at its end, and what was worked stays."""

import pytest

from greenroom.core.base.amounts import NOTHING, UNLIMITED, Amounts, Limits
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, BudgetId, StepId, TeamId, TimerId, agent_budget, task_budget
from greenroom.core.rules import intents as i
from greenroom.core.rules.limits import DEFAULT_WORKING_TIME_MS, MIN_WORKING_TIME_MS
from greenroom.core.state.budget import Budget, LimitReached
from greenroom.core.state.knowledge import Note
from greenroom.core.state.step import Step, StepCancelling, StepTerms
from greenroom.core.state.team import ForkOrigin
from greenroom.core.state.timer import TimerCancelled, TimerSet
from tests.core.house import ANN, BOB, BOSS, CY, DOOR, MINUTE, PIA, SYSTEM, T1, T2, House, skill, thread, tool

TASK = task_budget(T1)
CLOCK = TimerId("ann#1!work")


def limited(minutes: int, *agents: AgentId) -> House:
    """A task that may work so long, and a step for each of these."""
    house = House.furnished(limits=Limits(millis=minutes * MINUTE))
    for agent in agents or (ANN,):
        house.queue(agent)
    return house


def takes(minutes: int) -> StepTerms:
    return StepTerms(effect="model", needs=Amounts(millis=minutes * MINUTE))


def budget(house: House, name: BudgetId = TASK) -> Budget:
    return house.state.budgets[name]


def ring(house: House, clock: TimerId = CLOCK) -> House:
    """Let the working time of a step be over."""
    house.now = max(house.now, house.state.timers[clock].due)
    return house.do(i.FireTimer(timer_id=clock), by=SYSTEM)


# ---------------------------------------------------------------------------------------------- reserving


def test_without_a_limit_of_working_time_there_is_no_clock_and_no_event_more() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN)
    step = house.start(ANN)
    assert (step.until, step.reserved) == (None, Amounts(steps=1))
    assert len(house.fresh) == 1
    house.finish(ANN)
    assert len(house.fresh) == 1


@pytest.mark.parametrize("name", [TASK, TEAM_BUDGET, agent_budget(ANN)])
def test_where_any_of_its_budgets_limits_it_a_step_reserves_ten_minutes(name: BudgetId) -> None:
    house = House.furnished().do(i.SetLimits(budget_id=name, limits=Limits(millis=60 * MINUTE))).queue(ANN)
    step = house.start(ANN)
    assert DEFAULT_WORKING_TIME_MS == 10 * MINUTE
    assert step.reserved == Amounts(steps=1, millis=DEFAULT_WORKING_TIME_MS)
    assert step.until == house.now + DEFAULT_WORKING_TIME_MS
    (timer,) = house.state.timers.values()
    assert (timer.timer_id, timer.purpose, timer.subject, timer.due) == (CLOCK, "work", "ann#1", step.until)
    assert budget(house, name).reserved.millis == DEFAULT_WORKING_TIME_MS


def test_a_step_reserves_what_its_terms_say() -> None:
    assert limited(60).start(ANN, terms=takes(25)).reserved.millis == 25 * MINUTE
    assert limited(60).start(ANN, terms=takes(2)).reserved.millis == 2 * MINUTE


@pytest.mark.parametrize("terms", [StepTerms(effect="pure"), takes(9)])
def test_nobody_reserves_more_than_is_left(terms: StepTerms) -> None:
    house = limited(7)
    assert house.start(ANN, terms=terms).reserved.millis == 7 * MINUTE


def test_the_tightest_of_several_limits_counts() -> None:
    house = limited(30)
    house.do(i.SetLimits(budget_id=TEAM_BUDGET, limits=Limits(millis=4 * MINUTE)))
    house.do(i.SetLimits(budget_id=agent_budget(ANN), limits=Limits(millis=6 * MINUTE)))
    assert house.start(ANN).reserved.millis == 4 * MINUTE
    assert [budget(house, name).reserved.millis for name in (TASK, TEAM_BUDGET)] == [4 * MINUTE] * 2


def test_when_nothing_is_left_it_is_the_limit() -> None:
    house = limited(3, ANN).queue(ANN)
    house.start(ANN)
    house.later(3 * MINUTE).finish(ANN)
    house.start(ANN)
    (reached,) = house.happened(LimitReached)
    assert (reached.budget_id, reached.limit) == (TASK, "millis")
    assert house.task().paused == "limit: task:t1 millis"
    house.do(i.SetLimits(budget_id=TASK, limits=Limits(millis=5 * MINUTE)), i.ResumeTask(task_id=T1))
    assert house.start(ANN).reserved.millis == 2 * MINUTE


def test_a_limit_of_no_time_at_all_lets_nothing_begin() -> None:
    house = House.furnished(limits=Limits(millis=0)).queue(ANN)
    house.start(ANN)
    assert house.task().paused == "limit: task:t1 millis"


# ---------------------------------------------------------------------------------------------- in parallel


def test_in_parallel_each_has_what_the_others_leave() -> None:
    house = limited(15, ANN, BOB, CY)
    assert house.start(ANN).reserved.millis == 10 * MINUTE
    assert house.start(BOB).reserved.millis == 5 * MINUTE
    assert house.start(CY).state == "awaiting_budget"
    assert budget(house).reserved.millis == 15 * MINUTE
    house.later(MINUTE).finish(ANN)
    assert house.next(CY) == "cy#1"
    assert house.start(CY).reserved.millis == 9 * MINUTE
    assert budget(house).spent.millis + budget(house).reserved.millis == 15 * MINUTE


def test_nobody_begins_with_the_crumbs_that_others_leave_for_now() -> None:
    house = House.furnished(limits=Limits(millis=10 * MINUTE + MIN_WORKING_TIME_MS - 1)).queue(ANN).queue(BOB)
    house.start(ANN)
    assert house.start(BOB).state == "awaiting_budget"
    house.later(MINUTE).finish(ANN)
    assert house.start(BOB).reserved.millis == 9 * MINUTE + MIN_WORKING_TIME_MS - 1


def test_a_crumb_is_enough_for_who_asks_for_no_more_or_when_no_more_will_come() -> None:
    house = limited(10, ANN, BOB)
    house.start(ANN, terms=StepTerms(effect="pure", needs=Amounts(millis=10 * MINUTE - 500)))
    assert house.start(BOB, terms=StepTerms(effect="pure", needs=Amounts(millis=400))).reserved.millis == 400
    house = House.furnished(limits=Limits(millis=700)).queue(ANN)
    assert house.start(ANN).reserved.millis == 700


@pytest.mark.parametrize("cap", [1, 7, 12, 25])
def test_in_parallel_the_cap_of_working_time_is_never_exceeded(cap: int) -> None:
    agents = (ANN, BOB, CY, PIA)
    house = limited(cap)
    for agent in agents:
        house.queue(agent, *[skill()] * 3)
    for _ in range(20):
        for agent in agents:
            if house.next(agent) is not None:
                house.start(agent)
        assert budget(house).spent.millis + budget(house).reserved.millis <= cap * MINUTE
        house.later(2 * MINUTE)
        for agent in agents:
            if house.agent(agent).running is not None:
                house.finish(agent)
    assert budget(house).spent.millis <= cap * MINUTE
    assert house.task().paused == ("limit: task:t1 millis" if cap < 25 else None)


# ---------------------------------------------------------------------------------------------- the end of it


def test_at_its_end_the_effect_is_ended_and_the_step_fails_with_the_name_of_the_limit() -> None:
    house = limited(7)
    house.start(ANN)
    ring(house)
    (ending,) = house.happened(StepCancelling)
    assert (ending.step_id, ending.attempt, ending.then) == ("ann#1", 1, "out_of_time")
    house.later(3_000).release(ANN)
    ended = house.ended("ann#1")
    assert (ended.state, ended.spent.millis) == ("failed", 7 * MINUTE)
    assert ended.error == "Its working time is over: it had 420000 ms under the limit millis of 'task:t1'."
    assert budget(house).spent.millis == 7 * MINUTE
    assert budget(house).reserved == NOTHING


def test_the_agent_reads_why_it_was_stopped_and_can_react() -> None:
    house = limited(30)
    house.start(ANN)
    ring(house).release(ANN)
    assert house.codes() == ["out_of_time"]
    assert house.todo(ANN) == ["converse"]
    assert "was stopped" in house.texts(ANN)[0]
    assert house.start(ANN).reserved.millis == 10 * MINUTE


def test_an_effect_that_cannot_be_taken_back_is_in_doubt_at_the_end_of_its_time() -> None:
    house = House.furnished(limits=Limits(millis=MINUTE)).queue(ANN, tool("shell", {}), skill("merge"))
    house.start(ANN, "effectful")
    ring(house).release(ANN)
    assert house.ended("ann#1").state == "uncertain"
    assert "the limit millis of 'task:t1'" in house.ended("ann#1").error
    assert house.todo(ANN) == ["merge"]


def test_a_result_that_comes_just_then_is_kept_with_what_it_asks_for() -> None:
    house = limited(5)
    house.start(ANN)
    ring(house).later(900).finish(ANN, i.PostNote(task_id=T1, content="done"), result={"text": "paid"})
    assert house.archived(Step)[-1].result == {"text": "paid"}
    assert len(house.archived(Note)) == 1
    assert budget(house).spent.millis == 5 * MINUTE, "what it took to end it is no working time"


def test_whoever_waited_for_the_answer_is_let_go() -> None:
    house = House.furnished()
    waiting = house.ask_agent(BOB, ANN)[0]
    house.do(i.SetLimits(budget_id=TASK, limits=Limits(millis=MINUTE // 2)))
    house.start(ANN)
    ring(house).release(ANN)
    assert house.released(waiting) == "unanswered"


def test_a_step_that_is_out_of_time_when_the_process_ends_is_over() -> None:
    house = limited(5)
    house.start(ANN)
    ring(house).do(i.Recover(epoch=1, owner="next"), by=SYSTEM)
    assert house.ended("ann#1").state == "failed"


def test_cancelling_overrules_the_end_of_the_time() -> None:
    house = limited(5)
    house.start(ANN)
    ring(house).do(i.CancelTask(task_id=T1)).release(ANN)
    assert house.ended("ann#1").state == "cancelled"


def test_the_clock_of_a_step_is_the_houses_alone() -> None:
    house = limited(5)
    house.start(ANN)
    for by in (ANN, DOOR, SYSTEM):
        house.refused("unknown_timer", i.CancelTimer(timer_id=CLOCK), by=by)
    house.refused("too_early", i.FireTimer(timer_id=CLOCK), by=SYSTEM)


def test_a_clock_that_rings_while_its_step_is_being_ended_does_nothing() -> None:
    house = limited(5)
    house.start(ANN)
    house.do(i.PauseTask(task_id=T1, now=True))
    ring(house)
    assert house.happened(StepCancelling) == []
    house.later(MINUTE).release(ANN)
    assert house.state.steps[StepId("ann#1")].state == "init"
    assert budget(house).spent.millis == 5 * MINUTE


def test_a_limit_that_was_lifted_meanwhile_ends_nothing() -> None:
    house = limited(5)
    house.start(ANN)
    house.do(i.SetLimits(budget_id=TASK, limits=UNLIMITED))
    ring(house)
    assert house.running(ANN).state == "running"
    house.finish(ANN)


def test_a_limit_that_is_lifted_while_the_effect_is_being_ended_has_no_name_any_more() -> None:
    house = limited(5)
    house.start(ANN)
    ring(house).do(i.SetLimits(budget_id=TASK, limits=UNLIMITED)).release(ANN)
    assert house.ended("ann#1").error == "Its working time is over: it had 300000 ms."


# ---------------------------------------------------------------------------------------------- what counts


@pytest.mark.parametrize("way", ["finish", "fail", "release", "pause", "cancel", "crash", "fork"])
def test_the_clock_goes_with_the_attempt(way: str) -> None:
    house = limited(20)
    house.start(ANN)
    house.later(MINUTE)
    match way:
        case "finish":
            house.finish(ANN)
        case "fail":
            house.finish(ANN, outcome="failed")
        case "release":
            house.release(ANN)
        case "pause":
            house.do(i.PauseTask(task_id=T1, now=True)).release(ANN)
        case "cancel":
            house.do(i.CancelTask(task_id=T1)).release(ANN)
        case "crash":
            house.do(i.Recover(epoch=1, owner="next"), by=SYSTEM)
        case _:
            house.do(i.ForkTeam(team_id=TeamId("fork"), origin=ForkOrigin(team_id=TeamId("team"), version=9)))
    assert not house.state.timers
    assert len([event for event in house.log if isinstance(event, TimerCancelled)]) == 1


@pytest.mark.parametrize(("crash", "counts"), [(True, 0), (False, MINUTE)])
def test_only_what_was_worked_counts_and_the_next_attempt_reserves_anew(crash: bool, counts: int) -> None:
    house = limited(5)
    house.start(ANN)
    house.later(MINUTE)
    if crash:
        house.do(i.Recover(epoch=1, owner="next"), by=SYSTEM)
    else:
        house.release(ANN)
    assert budget(house).spent.millis == counts
    step = house.later(MINUTE).start(ANN)
    assert (step.attempt, step.reserved.millis) == (2, 5 * MINUTE - counts)
    assert house.happened(TimerSet)[0].timer.due == house.now + step.reserved.millis


def test_waiting_for_a_person_or_an_answer_is_no_working_time() -> None:
    house = limited(5, ANN, BOB)
    ask = StepTerms(effect="model", verdict="ask", digest="d")
    house.start(ANN, terms=ask)
    assert not house.state.timers
    house.later(90 * MINUTE).answer(ANN).start(ANN, terms=ask)
    house.later(MINUTE).finish(
        ANN, i.SendMessage(task_id=T1, receiver=(CY,), message="?", need_reply=True, waiting=True, timeout=99 * MINUTE)
    )
    house.later(90 * MINUTE)
    assert budget(house).spent.millis == MINUTE
    assert house.start(BOB).reserved.millis == 4 * MINUTE


def test_the_working_time_of_a_part_is_the_wholes_too() -> None:
    house = limited(5, BOSS)
    house.run(BOSS, i.AddTask(name="part", intention="x", manager=BOSS, group=(ANN,))).queue(ANN, task=T2)
    assert house.start(ANN).reserved.millis == 5 * MINUTE
    ring(house).release(ANN)
    assert "'task:t1'" in house.ended("ann#1").error
    assert house.state.threads[thread(ANN, T2)].notices


def test_a_step_that_ran_before_the_limit_was_set_ends_by_itself_and_counts_then() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(i.SetLimits(budget_id=TASK, limits=Limits(millis=MINUTE)))
    assert not house.state.timers
    house.later(2 * MINUTE).finish(ANN)
    assert budget(house).spent.millis == 2 * MINUTE
