"""Memories are saved, found and cleared by type, by tag and by words; what cannot be done is said."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from greenroom.abilities.tools import memory
from greenroom.abilities.tools.memory import MemoryScopes, build_memory_tools
from greenroom.app.toolset.pipeline import ToolPipeline
from greenroom.core.base.ids import AgentId
from greenroom.policy.policy import build_rules_policy
from tests.abilities.tools.calling import Caller, caller

ANY = {"content": "The API is slow.", "tags": ["api", " search ", "API", ""]}
OTHER = {"content": "Tests run with pytest.", "tags": ["tests"]}


@pytest.fixture(name="ann")
async def _ann() -> AsyncIterator[Caller]:
    async with caller(build_memory_tools(MemoryScopes())) as found:
        yield found


async def ids(ann: Caller) -> list[str]:
    """The ids of all short-term memories, oldest first."""
    return sorted((await ann.runtime.state(ann.team)).memories)


@pytest.mark.req("MA-58", "AG-85")
async def test_what_is_saved_is_found_again_newest_first_with_its_fields(ann: Caller) -> None:
    said = await ann.output("save_memory", memories=[ANY, OTHER])
    assert said.splitlines() == ["Saved in short_term; tags: api, search.", "Saved in short_term; tags: tests."]
    found = await ann.output("retrieve_memory", memory_types=["short_term"])
    first, second = found.split("\n\n")
    assert re.match(r"\[\d{8}_\d{6}_\d{6}\] short_term · tags: tests · saved \d{4}-\d\d-\d\d .* by ann", first)
    assert first.endswith("\nTests run with pytest.")
    assert " · tags: api, search · saved " in second
    assert second.endswith("\nThe API is slow.")


@pytest.mark.req("MA-58", "AG-85")
@pytest.mark.parametrize(
    ("asked", "contents"),
    [
        ({"tags": ["API"]}, ["The API is slow."]),
        ({"tags": ["tests", "api"]}, ["Tests run with pytest.", "The API is slow."]),
        ({"words": "api SLOW"}, ["The API is slow."]),
        ({"words": "pytest", "tags": ["api"]}, []),
        ({"limit": 1}, ["Tests run with pytest."]),
        ({"memory_types": ["short_term"], "words": "tests"}, ["Tests run with pytest."]),
        ({"tags": ["ap"]}, []),
        ({"words": "api pytest"}, []),
    ],
)
async def test_tags_words_and_a_limit_choose(ann: Caller, asked: dict[str, object], contents: list[str]) -> None:
    await ann.output("save_memory", memories=[ANY, OTHER])
    found = await ann.output("retrieve_memory", **asked)
    assert [one for one in ("Tests run with pytest.", "The API is slow.") if one in found] == contents


async def test_when_nothing_fits_the_tags_that_there_are_are_named(ann: Caller) -> None:
    assert await ann.output("retrieve_memory", tags=["api"]) == "Nothing is remembered yet."
    await ann.output("save_memory", memories=[{"content": "plain"}])
    assert await ann.output("retrieve_memory", tags=["x"]) == "No memory fits. None has a tag."
    await ann.output("save_memory", memories=[ANY, {"content": "more", "tags": ["api"]}])
    found = await ann.output("retrieve_memory", words="nowhere")
    assert found == "No memory fits. There are the tags: api (2), search (1)."


async def test_however_many_are_asked_for_there_is_a_most(ann: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_SHOWN", 3)
    await ann.output("save_memory", memories=[{"content": f"m{number}", "tags": [f"t{number}"]} for number in range(5)])
    found = await ann.output("retrieve_memory", limit=1_000)
    assert "More of them fit: ask" in found
    assert found.count("· tags:") == 3


@pytest.mark.req("AG-86")
async def test_a_memory_is_corrected_and_others_are_merged(ann: Caller) -> None:
    await ann.output("save_memory", memories=[ANY, OTHER])
    first, second = await ids(ann)
    said = await ann.output("save_memory", memories=[{"content": "Fast now.", "id": first, "tags": ["api"]}])
    assert said == f"Replaced {first} in short_term; tags: api."
    assert ", changed " in await ann.output("retrieve_memory", words="fast")
    await ann.output("save_memory", memories=[{"content": "All of it.", "merged_from": [first, second]}])
    found = await ann.output("retrieve_memory")
    assert f"merged from {first}, {second}" in found
    assert "Fast now." not in found


@pytest.mark.req("MA-58", "AG-88")
async def test_memories_are_cleared_by_tag_and_by_id(ann: Caller) -> None:
    await ann.output("save_memory", memories=[ANY, OTHER, {"content": "third"}])
    assert await ann.output("clear_memory", tags=["TESTS"]) == "Cleared 1 memory of short_term."
    third = (await ids(ann))[-1]
    assert await ann.output("clear_memory", ids=[third, "x"]) == "Cleared 1 memory of short_term. Not there: x."
    assert "No memory fits, so none is cleared." in await ann.output("clear_memory", ids=[third])
    assert len(await ids(ann)) == 1


@pytest.mark.req("AG-88")
async def test_everything_is_cleared_only_when_asked_for_in_so_many_words(ann: Caller) -> None:
    await ann.output("save_memory", memories=[ANY, OTHER])
    for asked in ({}, {"memory_types": ["short_term"]}, {"tags": [" "]}):
        assert "say all: true. Nothing was cleared" in await ann.error("clear_memory", **asked)
    assert len(await ids(ann)) == 2
    assert await ann.output("clear_memory", all=True) == "Cleared 2 memories of short_term."
    assert await ids(ann) == []


@pytest.mark.req("AG-85", "AG-88")
async def test_a_type_that_no_store_has_is_answered_with_those_that_there_are(ann: Caller) -> None:
    wanted = [{"content": "x", "memory_type": "global_long_term"}]
    said = await ann.error("save_memory", memories=wanted)
    assert said == "'global_long_term' is not set up here. There is: short_term."
    assert "'shortterm' is not a type of memory" in await ann.error("retrieve_memory", memory_types=["shortterm"])
    assert "There is: short_term." in await ann.error("clear_memory", memory_types=["agent"], all=True)


@pytest.mark.parametrize(
    ("memories", "why"),
    [
        ([{"content": "  "}], "A memory without content is none"),
        ([{"content": "x", "id": "20200101_000000_000000"}], "There is no memory '20200101_000000_000000'"),
        ([ANY, {"content": "x" * 20_001}], "20,000 are allowed"),
        ([{"content": "x", "tags": ["y" * 61]}], "Use a few short words"),
        ([], "Expected `array` of length >= 1"),
        ([{"contents": "x"}], "unknown field `contents`"),
    ],
)
async def test_what_cannot_be_saved_says_why_and_nothing_is(ann: Caller, memories: list[object], why: str) -> None:
    assert why in await ann.error("save_memory", memories=memories)
    assert await ids(ann) == []


@pytest.mark.req("MA-59")
def test_agents_are_told_to_save_and_tidy_in_time_and_to_keep_findings() -> None:
    save, find, clear = (tool.card for tool in build_memory_tools(MemoryScopes()))
    assert "before a task ends or the history is cleared" in save.spec.description
    assert "tidy up" in save.spec.description
    assert "keep what searches and web pages brought in it" in save.spec.description
    assert "when your history was cleared" in find.spec.description
    assert "tidy up before a task ends" in clear.spec.description
    for card in (save, find, clear):
        assert "Not for" in card.spec.description
        assert "Example: {" in card.spec.description
        assert (card.group, card.effect) == ("memory", "pure")


async def test_nobody_is_asked_before_something_is_remembered() -> None:
    policy = build_rules_policy({}, "/work")
    for tool in build_memory_tools(MemoryScopes()):
        ruling = policy.decide(AgentId("ann"), tool.card, tool.targets({}))
        assert ruling.verdict == "allow"
    async with caller([ToolPipeline(tool, policy) for tool in build_memory_tools(MemoryScopes())]) as ann:
        assert "Saved" in await ann.output("save_memory", memories=[ANY])
        assert "slow" in await ann.output("retrieve_memory")
