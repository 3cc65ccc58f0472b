"""SEND_MESSAGE as MultiAgent's output handler has it."""

import pytest

from greenroom.abilities.protocols.text_calls import MessageHandler
from tests.abilities.protocols.house import AGENTS

HANDLER = MessageHandler(AGENTS)
GOOD = "<SEND_MESSAGE>\nto: bob\ncontent: |2\n  # Task\n  Do it.\n</SEND_MESSAGE>"


def reason(response: str) -> str:
    """Return why the response is not a message."""
    done, why = HANDLER.handle(response)
    assert not done
    assert isinstance(why, str)
    return why


@pytest.mark.req("MA-15", "MA-20", "MA-29")
def test_one_block_is_a_message() -> None:
    assert HANDLER.handle(f"I hand over.\n{GOOD}\n") == (True, {"to": "bob", "content": "# Task\nDo it.\n"})


@pytest.mark.req("MA-20")
def test_the_body_is_strict_yaml_and_is_not_guessed_at() -> None:
    assert "YAML cannot be read" in reason(GOOD.replace("|2", "Note: this"))


@pytest.mark.req("MA-19")
@pytest.mark.parametrize(
    ("response", "can"),
    [
        (GOOD, True),
        ("<SEND_MESSAGE>\nto: bob", True),
        ("I would write <SEND_MESSAGE> here.", True),
        ("</SEND_MESSAGE>", False),
        ("<send_message>", False),
        ("Done.", False),
        ("", False),
    ],
)
def test_it_can_handle_what_has_the_opening_tag(response: str, can: bool) -> None:
    assert HANDLER.can_handle(response) is can


@pytest.mark.req("MA-30")
@pytest.mark.parametrize(
    "response", ["Use the <SEND_MESSAGE> tag.", "<SEND_MESSAGE>\n</SEND_MESSAGE>", "```\n" + GOOD + "\n```"]
)
def test_what_it_can_handle_may_still_be_no_message_and_then_it_only_gives_text(response: str) -> None:
    assert HANDLER.can_handle(response)
    assert "SEND_MESSAGE" in reason(response)


@pytest.mark.req("MA-21")
@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_are_made_equal(end: str) -> None:
    assert HANDLER.handle(GOOD.replace("\n", end)) == HANDLER.handle(GOOD)


@pytest.mark.req("MA-22", "MA-71")
def test_a_missing_end_tag_is_added() -> None:
    assert HANDLER.handle(GOOD.removesuffix("</SEND_MESSAGE>")) == HANDLER.handle(GOOD)


@pytest.mark.req("MA-71")
def test_a_missing_end_tag_that_does_not_help_gives_advice_and_an_example() -> None:
    why = reason("<SEND_MESSAGE>\nto: bob\ncontent: a: b")
    assert "was missing; it was added" in why
    assert "Check three things" in why
    assert HANDLER.handle(why[why.index("<SEND_MESSAGE>\n") :].replace("name-of-the-agent", "bob"))[0]


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
    assert HANDLER.handle(example)[0]


@pytest.mark.req("MA-25")
def test_a_field_of_the_wrong_type_is_named_with_the_right_one_and_a_way_to_write_it() -> None:
    why = reason("<SEND_MESSAGE>\nto: bob\ncontent: 42\n</SEND_MESSAGE>")
    assert "'content' must be a text (str), not int" in why
    assert HANDLER.handle(why[why.index("<SEND_MESSAGE>\n") :]) == (True, {"to": "bob", "content": "42"})


@pytest.mark.req("MA-26")
def test_an_unknown_receiver_gets_the_names_of_all_and_a_suggestion() -> None:
    why = reason(GOOD.replace("bob", "bobb"))
    assert "amy, bob, 老王" in why
    assert HANDLER.handle(why[why.index("<SEND_MESSAGE>\n") :]) == HANDLER.handle(GOOD)


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
    done, message = HANDLER.handle(why[why.index("<SEND_MESSAGE>\n") :])
    assert done
    assert message["to"] == "bob" if isinstance(message, dict) else False


def test_nobody_can_be_written_to_when_there_is_nobody() -> None:
    done, why = MessageHandler({}).handle(GOOD)
    assert not done
    assert "there is no agent to write to" in str(why)


def test_the_only_other_agent_is_suggested() -> None:
    done, why = MessageHandler({"zoe": ""}).handle(GOOD)
    assert not done
    assert "to: zoe" in str(why)


def test_its_prompt_is_that_of_messages() -> None:
    assert "- `bob`: writes code" in HANDLER.prompt()
    assert "- `bob`：writes code" in HANDLER.prompt("zh")
