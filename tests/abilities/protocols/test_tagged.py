"""Answers between their own tags: raw text, JSON, and invalid answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.protocols.strict_json import ParseError
from greenroom.abilities.protocols.text_calls import parse_json_body, read_tagged_bodies
from greenroom.app.text_reader import TextReader
from greenroom.core.ports.reply_reader import ParsedValue, ReplyProblem


def text_of(reply: str) -> tuple[str, ...]:
    return read_tagged_bodies(reply, {"answer": "text", "persistent_memory": "text"})["answer"]


@pytest.mark.parametrize(
    ("reply", "bodies"),
    [
        ("", ()),
        ("Just talk.", ()),
        ("<answer>\nyes\n</answer>", ("yes",)),
        ("<answer>yes</answer>", ("yes",)),
        ("Well.\n<answer>\nyes\n</answer>\nThat is all.", ("yes",)),
        ("<think>\n<answer>no</answer>\n</think>\n<answer>\nyes\n</answer>", ("yes",)),
        ("<answer>\na<b && c\n</answer>", ("a<b && c",)),
        ("<answer>\n# Title\n\n- one\n</answer>", ("# Title\n\n- one",)),
        ("<answer><![CDATA[</answer> is an end]]></answer>", ("</answer> is an end",)),
        ("<answer>\none\n</answer>\n<answer>\ntwo\n</answer>", ("one", "two")),
        ("<answer>\nyes\n</answer>\n<persistent_memory>\nkeep\n</persistent_memory>", ("yes",)),
    ],
)
def test_what_stands_between_the_tags_is_taken_raw(reply: str, bodies: tuple[str, ...]) -> None:
    assert text_of(reply) == bodies


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("<answer>\nyes", "</answer> is missing, so <answer> may not be whole."),
        ("```\n<answer>\nyes\n</answer>\n```", "<answer>"),
        ("<answers>\nyes\n</answers>", "<answer>"),
        ("<answer>\nyes\n</answer>\nand </answer>", "Your reply cannot be read: </answer> is there more often"),
        ("<answer>\n\ud800\n</answer>", "half a character"),
    ],
)
def test_what_is_cut_off_shown_or_misspelt_is_said(reply: str, why: str) -> None:
    with pytest.raises(ParseError) as error:
        text_of(reply)
    assert why in str(error.value)


@given(st.text(alphabet="ab<>/&# \n", max_size=40))
def test_any_text_without_our_tags_comes_back_as_it_was(body: str) -> None:
    reply = f"<answer>\n{body}\n</answer>"
    try:
        assert text_of(reply) == (body.strip(),)
    except ParseError:
        assert "<" in body or "`" in body


@pytest.mark.parametrize(
    ("body", "value", "mended"),
    [
        ('{"a": [1, true, null]}', {"a": [1, True, None]}, False),
        ('```json\n{"a": 1}\n```', {"a": 1}, False),
        ("[]", [], False),
        ("{'a': 'b'}", {"a": "b"}, True),
        ('{"a": 1,}', {"a": 1}, True),
    ],
)
def test_json_is_read_strictly_or_mended_where_it_means_one_thing(body: str, value: object, mended: bool) -> None:
    found = parse_json_body(body)
    assert (found.value, bool(found.repaired)) == (value, mended)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (" ", "It is empty."),
        ('{"a": "b', "It is cut off, or a quote is missing"),
        ('{"a": b c}', "Its JSON cannot be read"),
        ('{"a": 1, "a": 2}', "the key 'a' is there twice"),
        ("{'a': 1, 'a': 2}", "twice"),
        ("NaN", "Its JSON cannot be used"),
    ],
)
def test_json_that_cannot_be_read_says_why(body: str, why: str) -> None:
    with pytest.raises(ParseError) as error:
        parse_json_body(body)
    assert why in str(error.value)


def test_the_reader_of_the_house_says_it_as_values() -> None:
    reader = TextReader()
    assert reader.read_blocks("<a>\n1\n</a>", {"a": "data"}) == {"a": ("1",)}
    assert isinstance(reader.read_blocks("<a>\n1", {"a": "text"}), ReplyProblem)
    assert reader.parse_json("[1]") == ParsedValue(value=[1])
    found = reader.parse_json("[1")
    assert isinstance(found, ReplyProblem)
    assert found.why.startswith("It is cut off")
