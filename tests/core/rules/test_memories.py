"""The short-term memory of a team: who writes in it, what it holds, and what its ids are."""

import re
from random import Random

import pytest
from hypothesis import given

from greenroom.core.base.ids import AgentId, MemoryId, TeamId, memory_id
from greenroom.core.rules import knowledge
from greenroom.core.rules.intents import ClearMemory, FinishTask, ForkTeam, SaveMemory
from greenroom.core.state.memory import Memory, MemorySaved
from greenroom.core.state.team import Origin
from tests.core.house import ANN, BOB, T1, House
from tests.core.test_properties import SAMPLE, SEEDS, busy_house

NOWHERE = MemoryId("20251101_072947_388226")


def saved(house: House) -> list[Memory]:
    """All memories, oldest first."""
    return [memory for _, memory in sorted(house.world.memories.items())]


@pytest.mark.req("AG-82", "AG-86")
def test_what_one_agent_saves_the_team_remembers_with_all_fields() -> None:
    house = House.furnished().queue(ANN).run(ANN, SaveMemory(content="slow API", tags=("api",)))
    (memory,) = saved(house)
    assert (memory.type, memory.content, memory.tags, memory.by) == ("short_term", "slow API", ("api",), ANN)
    assert (memory.created_at, memory.updated_at, memory.merged_from) == (house.now, None, ())


@pytest.mark.req("AG-82")
def test_memories_outlive_their_task_and_a_fork_has_its_own() -> None:
    house = House.furnished().do(SaveMemory(content="kept"), by=ANN).do(FinishTask(task_id=T1))
    assert [one.content for one in saved(house)] == ["kept"]
    before = house.world
    house.do(ForkTeam(team_id=TeamId("fork"), origin=Origin(team_id=TeamId("team"), version=house.world.version)))
    house.do(SaveMemory(content="only here"), by=ANN)
    assert [one.content for one in saved(house)] == ["kept", "only here"]
    assert len(before.memories) == 1


@pytest.mark.req("AG-87")
def test_an_id_is_the_time_to_the_microsecond() -> None:
    assert memory_id(1_761_982_187_388, "") == "20251101_072947_388000"
    assert memory_id(1_761_982_187_388, "20251101_072947_388000") == "20251101_072947_388001"
    assert memory_id(0, "20251231_235959_999999") == "20260101_000000_000000"


@pytest.mark.req("AG-87")
@given(seed=SEEDS)
@SAMPLE
def test_no_two_memories_ever_have_the_same_id(seed: int) -> None:
    house = busy_house(Random(seed), 60)
    for number in range(5):
        house.later(-1000).do(SaveMemory(content=f"m{number}"), by="door")
        house.do(ClearMemory(memory_ids=(MemoryId(house.world.team.last_memory),)), by="door")
    new = [e.memory.memory_id for e in house.log if isinstance(e, MemorySaved) and e.memory.updated_at is None]
    assert len(new) == len(set(new))
    assert new == sorted(new)
    assert all(re.fullmatch(r"\d{8}_\d{6}_\d{6}", one) for one in new)


@pytest.mark.req("AG-86")
def test_a_memory_gets_another_content_and_says_when() -> None:
    house = House.furnished().do(SaveMemory(content="old", tags=("a",)), by=ANN)
    (old,) = saved(house)
    house.later(9).do(SaveMemory(content="new", memory_id=old.memory_id), by=BOB)
    (new,) = saved(house)
    assert (new.memory_id, new.content, new.tags, new.by) == (old.memory_id, "new", (), ANN)
    assert (new.created_at, new.updated_at) == (old.created_at, old.created_at + 9)


@pytest.mark.req("AG-86")
def test_merged_memories_make_place_for_the_one_that_names_them() -> None:
    house = House.furnished().do(SaveMemory(content="one"), SaveMemory(content="two"), by=ANN)
    names = tuple(one.memory_id for one in saved(house))
    house.do(SaveMemory(content="both", merged_from=(*names, names[0])), by=ANN)
    (both,) = saved(house)
    assert (both.content, both.merged_from) == ("both", names)
    house.do(SaveMemory(content="more"), by=ANN)
    more = saved(house)[-1].memory_id
    house.do(SaveMemory(content="all", memory_id=both.memory_id, merged_from=(both.memory_id, more)), by=ANN)
    (whole,) = saved(house)
    assert whole.merged_from == (*names, more)


@pytest.mark.parametrize(
    ("code", "intent"),
    [
        ("empty_memory", SaveMemory(content=" \n")),
        ("memory_too_long", SaveMemory(content="x" * (knowledge.LONGEST_MEMORY + 1))),
        ("bad_tags", SaveMemory(content="x", tags=(" ",))),
        ("bad_tags", SaveMemory(content="x", tags=("x" * (knowledge.TAG + 1),))),
        ("bad_tags", SaveMemory(content="x", tags=tuple(f"t{number}" for number in range(knowledge.TAGS + 1)))),
        ("unknown_memory", SaveMemory(content="x", memory_id=NOWHERE)),
        ("unknown_memory", SaveMemory(content="x", merged_from=(NOWHERE,))),
        ("unknown_memory", ClearMemory(memory_ids=(NOWHERE,))),
        ("unknown_memory", ClearMemory(memory_ids=())),
    ],
)
def test_what_is_no_memory_is_refused(code: str, intent: SaveMemory | ClearMemory) -> None:
    House.furnished().refused(code, intent, by=ANN)


def test_nobody_from_outside_writes_in_it_but_a_person_does() -> None:
    house = House.furnished()
    house.refused("not_in_team", SaveMemory(content="x"), by=AgentId("ghost"))
    house.do(SaveMemory(content="x"))
    house.refused("not_in_team", ClearMemory(memory_ids=tuple(house.world.memories)), by=AgentId("ghost"))


def test_a_full_memory_says_what_to_do_and_can_still_be_tidied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "MOST_MEMORIES", 2)
    house = House.furnished().do(SaveMemory(content="one"), SaveMemory(content="two"), by=ANN)
    assert "Clear or merge some first" in str(house.refused("memory_full", SaveMemory(content="three"), by=ANN))
    first, second = sorted(house.world.memories)
    house.do(SaveMemory(content="still two", memory_id=first), by=ANN)
    house.do(SaveMemory(content="both", merged_from=(first, second)), by=ANN)
    assert len(house.world.memories) == 1


@pytest.mark.req("AG-88")
def test_what_is_cleared_is_gone_also_when_some_of_it_was_gone_before() -> None:
    house = House.furnished().do(SaveMemory(content="one"), SaveMemory(content="two"), by=ANN)
    first, second = sorted(house.world.memories)
    house.do(ClearMemory(memory_ids=(first,)), by=BOB)
    house.do(ClearMemory(memory_ids=(first, second)), by=ANN)
    assert not house.world.memories


def test_a_refused_memory_is_read_by_its_agent() -> None:
    house = House.furnished().queue(ANN).run(ANN, SaveMemory(content=""))
    assert house.codes() == ["empty_memory"]
