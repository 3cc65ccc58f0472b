"""Steps as they are remembered."""

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import StepId
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import ModifyStep
from greenroom.core.state.step import Step, StepEnded, StepQueued, rebuild_step
from tests.core.house import ANN, House, skill, tool


def ends_of(house: House, name: str) -> tuple[StepQueued, StepEnded, int]:
    begin = next(one for one in house.log if isinstance(one, StepQueued) and one.step_id == name)
    end = house.ended(name)
    return begin, end, house.log.index(end) + 1


def test_an_ended_step_is_remembered_from_two_events_of_the_log() -> None:
    house = House.furnished().queue(ANN, skill("merge", "put it together"))
    house.start(ANN)
    house.release(ANN).start(ANN)
    house.later(5).finish(ANN, result={"text": "so"}, spent=Amounts(tokens=3))
    (archived,) = house.archived(Step)
    found = rebuild_step(*ends_of(house, "ann#1"))
    assert (found.attempt, found.state, found.result, found.spent.tokens) == (2, "finished", {"text": "so"}, 3)
    assert found == evolve(archived, terms=None, started_at=None)


def test_a_changed_step_is_remembered_as_what_it_became() -> None:
    house = House.furnished().queue(ANN, tool("shell"))
    house.do(ModifyStep(step_id=StepId("ann#1"), work=tool("shell", {"command": "ls"})), by=ANN).run(ANN)
    assert rebuild_step(*ends_of(house, "ann#1")).work.instruction_content == {"command": "ls"}


def test_a_step_has_its_number_among_its_agents_steps() -> None:
    house = House.furnished().queue(ANN, skill(), skill())
    assert [house.state.steps[name].ordinal for name in house.agent(ANN).todo] == [1, 2]
