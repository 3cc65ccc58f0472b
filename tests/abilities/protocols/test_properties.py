"""Properties of every text: nothing runs that the model did not write, and written blocks parse."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.json import decode

from greenroom.abilities.protocols.parse_result import (
    BlockCall,
    BlockRejection,
    MultiBlockPolicy,
    NoBlock,
    ParsedReply,
    ProtocolName,
)
from greenroom.abilities.protocols.strict_json import MalformedJson, ParseError, repair
from greenroom.abilities.protocols.strict_json import decode as decode_strictly
from greenroom.abilities.protocols.text_calls import read, write
from greenroom.core.base.records import encode
from greenroom.core.ports.model import ToolCall
from tests.abilities.protocols.cases.around import GOOD, SHOWING, put
from tests.abilities.protocols.house import AGENTS, ALL, PURE, TOOLS
from tests.abilities.protocols.strategies import CALLS, odd, words, written

# Reaches no line that other tests do not, and to be measured takes it twice as long.
pytestmark = pytest.mark.no_cover

Written = tuple[ProtocolName, ToolCall]
enough = settings(max_examples=40, deadline=None)
many = settings(max_examples=80, deadline=None)


def reading(text: str, *, policy: MultiBlockPolicy = "reject", ended: bool | None = None) -> ParsedReply:
    return read(text, ALL, tools=TOOLS, agents=AGENTS, pure=PURE, policy=policy, ended=ended)


def run(text: str) -> ToolCall | None:
    found = reading(text)
    return found.call if isinstance(found, BlockCall) else None


def longer(mark: str, text: str) -> str:
    """A fence that nothing in this text closes."""
    return mark * max(3, 1 + max((len(run) for run in re.findall(f"{mark}+", text)), default=0))


@given(written)
@enough
def test_what_is_written_is_read_back(made: Written) -> None:
    found = reading(write(made[1], made[0]))
    assert isinstance(found, BlockCall), str(found)
    assert (found.call, found.protocol, found.repaired, found.notes) == (made[1], made[0], False, ())


@given(written, words, words)
@enough
def test_prose_around_a_block_changes_nothing_and_is_kept(made: Written, before: str, after: str) -> None:
    found = reading(f"{before}\n\n{write(made[1], made[0])}\n{after}")
    assert isinstance(found, BlockCall)
    assert found.call == made[1]
    assert found.said == f"{before}\n\n\n{after}".strip()


@given(written, st.data())
@enough
def test_the_beginning_of_a_block_is_never_run_as_something_else(made: Written, data: st.DataObject) -> None:
    whole = write(made[1], made[0])
    cut = data.draw(st.integers(0, len(whole)))
    assert run(whole[:cut]) in (None, made[1])


@given(written, st.data())
@enough
def test_a_reply_that_lost_its_middle_runs_nothing_that_needed_mending_and_has_effects(
    made: Written, data: st.DataObject
) -> None:
    whole = write(made[1], made[0])
    start = data.draw(st.integers(0, len(whole)))
    found = reading(whole[:start] + whole[start + data.draw(st.integers(1, 8)) :], ended=True)
    assert not isinstance(found, BlockCall) or not found.repaired or found.call.name in PURE


@given(written, words, st.sampled_from("`~"))
@enough
def test_a_block_in_a_fence_is_not_run(made: Written, prose: str, mark: str) -> None:
    block = write(made[1], made[0])
    fence = longer(mark, block)
    found = reading(f"{prose}\n\n{fence}\n{block}\n{fence}\n\n{prose}")
    assert isinstance(found, NoBlock)
    assert "inside a code fence" in found.hint


@given(odd, written, odd, st.sampled_from("`~"))
@enough
def test_whatever_stands_in_a_fence_is_not_run(before: str, made: Written, after: str, mark: str) -> None:
    inside = f"{before}\n{write(made[1], made[0])}\n{after}"
    fence = longer(mark, inside)
    assert isinstance(reading(f"{fence}\n{inside}\n{fence}\n"), NoBlock)


@given(odd, written, odd)
@enough
def test_whatever_is_quoted_is_not_run(before: str, made: Written, after: str) -> None:
    inside = re.split(r"\r\n|\r|\n", f"{before}\n{write(made[1], made[0])}\n{after}")
    assert isinstance(reading("".join(f"> {line}\n" for line in inside)), NoBlock)


@given(st.lists(st.sampled_from(["TOOL_CALL", "SEND_MESSAGE", "PATCH", "REWRITE", "tool_call"])), words, words)
@enough
def test_tags_that_are_only_mentioned_are_not_run(tags: list[str], before: str, after: str) -> None:
    prose = "".join(f"{before} `<{tag}>{after}</{tag}>` {after}\n" for tag in tags)
    assert isinstance(reading(prose), NoBlock)


@given(written, st.sampled_from(["think", "thinking", "reasoning", "Thought"]), words)
@enough
def test_a_block_in_thoughts_is_not_run(made: Written, tag: str, after: str) -> None:
    block = write(made[1], made[0])
    assume("</" + tag.lower() not in block.lower())
    found = reading(f"<{tag}>\n{block}\n</{tag}>\n{after}")
    assert isinstance(found, NoBlock)
    assert found.said == after.strip()


@given(written, written)
@enough
def test_of_two_blocks_none_is_run_or_the_first(one: Written, two: Written) -> None:
    text = f"{write(one[1], one[0])}\n{write(two[1], two[0])}"
    both, first = reading(text), reading(text, policy="first")
    assert isinstance(both, BlockRejection)
    assert "only one" in both.why
    assert isinstance(first, BlockCall)
    assert (first.call, len(first.dropped)) == (one[1], 1)


@given(odd | st.text(), st.booleans(), st.sampled_from(["reject", "first"]))
@settings(max_examples=120, deadline=None)
def test_no_text_makes_it_raise_and_what_is_run_can_be_written_down(
    text: str, ended: bool, policy: MultiBlockPolicy
) -> None:
    found = reading(text, ended=ended, policy=policy)
    if isinstance(found, BlockCall):
        assert decode(encode(found.call.arguments)) == found.call.arguments
    else:
        encode({"found": str(found)})


@given(st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=3, unique=True), odd)
@enough
def test_a_protocol_that_is_not_spoken_is_not_read(names: list[ProtocolName], text: str) -> None:
    found = read(text, names, tools=TOOLS, agents=AGENTS, pure=PURE)
    assert not isinstance(found, BlockCall) or found.protocol in names


@given(odd)
@enough
def test_a_longer_reply_keeps_what_was_thought_aloud_out_of_what_was_said(text: str) -> None:
    assume("think" not in text)
    said = reading(f"<think>SECRET</think>{text}")
    assert "SECRET" not in (said.said if not isinstance(said, BlockRejection) else "")


PLACES = sorted((name, around) for table in SHOWING.values() for name, around in table.items())
CALM = sorted((name, around) for name, around in GOOD.items() if around.count("@") == 1)


@given(written, st.sampled_from(PLACES))
@many
def test_in_no_place_where_it_is_shown_a_block_is_run(made: Written, place: tuple[str, str]) -> None:
    text = put(place[1], write(made[1], made[0]))
    for ended in (True, None, False):
        found = reading(text, ended=ended)
        assert not isinstance(found, BlockCall) or found.call != made[1]


@given(written, st.sampled_from(PLACES), st.sampled_from(CALM))
@many
def test_what_is_shown_is_not_run_among_other_things(
    made: Written, place: tuple[str, str], around: tuple[str, str]
) -> None:
    assume("begins" not in place[0] and "taken away" not in place[0])
    found = reading(put(around[1], put(place[1], write(made[1], made[0]))), ended=True)
    assert not isinstance(found, BlockCall) or found.call != made[1]


@given(written, st.sampled_from(CALM))
@many
def test_in_every_place_where_it_is_meant_a_block_is_run_as_it_is(made: Written, place: tuple[str, str]) -> None:
    found = reading(put(place[1], write(made[1], made[0])), ended=True)
    assert isinstance(found, BlockCall), str(found)
    assert (found.call, found.repaired, found.notes) == (made[1], False, ())


@given(
    written, st.text(alphabet="abc .,:;!?é文\"')]}`*", min_size=1, max_size=20).filter(lambda tail: bool(tail.strip()))
)
@enough
def test_a_block_with_text_on_the_line_of_its_end_is_not_run(made: Written, tail: str) -> None:
    for ended in (True, None, False):
        assert not isinstance(reading(write(made[1], made[0]) + tail, ended=ended), BlockCall)


@given(written, words, words, st.data())
@many
def test_no_part_of_a_reply_that_was_cut_off_has_effects(
    made: Written, before: str, after: str, data: st.DataObject
) -> None:
    text = f"{before}\n\n{write(made[1], made[0])}\n{after}"
    cut = text[: data.draw(st.integers(0, len(text)))]
    found = read(cut, ALL, tools=TOOLS, agents=AGENTS, ended=False)
    assert not isinstance(found, BlockCall)
    assert not isinstance(found, BlockRejection) or not found.repaired


@given(written, odd)
@many
def test_a_block_whose_end_tag_comes_again_is_not_run(made: Written, between: str) -> None:
    block = write(made[1], made[0])
    end = block[block.rindex("</") :]
    found = reading(f"{block}\n{between}\n{end}", ended=True)
    assert not isinstance(found, BlockCall) or found.call != made[1]


@given(odd | st.text(), st.booleans())
@many
def test_what_is_run_of_any_text_reads_the_same_when_it_is_written_again(text: str, ended: bool) -> None:
    found = reading(text, ended=ended)
    if isinstance(found, BlockCall):
        again = reading(write(found.call, found.protocol))
        assert isinstance(again, BlockCall)
        assert again.call == found.call


@given(st.text(alphabet="{}[]:,'\"\\ntrue None/*#\n01.-+eE_ab", max_size=40))
@many
def test_what_is_mended_has_one_meaning(text: str) -> None:
    """A repaired text equals the JSON value where it is JSON, and contains no new text."""
    try:
        value = repair(text)
    except ParseError:
        return
    try:
        assert decode_strictly(text) == value
    except MalformedJson:
        shown = json.dumps(value)
        assert set(re.findall(r"[a-z]{2,}", shown)) <= {*re.findall(r"[a-z]{2,}", text.lower()), "null"}


HARD: list[tuple[ProtocolName, str, dict[str, object]]] = [
    ("tool_call", "save", {"path": "a", "text": "</TOOL_CALL>\n"}),
    ("xml_tool", "save", {"path": "a", "text": "</tool_call>\n</text>"}),
    ("send_message", "send_message", {"receiver": "bob", "message": "a\n</SEND_MESSAGE>\nb\n", "handoff": True}),
    ("patch", "patch", {"file": "a", "edits": [{"search": "a", "replace": "b"}, {"search": "c", "replace": ""}]}),
    ("rewrite", "rewrite", {"file": "a", "content": "a\n</REWRITE>\nb\n"}),
]


@pytest.mark.parametrize(("protocol", "tool", "arguments"), HARD)
def test_once_a_growing_block_is_run_it_stays_what_it_is(
    protocol: ProtocolName, tool: str, arguments: dict[str, object]
) -> None:
    text = write(ToolCall(call_id="", name=tool, arguments=arguments), protocol)
    seen = [run(text[:cut]) for cut in range(len(text) + 1)]
    assert seen[-1] is not None
    assert all(before is None or before == after for before, after in pairwise(seen))
