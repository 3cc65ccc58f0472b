"""How a model is asked: the prompts as they are, equal in both languages, with examples that can be read."""

import re
from itertools import product
from typing import Final

import pytest
from inline_snapshot import external_file

from greenroom.abilities.protocols.parse_result import BlockCall, ProtocolName
from greenroom.abilities.protocols.text_calls import PACK, read, render_prompt
from greenroom.core.ports.model import ToolSpec
from tests.abilities.protocols.house import ALL

LANGUAGES: Final = PACK.list_languages()
TOOLS: Final = (
    ToolSpec(
        name="read_file",
        description="Reads a file. Use it before you change one.",
        parameters={
            "type": "object",
            "properties": {"path": {"type": "string"}, "lines": {"type": "array", "items": {"type": "integer"}}},
            "required": ["path"],
        },
    ),
    ToolSpec(name="ping", description="Says whether anybody is there."),
)
AGENTS: Final = {"bob": "writes code", "amy": "", "name-of-the-agent": "x", "智能体名称": "x"}
BLOCK: Final = re.compile(r"^<(?P<tag>\w+)(?: [^>]*)?>\n.*?^</(?P=tag)>$", re.MULTILINE | re.DOTALL)
EXAMPLE: Final[dict[ProtocolName, tuple[str, object]]] = {
    "tool_call": ("read_file", {"path": "src/app.py", "lines": [1, 40]}),
    "xml_tool": ("read_file", {"path": "src/app.py", "lines": [1, 40]}),
    "patch": (
        "patch",
        {
            "file": "src/app.ts",
            "edits": [
                {
                    "search": "  if (a < b && c) {\n    return null;",
                    "replace": "  if (a <= b && c) {\n    return 0;",
                }
            ],
        },
    ),
    "rewrite": ("rewrite", {"file": "src/hello.py", "content": 'def hello() -> str:\n    return "hello"\n'}),
}


def asked(name: ProtocolName, language: str) -> str:
    """The whole prompt of one protocol."""
    return render_prompt([name], tools=TOOLS, agents=AGENTS, language=language)


@pytest.mark.parametrize(("name", "language"), [*product(ALL, LANGUAGES)])
def test_every_prompt_is_what_it_was(name: ProtocolName, language: str) -> None:
    assert asked(name, language) == external_file(f"snapshots/{language}/{name}.md", format=".txt")


def test_there_is_a_prompt_for_every_protocol_in_every_language() -> None:
    assert [PACK.list_names(language) for language in ("en", "zh")] == [tuple(sorted(["rules", *ALL]))] * 2


@pytest.mark.parametrize("name", ["rules", *ALL])
def test_both_languages_show_the_same_tags(name: str) -> None:
    tags = re.compile(r"</?[A-Za-z_]+|[|]2|`[A-Za-z_]+`")
    assert sorted(tags.findall(PACK.read_source("en", name))) == sorted(tags.findall(PACK.read_source("zh", name)))


@pytest.mark.parametrize(("name", "language"), [*product(EXAMPLE, LANGUAGES)])
def test_the_example_of_a_prompt_is_read_by_its_own_parser(name: ProtocolName, language: str) -> None:
    block = BLOCK.search(asked(name, language))
    assert block
    found = read(block[0], [name], tools=TOOLS, agents=AGENTS)
    assert isinstance(found, BlockCall), str(found)
    assert (found.call.name, found.call.arguments, found.notes) == (*EXAMPLE[name], ())


@pytest.mark.req("MA-15", "MA-16", "MA-17")
@pytest.mark.parametrize(
    ("language", "request_headings", "result_heading"),
    [
        ("en", ["# [Subject", "## Background", "## Request", "## Resources", "## Expected", "## Next"], "# Result of"),
        (
            "zh",
            ["# [消息主题]", "## 背景信息", "## 具体需求", "## 相关资源", "## 期望结果", "## 下一步计划"],
            "# 任务结果",
        ),
    ],
)
def test_both_templates_of_a_message_are_shown_and_can_be_read(
    language: str, request_headings: list[str], result_heading: str
) -> None:
    contents = []
    for block in BLOCK.finditer(asked("send_message", language)):
        found = read(block[0], ["send_message"], agents=AGENTS)
        assert isinstance(found, BlockCall), str(found)
        contents.append(str(found.call.arguments["message"]).splitlines())
    headings = [[line for line in lines if line.startswith("#")] for lines in contents]
    assert [len(lines) for lines in headings] == [6, 1]
    assert all(line.startswith(wanted) for line, wanted in zip(headings[0], request_headings, strict=True))
    assert headings[1][0].startswith(result_heading)


@pytest.mark.req("MA-12")
@pytest.mark.parametrize(
    ("language", "rule"),
    [("en", "one message or one call, never two"), ("zh", "发送一条消息或进行一次调用，绝不同时写两个")],
)
def test_every_prompt_says_that_one_operation_is_all(language: str, rule: str) -> None:
    assert all(rule in asked(name, language) for name in ALL)


@pytest.mark.req("MA-13", "MA-14")
@pytest.mark.parametrize(
    ("language", "words"),
    [
        (
            "en",
            ["`to`, the name of one agent, and `content`", "background", "resources", "expected result", "carry on"],
        ),
        ("zh", ["`to`（一个智能体的名称）和 `content`", "背景", "资源", "期望结果", "继续工作"]),
    ],
)
def test_a_message_is_asked_to_be_complete(language: str, words: list[str]) -> None:
    text = " ".join(asked("send_message", language).split())
    assert [word for word in words if word not in text] == []


@pytest.mark.req("MA-18")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_agents_are_listed_with_what_they_do(language: str) -> None:
    lines = render_prompt(["send_message"], agents={"bob": "writes code", "amy": ""}, language=language).splitlines()
    assert [line.replace("：", ": ") for line in lines if line.startswith("- ")] == ["- `bob`: writes code", "- `amy`"]


@pytest.mark.req("AG-71")
def test_a_patch_is_preferred_to_a_rewrite() -> None:
    assert "Prefer this to rewriting a file" in asked("patch", "en")
    assert "For new files and large rewrites only" in asked("rewrite", "en")


def test_the_rules_come_once_before_all_protocols() -> None:
    text = render_prompt(ALL, tools=TOOLS, agents=AGENTS)
    assert text.count("# How to act") == 1
    assert "`<TOOL_CALL>` or `<tool_call>` or `<SEND_MESSAGE>` or `<PATCH>` or `<REWRITE>`." in text


@pytest.mark.parametrize(("name", "language"), [*product(("tool_call", "xml_tool", "send_message"), LANGUAGES)])
def test_who_has_nothing_to_act_with_is_told_so(name: ProtocolName, language: str) -> None:
    last = render_prompt([name], language=language).rstrip().splitlines()[-1]
    assert not last.endswith((":", "："))
    assert ("do not write this block" if language == "en" else "请不要写") in last


@pytest.mark.parametrize("language", LANGUAGES)
def test_who_has_no_tools_but_agents_is_told_of_these(language: str) -> None:
    text = render_prompt(["xml_tool"], agents={"bob": "writes code"}, language=language)
    assert "bob" in text
    assert "JSON Schema" not in text


def test_what_a_tool_says_of_itself_is_not_filled_in() -> None:
    tool = ToolSpec(name="t", description="{{ 7 * 7 }} {% raw %} <b> & c", parameters={"x": "{{ tools }}"})
    text = render_prompt(["tool_call"], tools=[tool])
    assert "{{ 7 * 7 }} {% raw %} <b> & c" in text
    assert '{"x":"{{ tools }}"}' in text


def test_sub_agents_are_named_only_where_there_are_some() -> None:
    assert "call_subagent" not in render_prompt(["xml_tool"], tools=TOOLS)
    assert "call_subagent" in render_prompt(["xml_tool"], tools=TOOLS, agents={"bob": ""})
