"""The fold: what is true after an event. That replay equals live is an invariant of every decision (invariants.py)."""

from greenroom.core.rules.intents import PauseTask, PauseTeam
from greenroom.core.state.archive import build_archive_row
from greenroom.core.state.events import EVENT_TYPES
from greenroom.core.state.reducer import REDUCERS, reduce
from greenroom.core.state.team_state import EMPTY_STATE, sort_rows
from tests.core.house import ANN, T1, House
from tests.core.invariants import fold_all


def test_every_event_has_a_reducer() -> None:
    assert set(REDUCERS) == set(EVENT_TYPES.values())


def test_the_past_does_not_change() -> None:
    house = House.furnished()
    before, copy = house.state, fold_all(EMPTY_STATE, house.log)
    house.do(PauseTeam(), PauseTask(task_id=T1)).queue(ANN)
    assert before == copy
    assert before.team.paused is None


def test_the_archive_is_made_from_the_log_alone() -> None:
    house = House.furnished().queue(ANN).run(ANN).do(PauseTask(task_id=T1))
    rows, state = [], EMPTY_STATE
    for event in house.log:
        if (row := build_archive_row(state, event)) is not None:
            rows.append(row.record)
        state = reduce(state, event)
    assert rows == house.archive


def test_rows_come_by_their_key_whatever_the_hash_of_the_day() -> None:
    names = [agent.agent_id for agent in sort_rows(House.furnished().state.agents)]
    assert names == sorted(names)
