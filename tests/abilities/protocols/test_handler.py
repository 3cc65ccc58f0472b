"""SEND_MESSAGE as agents write it: what is a message, and what comes back instead."""

from collections.abc import Mapping

import pytest

from greenroom.abilities.protocols.parse_result import BlockCall, BlockRejection
from greenroom.abilities.protocols.text_calls import read, render_prompt
from tests.abilities.protocols.house import AGENTS


def handle(response: str, agents: Mapping[str, str] = AGENTS) -> dict[str, str] | str:
    """Return the message of a response, else why there is none."""
    found = read(response, ["send_message"], agents=agents, ended=True)
    if isinstance(found, BlockCall):
        return {"to": str(found.call.arguments["receiver"]), "content": str(found.call.arguments["message"])}
    return str(found) if isinstance(found, BlockRejection) else found.hint


GOOD = "<SEND_MESSAGE>\nto: bob\ncontent: |2\n  # Task\n  Do it.\n</SEND_MESSAGE>"


def reason(response: str) -> str:
    """Return why the response is not a message."""
    why = handle(response)
    assert isinstance(why, str)
    return why


@pytest.mark.req("MA-15", "MA-20")
def test_one_block_is_a_message() -> None:
    assert handle(f"I hand over.\n{GOOD}\n") == {"to": "bob", "content": "# Task\nDo it.\n"}


@pytest.mark.req("MA-20")
def test_the_body_is_strict_yaml_and_is_not_guessed_at() -> None:
    assert "YAML cannot be read" in reason(GOOD.replace("|2", "Note: this"))


@pytest.mark.req("MA-30")
@pytest.mark.parametrize("response", ["<SEND_MESSAGE>\n</SEND_MESSAGE>", "```\n" + GOOD + "\n```", "<send_message>"])
def test_what_looks_like_a_message_may_be_none_and_then_it_only_gives_text(response: str) -> None:
    assert "SEND_MESSAGE" in reason(response)


def test_a_sentence_about_the_tag_is_no_message() -> None:
    assert handle("I would write <SEND_MESSAGE> here.") == ""


@pytest.mark.req("MA-21")
@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_are_made_equal(end: str) -> None:
    assert handle(GOOD.replace("\n", end)) == handle(GOOD)


@pytest.mark.req("MA-22", "MA-71")
def test_a_missing_end_tag_is_added() -> None:
    assert handle(GOOD.removesuffix("</SEND_MESSAGE>")) == handle(GOOD)


@pytest.mark.req("MA-71")
def test_a_missing_end_tag_that_does_not_help_gives_advice_and_an_example() -> None:
    why = reason("<SEND_MESSAGE>\nto: bob\ncontent: a: b")
    assert "was missing; it was added" in why
    assert "Check three things" in why
    assert isinstance(handle(why[why.index("<SEND_MESSAGE>\n") :].replace("name-of-the-agent", "bob")), dict)


@pytest.mark.req("MA-23", "MA-24")
@pytest.mark.parametrize(
    ("body", "item"),
    [
        ("content: x", "'to' is missing"),
        ("to: ''\ncontent: x", "'to' is blank"),
        ("to: bob", "'content' is missing"),
        ("to: bob\ncontent: '  '", "'content' is blank"),
    ],
)
def test_a_field_that_is_not_there_is_named_and_shown(body: str, item: str) -> None:
    why = reason(f"<SEND_MESSAGE>\n{body}\n</SEND_MESSAGE>")
    assert item in why
    example = why[why.index("<SEND_MESSAGE>\n") :].replace("name-of-the-agent", "bob")
    assert isinstance(handle(example), dict)


@pytest.mark.req("MA-25")
def test_a_field_of_the_wrong_type_is_named_with_the_right_one_and_a_way_to_write_it() -> None:
    why = reason("<SEND_MESSAGE>\nto: bob\ncontent: 42\n</SEND_MESSAGE>")
    assert "'content' must be a text (str), not int" in why
    assert handle(why[why.index("<SEND_MESSAGE>\n") :]) == {"to": "bob", "content": "42"}


@pytest.mark.req("MA-26")
def test_an_unknown_receiver_gets_the_names_of_all_and_a_suggestion() -> None:
    why = reason(GOOD.replace("bob", "bobb"))
    assert "amy, bob, 老王" in why
    assert handle(why[why.index("<SEND_MESSAGE>\n") :]) == handle(GOOD)


@pytest.mark.req("MA-27")
def test_two_blocks_are_refused() -> None:
    why = reason(f"{GOOD}\n{GOOD}")
    assert "only one SEND_MESSAGE block at a time" in why
    assert "Merge them, or send them over several turns" in why


@pytest.mark.req("MA-28")
@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("to: bob\ncontent: a: b", "mapping values are not allowed in this context at line 3 column 11"),
        ("to: bob\ncontent: |2\nhello", "could not find expected ':'"),
        ('to: bob\ncontent: "hello', "found unexpected end of stream"),
    ],
)
def test_broken_yaml_gives_the_cause_and_hints(body: str, cause: str) -> None:
    why = reason(f"<SEND_MESSAGE>\n{body}\n</SEND_MESSAGE>")
    assert cause in why
    assert [word for word in ("indented", "quotes", "colon") if word not in why] == []


@pytest.mark.req("MA-80")
@pytest.mark.parametrize("content", ["Note: this\nand: that", "|2\nnot indented\n  at all", '"open\nquote', "see #3"])
def test_a_broken_message_comes_back_repaired(content: str) -> None:
    why = reason(f"<SEND_MESSAGE>\nto: bob\ncontent: {content}\n</SEND_MESSAGE>")
    assert "send exactly this" in why
    message = handle(why[why.index("<SEND_MESSAGE>\n") :])
    assert isinstance(message, dict)
    assert message["to"] == "bob"


def test_nobody_can_be_written_to_when_there_is_nobody() -> None:
    assert "there is no agent to write to" in str(handle(GOOD, {}))


def test_the_only_other_agent_is_suggested() -> None:
    assert "to: zoe" in str(handle(GOOD, {"zoe": ""}))


def test_its_prompt_is_that_of_messages() -> None:
    assert "- `bob`: writes code" in render_prompt(["send_message"], agents=AGENTS)
    assert "- `bob`：writes code" in render_prompt(["send_message"], agents=AGENTS, language="zh")
