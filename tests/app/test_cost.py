"""What teams have cost: sums that are exact, and honest about what nobody knows."""

from greenroom.app.cost import TeamCosts, group_costs, sum_costs
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import StepId, TeamId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.state.step import StepEnded, StepInterrupted, StepStarted, StepTerms
from greenroom.core.state.team import ForkOrigin, TeamForked

RESERVED = Amounts(tokens=5000, money=900, steps=1)


def begun(step: str, model: str = "openai:big", *, priced: bool = True) -> StepStarted:
    terms = StepTerms(effect="model", model=model, priced=priced)
    return StepStarted(at=1, step_id=StepId(step), attempt=1, terms=terms, reserved=RESERVED)


def ended(step: str, result: Data | None, spent: Amounts) -> StepEnded:
    thread = ThreadId(f"{step}@t1")
    return StepEnded(
        at=2, step_id=StepId(step), thread_id=thread, attempt=1, state="finished", result=result, spent=spent
    )


def cut_off(step: str, spent: Amounts) -> StepInterrupted:
    return StepInterrupted(at=2, step_id=StepId(step), attempt=1, why="the process ended", spent=spent)


def account(*events: StepStarted | StepEnded | StepInterrupted | TeamForked, team: str = "one") -> TeamCosts:
    found = TeamCosts(TeamId(team))
    for event in events:
        found.add_event(event)
    return found


def answered(step: str, money: int | None = 30, by: str = "") -> StepEnded:
    usage: dict[str, object] = {"input": 90, "output": 10, **({} if money is None else {"money": money})}
    result = {"text": "hi", "usage": usage, **({"by": by} if by else {})}
    return ended(step, result, Amounts(tokens=100, money=money or 0, steps=1))


def test_calls_are_summed_by_run_agent_and_model() -> None:
    one = account(begun("ann#1"), answered("ann#1"), begun("bob#1", "openai:small"), answered("bob#1", 5))
    two = account(begun("ann#1"), answered("ann#1"), team="two")
    assert [(name, row.spent.money) for name, row in group_costs([one, two], "run").items()] == [
        ("one", 35),
        ("two", 30),
    ]
    assert [(name, row.calls) for name, row in group_costs([one, two], "agent").items()] == [("ann", 2), ("bob", 1)]
    assert [(name, row.spent.tokens) for name, row in group_costs([one, two], "model").items()] == [
        ("openai:big", 200),
        ("openai:small", 100),
    ]
    assert sum_costs(group_costs([one, two], "run").values()).spent.money == 65


def test_in_a_group_the_one_who_answered_is_charged() -> None:
    found = account(begun("ann#1", "my-group"), answered("ann#1", by="groq:spare"))
    assert list(group_costs([found], "model")) == ["groq:spare"]


def test_an_unknown_price_is_unknown_and_not_nothing() -> None:
    found = account(begun("ann#1", priced=False), answered("ann#1", None), begun("ann#2"), answered("ann#2"))
    assert group_costs([found], "model")["openai:big"].unpriced == 1


def test_an_interrupted_call_counts_at_its_reservation_and_is_said() -> None:
    found = account(begun("ann#1"), cut_off("ann#1", RESERVED), begun("ann#1"), answered("ann#1"))
    sum_ = sum_costs(call.sum for call in found.calls)
    assert (sum_.calls, sum_.reserved, sum_.spent.money) == (2, 1, 930)


def test_a_copy_does_not_pay_for_what_its_origin_paid() -> None:
    fork = TeamForked(at=3, team_id=TeamId("two"), origin=ForkOrigin(team_id=TeamId("one"), version=2))
    found = account(begun("ann#1"), answered("ann#1"), begun("ann#2"), fork, begun("ann#2"), answered("ann#2"))
    assert sum_costs(call.sum for call in found.calls).calls == 1


def test_tools_are_no_calls() -> None:
    tool = StepStarted(at=1, step_id=StepId("ann#1"), attempt=1, terms=StepTerms(effect="pure"), reserved=Amounts())
    assert account(tool, ended("ann#1", {"output": "x"}, Amounts(steps=1))).calls == []
