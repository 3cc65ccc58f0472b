"""Budgets: reserved before, settled after; a hard cap is never exceeded, and whoever cannot reserve waits."""

import pytest

from greenroom.core.base.amounts import NOTHING, UNLIMITED, Amounts, Limits
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, BudgetId, StepId, TeamId, agent_budget, task_budget
from greenroom.core.rules import intents as i
from greenroom.core.state.budget import Budget, LimitReached
from greenroom.core.state.step import StepTerms
from tests.core.house import ANN, BOB, BOSS, CY, HUE, T1, T2, House, reply, skill, thread

TASK = task_budget(T1)


def costs(tokens: int, *, money: int = 0, priced: bool = True) -> StepTerms:
    return StepTerms(effect="model", needs=Amounts(tokens=tokens, money=money), priced=priced, model="x:y")


def budget(house: House, name: BudgetId = TASK) -> Budget:
    return house.state.budgets[name]


@pytest.mark.parametrize("name", [TASK, TEAM_BUDGET, agent_budget(ANN)])
def test_a_start_reserves_and_a_finish_settles_what_was_really_spent(name: BudgetId) -> None:
    house = House.furnished().do(i.SetLimits(budget_id=name, limits=Limits(tokens=100, steps=5))).queue(ANN)
    house.start(ANN, terms=costs(40))
    assert budget(house, name).reserved == Amounts(tokens=40, steps=1)
    house.later(250).finish(ANN, spent=Amounts(tokens=25))
    assert budget(house, name).reserved == NOTHING
    assert budget(house, name).spent == Amounts(tokens=25, steps=1, millis=250)


def test_without_limits_nothing_is_set_aside_and_spending_is_still_counted() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, terms=costs(40))
    assert budget(house).reserved == NOTHING
    house.finish(ANN, spent=Amounts(tokens=30))
    assert budget(house).spent.tokens == 30


def test_who_finds_no_room_now_waits_and_starts_when_room_comes() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN).queue(BOB)
    house.start(ANN, terms=costs(60))
    assert house.start(BOB, terms=costs(60)).state == "awaiting_budget"
    assert house.next(BOB) is None
    assert dict(house.state.awaiting_budget) == {"bob#1": TASK}
    house.finish(ANN, spent=Amounts(tokens=40))
    assert house.next(BOB) == "bob#1"
    assert house.start(BOB, terms=costs(60)).state == "running"
    assert not house.state.awaiting_budget


def test_who_finds_no_room_after_all_waits_on() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN).queue(BOB).queue(CY)
    house.start(ANN, terms=costs(60))
    house.start(BOB, terms=costs(60))
    house.start(CY, terms=costs(10))
    house.finish(CY, spent=Amounts(tokens=1))
    assert house.next(BOB) is None


def test_a_step_that_waits_for_room_does_not_hold_up_other_conversations() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN).queue(BOB, skill(), skill("merge"))
    house.do(i.AddTask(name="side", intention="x", manager=BOSS, group=(BOB,))).queue(BOB, task=T2)
    house.start(ANN, terms=costs(60))
    house.start(BOB, terms=costs(60))
    assert house.next(BOB) == "bob#3"


def test_more_than_is_left_pauses_the_task_and_says_which_limit() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN)
    assert house.start(ANN, terms=costs(101)).state == "init"
    (reached,) = house.happened(LimitReached)
    assert (reached.budget_id, reached.limit, reached.step_id) == (TASK, "tokens", "ann#1")
    assert house.task().paused == "limit: task:t1 tokens"
    assert house.next(ANN) is None


def test_a_raised_limit_lets_the_task_go_on() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN)
    house.start(ANN, terms=costs(101))
    house.do(i.SetLimits(budget_id=TASK, limits=Limits(tokens=200)), i.ResumeTask(task_id=T1))
    assert house.start(ANN, terms=costs(101)).state == "running"


def test_the_teams_limit_pauses_the_team() -> None:
    house = House.furnished(team_limits=Limits(steps=1)).queue(ANN, skill(), skill()).run(ANN)
    house.start(ANN)
    assert house.state.team.paused == "limit: team steps"
    house.do(i.SetLimits(budget_id=TEAM_BUDGET, limits=Limits(steps=2)), i.ResumeTeam())
    assert house.start(ANN).state == "running"


def test_an_agents_own_limit_pauses_the_task_it_works_in() -> None:
    house = House.furnished().do(i.SetLimits(budget_id=agent_budget(ANN), limits=Limits(steps=1)))
    house.queue(ANN, skill(), skill()).run(ANN)
    house.start(ANN)
    assert house.task().paused == "limit: agent:ann steps"


def test_a_hungry_step_that_can_never_fit_reports_it_once_it_may_try() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN).queue(BOB)
    house.start(ANN, terms=costs(60))
    house.start(BOB, terms=costs(60))
    house.finish(ANN, spent=Amounts(tokens=60))
    assert house.next(BOB) == "bob#1"
    house.start(BOB, terms=costs(60))
    assert house.task().paused == "limit: task:t1 tokens"
    assert house.state.steps[StepId("bob#1")].state == "awaiting_budget"


def test_a_model_without_a_price_does_not_run_under_a_money_cap() -> None:
    house = House.furnished(limits=Limits(money=100)).queue(ANN)
    house.start(ANN, terms=costs(1, priced=False))
    assert house.agent(ANN).running is None
    assert "no price is known for 'x:y'" in (house.task().paused or "")


def test_a_model_without_a_price_runs_where_money_has_no_cap() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN)
    assert house.start(ANN, terms=costs(1, priced=False)).state == "running"


@pytest.mark.parametrize("cap", [10, 25, 39])
def test_in_parallel_the_cap_is_never_exceeded(cap: int) -> None:
    house = House.furnished(limits=Limits(money=cap), team_limits=Limits(money=cap + 9))
    agents = (ANN, BOB, CY, BOSS)
    for agent in agents:
        house.queue(agent, *[skill()] * 3)
    for _ in range(12):
        for agent in agents:
            if house.next(agent) is not None:
                house.start(agent, terms=costs(1, money=10))
        for agent in agents:
            if house.agent(agent).running is not None:
                house.finish(agent, spent=Amounts(tokens=1, money=8))
    assert budget(house).spent.money == max(0, (cap - 10) // 8 + 1) * 8
    assert house.task().paused == "limit: task:t1 money"


def test_a_limit_set_while_a_step_runs_counts_what_it_reserved() -> None:
    house = House.furnished().queue(ANN).queue(BOB)
    house.start(ANN, terms=costs(60))
    for name in (TASK, TEAM_BUDGET, agent_budget(ANN)):
        house.do(i.SetLimits(budget_id=name, limits=Limits(tokens=100)))
        assert budget(house, name).reserved.tokens == 60
    assert house.start(BOB, terms=costs(60)).state == "awaiting_budget"
    house.do(i.SetLimits(budget_id=TASK, limits=UNLIMITED))
    assert budget(house).reserved == NOTHING


def test_what_is_given_up_counts_as_spent() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN)
    house.start(ANN, terms=costs(60))
    house.later(7).release(ANN)
    assert budget(house).spent == Amounts(tokens=60, steps=1, millis=7)
    assert budget(house).reserved == NOTHING


def test_a_step_that_never_ran_costs_nothing() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN).queue(BOB)
    house.start(ANN, terms=costs(60))
    house.start(BOB, terms=costs(60))
    house.do(i.CancelTask(task_id=T1))
    assert house.ended("bob#1").spent == NOTHING
    assert not house.state.awaiting_budget


def test_only_a_person_sets_limits_and_only_of_what_there_is() -> None:
    house = House.furnished()
    house.refused("not_manager", i.SetLimits(budget_id=TEAM_BUDGET, limits=Limits(money=1)), by=BOSS)
    for name in ("team:x", "task:t9", "agent:ghost", "cellar", "task:ann"):
        house.refused("unknown_budget", i.SetLimits(budget_id=BudgetId(name), limits=Limits(money=1)))


def hello(*receivers: AgentId) -> i.SendMessage:
    return i.SendMessage(task_id=T1, receiver=receivers, message="hello")


@pytest.mark.parametrize("name", [TASK, TEAM_BUDGET, agent_budget(ANN)])
def test_an_endless_exchange_ends_at_the_limit_of_hops(name: BudgetId) -> None:
    house = House.furnished().do(i.SetLimits(budget_id=name, limits=Limits(hops=2)))
    house.queue(ANN, skill(), skill(), skill()).run(ANN, hello(BOB)).run(ANN, hello(BOB))
    house.run(ANN, hello(BOB, CY))
    assert len(house.agent(BOB).todo) == 2
    assert house.todo(CY) == []
    assert budget(house, name).spent.hops == 2
    assert (house.task().paused or house.state.team.paused) == f"limit: {name} hops"


def test_the_sender_reads_that_its_message_was_not_sent() -> None:
    house = House.furnished(limits=Limits(hops=0)).queue(ANN).run(ANN, hello(BOB))
    assert house.codes() == ["limit_reached"]
    assert "No message was sent to bob" in house.state.threads[thread(ANN, T1)].notices[0]


def test_a_person_at_the_limit_of_hops_is_told_so_at_once() -> None:
    house = House.furnished(limits=Limits(hops=0))
    house.refused("limit_reached", hello(ANN))
    assert house.task().paused is None


def test_an_answer_at_the_limit_of_hops_lets_its_waiter_go() -> None:
    house = House.furnished(limits=Limits(hops=1))
    waiting = house.ask_agent(BOB, ANN)[0]
    house.run(ANN, reply(waiting, BOB))
    assert house.released(waiting) == "unanswered"


def test_tasks_nest_only_as_deep_as_the_team_allows() -> None:
    house = House.furnished(team_limits=Limits(depth=1)).queue(BOSS)
    child = i.AddTask(name="child", intention="x", manager=BOSS)
    house.run(BOSS, child)
    assert (house.task(T2).parent, house.task(T2).depth) == (T1, 1)
    house.queue(BOSS, task=T2).run(BOSS, child)
    assert house.codes() == ["too_deep"]


def test_a_task_of_a_person_is_not_nested() -> None:
    house = House.furnished(team_limits=Limits(depth=0)).do(i.AddTask(name="x", intention="x", manager=BOSS), by=HUE)
    assert (house.task(T2).parent, house.task(T2).depth) == (None, 0)


def test_starting_asks_the_budget_with_the_terms_of_this_start() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN).queue(BOB)
    house.start(ANN, terms=costs(60))
    house.start(BOB, terms=costs(60))
    house.do(i.QueueSteps(agent_id=CY, works=(skill(),), task_id=T1))
    assert house.start(CY, terms=costs(40)).state == "running"
    house.refused("not_next", i.StartStep(step_id=StepId("bob#1"), terms=costs(60), work=skill()), by=BOB)


@pytest.mark.parametrize("name", ["money", "tokens", "steps", "millis", "hops", "depth"])
def test_a_limit_below_zero_is_none(name: str) -> None:
    limits = Limits(**{name: -1})
    house = House.furnished()
    house.refused("bad_limits", i.SetLimits(budget_id=TASK, limits=limits))
    house.refused("bad_limits", i.AddTask(name="x", intention="x", manager=BOSS, limits=limits))
    House().refused("bad_limits", i.CreateTeam(team_id=TeamId("x"), name="x", limits=limits))


def test_nobody_earns_by_claiming_to_have_spent_less_than_nothing() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN)
    house.start(ANN, terms=costs(40))
    house.finish(ANN, spent=Amounts(tokens=-1000))
    assert budget(house).spent == Amounts(steps=1)


def test_a_part_of_a_task_spends_from_the_whole() -> None:
    house = House.furnished(limits=Limits(tokens=100, hops=1)).queue(BOSS)
    house.run(BOSS, i.AddTask(name="part", intention="x", manager=BOSS, group=(ANN, BOB))).queue(ANN, task=T2)
    house.start(ANN, terms=costs(60))
    assert budget(house).reserved.tokens == 60
    house.queue(CY)
    assert house.start(CY, terms=costs(60)).state == "awaiting_budget"
    house.finish(ANN, i.SendMessage(task_id=T2, receiver=(BOB,), message="x"), spent=Amounts(tokens=50))
    assert (budget(house).spent.tokens, budget(house).spent.hops) == (50, 1)
    house.refused("limit_reached", i.SendMessage(task_id=T2, receiver=(BOB,), message="x"))
