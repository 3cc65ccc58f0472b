"""Old logs always load: one golden log per schema version, kept for ever, each with what it says."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from greenroom.core.ports.codec import SCHEMA_VERSION, decode_event, decode_state, encode_state
from greenroom.core.ports.log import StoredEvent
from greenroom.core.state.events import EVENT_TYPES, Event
from greenroom.core.state.team_state import EMPTY_STATE
from tests.core.golden.scenario import projection, story
from tests.core.invariants import fold_all

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = range(1, SCHEMA_VERSION + 1)


def events(version: int) -> Iterator[Event]:
    with (GOLDEN / f"log-v{version}.jsonl").open(encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            row = json.loads(line)
            data = json.dumps(row["data"]).encode()
            yield decode_event(StoredEvent(version=row["version"], at=row["at"], type=row["type"], data=data))


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_log_always_loads_and_says_what_it_always_said(version: int) -> None:
    header = (GOLDEN / f"log-v{version}.jsonl").read_text("utf-8").partition("\n")[0]
    assert json.loads(header)["schema"] == version
    wanted = json.loads((GOLDEN / f"projection-v{version}.json").read_text("utf-8"))
    assert json.loads(json.dumps(projection(events(version)))) == wanted


@pytest.mark.parametrize("version", VERSIONS)
def test_a_snapshot_of_an_old_log_is_the_same_world(version: int) -> None:
    state = fold_all(EMPTY_STATE, events(version))
    assert decode_state(encode_state(state)) == state


def test_every_event_type_occurs_in_the_newest_golden_log() -> None:
    counted = Counter(type(event).__name__ for event in events(SCHEMA_VERSION))
    assert set(EVENT_TYPES) - set(counted) == set()


def test_the_story_of_the_golden_log_still_works() -> None:
    assert {type(event).__name__ for event in story().log} == set(EVENT_TYPES)
