"""Parsing single replies: the claims of the sources, and what the caller learns."""

import pytest

from greenroom.abilities.protocols.parse_result import BlockCall, BlockRejection, MultiBlockPolicy, NoBlock, ParsedReply
from greenroom.abilities.protocols.strict_json import ParseError, find_json_error
from greenroom.abilities.protocols.strict_yaml import load
from greenroom.abilities.protocols.text_calls import read, write
from greenroom.core.ports.model import ToolCall, ToolSpec
from tests.abilities.protocols.house import AGENTS, ALL, TOOLS

LOOK = '<TOOL_CALL>\n{"name": "look", "arguments": {"path": "a.py"}}\n</TOOL_CALL>'
XML = "<tool_call>\n<name>look</name>\n<params>\n<path>a.py</path>\n</params>\n</tool_call>"
DELEGATES = (
    "<tool_call><name>call_subagent</name><params>"
    "<agent_name>bob</agent_name><instruction>Find it.</instruction></params></tool_call>"
)
MESSAGE = "<SEND_MESSAGE>\nto: bob\ncontent: hi\n</SEND_MESSAGE>"
PATCH = '<PATCH file="a.py">\n<DIFF><SEARCH>a</SEARCH><REPLACE>b</REPLACE></DIFF>\n</PATCH>'


def reading(text: str, policy: MultiBlockPolicy = "reject") -> ParsedReply:
    return read(text, ALL, tools=TOOLS, agents=AGENTS, policy=policy)


@pytest.mark.req("AG-55")
def test_several_call_blocks_are_refused_and_the_rule_is_explained() -> None:
    found = reading(f"{LOOK}\n{LOOK.replace('a.py', 'b.py')}")
    assert isinstance(found, BlockRejection)
    assert "Nothing was run: only one operation at a time" in found.why
    assert "Send one, then wait." in found.why


@pytest.mark.req("AG-133")
@pytest.mark.parametrize("second", [MESSAGE, PATCH, XML])
def test_a_reply_that_two_protocols_claim_is_refused(second: str) -> None:
    found = reading(f"{LOOK}\n{second}")
    assert isinstance(found, BlockRejection)
    assert "only one operation at a time" in found.why


@pytest.mark.req("AG-56")
def test_a_missing_end_tag_is_added_and_the_model_is_reminded() -> None:
    found = reading(LOOK.removesuffix("</TOOL_CALL>"))
    assert isinstance(found, BlockCall)
    assert found.call.arguments == {"path": "a.py"}
    assert found.notes == (
        "The end tag </TOOL_CALL> was missing and was added. Always write it, on a line of its own.",
    )


@pytest.mark.req("AG-61", "AG-134")
def test_a_reply_without_a_block_is_nothing() -> None:
    assert reading("All is well.") == NoBlock(said="All is well.")


@pytest.mark.req("AF-26", "AF-47")
def test_an_xml_tool_call_has_a_name_and_params() -> None:
    found = reading(XML)
    assert isinstance(found, BlockCall)
    assert found.call == ToolCall(call_id="", name="look", arguments={"path": "a.py"})


@pytest.mark.req("AF-46")
def test_a_call_of_call_subagent_leads_to_that_agent() -> None:
    found = reading(DELEGATES)
    assert isinstance(found, BlockCall)
    assert found.call == ToolCall(
        call_id="", name="call_subagent", arguments={"agent_name": "bob", "instruction": "Find it."}
    )


@pytest.mark.req("AF-45")
def test_the_first_of_several_calls_is_used_and_the_others_are_reported() -> None:
    found = reading(f"{XML}\n{DELEGATES}\n{MESSAGE}", policy="first")
    assert isinstance(found, BlockCall)
    assert found.call.arguments == {"path": "a.py"}
    assert found.dropped == ("<tool_call> in line 7", "<SEND_MESSAGE> in line 8")


def test_a_message_is_a_handoff() -> None:
    found = reading(MESSAGE)
    assert isinstance(found, BlockCall)
    assert found.call == ToolCall(
        call_id="", name="send_message", arguments={"receiver": "bob", "message": "hi", "handoff": True}
    )


def test_a_mended_call_is_marked_and_says_what_was_wrong() -> None:
    text = LOOK.replace('"a.py"', '"a.py",')
    found = read(text, ["tool_call"], tools=TOOLS, pure={"look"})
    assert isinstance(found, BlockCall)
    assert found.repaired
    assert "was mended before it was run: its JSON is not valid" in found.notes[0]
    refused = read(text, ["tool_call"], tools=TOOLS)
    assert isinstance(refused, BlockRejection)
    assert refused.repaired == write(found.call, "tool_call")
    assert str(refused).endswith(f"If this is what you mean, send exactly this:\n{refused.repaired}")


def test_a_tool_of_ones_own_that_calls_sub_agents_is_used_as_it_is() -> None:
    tool = ToolSpec(
        name="call_subagent", description="", parameters={"type": "object", "required": ["agent_name", "x"]}
    )
    text = DELEGATES.replace("instruction", "x")
    found = read(text, ["xml_tool"], tools=[tool], agents=["bob"])
    assert isinstance(found, BlockCall)
    assert found.call.arguments == {"agent_name": "bob", "x": "Find it."}


def test_without_agents_there_is_nobody_to_call() -> None:
    found = read(DELEGATES, ["xml_tool"], tools=TOOLS)
    assert isinstance(found, BlockRejection)
    assert "no tool 'call_subagent'" in found.why


def test_without_tools_that_is_said() -> None:
    found = read(LOOK, ["tool_call"])
    assert isinstance(found, BlockRejection)
    assert "you have no tools" in found.why


def test_what_is_too_long_is_not_given_back() -> None:
    text = f"<TOOL_CALL>\nname: save\narguments:\n  path: a\n  text: {'x' * 20_000}"
    found = reading(text)
    assert isinstance(found, BlockRejection)
    assert found.repaired == ""
    assert len(found.why) < 500


def test_yaml_with_half_a_character_is_unreadable() -> None:
    with pytest.raises(ParseError, match="half a character"):
        load("to: \ud800")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a":', "Expecting value at line 1 column 6"),
        ('{"a": 1, "a": 2}', "the key 'a' is there twice"),
        ('"{\\"a\\": 1, \\"a\\": 2}"', "the key 'a' is there twice"),
        ("[1]", "it is not an object, but a list"),
        ('"null"', "it is not an object, but null"),
        ("7", "it is not an object, but a number"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("{}", ""),
        ('"{}"', ""),
    ],
)
def test_arguments_that_nobody_can_read_have_a_reason(text: str, why: str) -> None:
    assert find_json_error(text) == why


def test_what_was_said_is_the_text_around_the_block_without_thoughts() -> None:
    found = reading(f"<think>Hm.</think>First this.\n{LOOK}\nThen that.")
    assert isinstance(found, BlockCall)
    assert [line for line in found.said.splitlines() if line] == ["First this.", "Then that."]
