"""No reply takes long to read, however large and hostile it is."""

import itertools
import time

import pytest

from greenroom.abilities.protocols.parse_result import BlockCall, BlockRejection
from greenroom.abilities.protocols.text_calls import read
from tests.abilities.protocols.house import ALL, TOOLS
from tests.sampling import first
from tests.speed import is_soon, measure_slowness

# Reaches no line that other tests do not, and to be measured takes it twice as long.
pytestmark = pytest.mark.no_cover

LIMIT = 10.0
"""Seconds of work, ten times what the slowest takes on a slow machine; what grows with the square takes minutes."""

PART = 8
PART_LIMIT = 0.8
"""With every test run an eighth is read, in five times what the slowest of those takes. What grows with the square, and
takes a minute for the whole, takes 60 / 64 seconds for an eighth; what takes less than that is left to `./go prove`."""

END = 200
"""Characters in which everything that ends a text is."""

MANY = 10_000
PAD = "x" * 80
TAGS = ["TOOL_CALL", "tool_call", "SEND_MESSAGE", 'PATCH file="a"', 'REWRITE file="a"']
LARGE = {
    **{f"opening {tag}": f"<{tag}>\n{PAD}\n" * MANY for tag in TAGS},
    **{f"{tag} in sentences": f"use <{tag}> {PAD}\n" * MANY for tag in TAGS},
    **{f"{tag} in backticks": f"`<{tag}>` {PAD}\n" * MANY for tag in TAGS},
    **{f"{tag} with braces": (f"<{tag}>\n" + '{"a": [\n') * 30_000 for tag in TAGS},
    "end tags": "</TOOL_CALL>\n" * 80_000,
    "backticks": "<TOOL_CALL>` " * 80_000,
    "backticks of all lengths": "<TOOL_CALL> " + " ".join("`" * length for length in range(1, 1400)),
    "fences": "x <TOOL_CALL>\n" + "```\n" * 200_000,
    "backticks over lines": "`\n<TOOL_CALL>`\n\n" * 60_000,
    "indented fences": "x <TOOL_CALL>\n" + "  ```\n" * 150_000,
    "quotations": "> <TOOL_CALL>\n" * 60_000,
    "quotations with lines between": "> <TOOL_CALL>\n\n" * 60_000,
    "fences in lists": "x <TOOL_CALL>\n" + "- ```\n" * 150_000,
    "thoughts": "<think>" * 140_000,
    "ends of thoughts": "</think>\n" * 100_000,
    "examples": "<pre><TOOL_CALL>" * 60_000,
    "parameters": "<tool_call><name>ping</name><params>" + "<a>" * 300_000,
    "CDATA": "<tool_call><name>ping</name><params><a>" + "<![CDATA[" * 100_000,
    "changes": '<PATCH file="a">' + "<DIFF><SEARCH>a</SEARCH><REPLACE>b</REPLACE></DIFF>" * 15_000,
    "blanks in a fence": "<TOOL_CALL>\n```\n" + " " * 900_000 + "\n</TOOL_CALL>",
    "ends of a file": '<REWRITE file="a.py">\n' + "</REWRITE>x\n" * 80_000,
    "brackets": "<TOOL_CALL>\n{" + "[" * 900_000 + "\n</TOOL_CALL>",
    "escaped quotes": '<TOOL_CALL>\n{"a": "' + '\\"' * 400_000 + "}\n</TOOL_CALL>",
    "what would take minutes to mend": '<TOOL_CALL>\n{"a": "' + '\\"' * 50_000 + '",}\n</TOOL_CALL>',
    "faults": '<TOOL_CALL>\n{"name": "look", "arguments": {"lines": [' + '"x",' * 200_000 + '"x"]}}\n</TOOL_CALL>',
    "fields": "<SEND_MESSAGE>\n" + "".join(f"k{number}: v\n" for number in range(50_000)) + "</SEND_MESSAGE>",
    "white space": "<TOOL_CALL>" + "\r\n" * 450_000,
}
SIGNS = {
    "less-than signs": "<" * 1_000_000,
    "less-than signs with names": "<a " * 330_000,
    "a run of backticks": "`" * 1_000_000,
    "backticks far from each other": "` x `` y ``` z\n" * 70_000,
    "runs of three on their lines": "x ``` y\n" * 120_000,
    "elements that never end": "x <a> <b c> " * 80_000,
    "elements of all names": "".join(f"x <a{number}> " for number in range(90_000)),
    "elements of all names that end": "".join(f"x <a{number}> </a{number}>\n" for number in range(40_000)),
    "elements of all names around blocks": (
        "".join(f"x <a{number}> " for number in range(40_000))
        + '\n<TOOL_CALL>\n{"name": "ping"}\n</TOOL_CALL>' * 500
        + "".join(f"</a{number}> " for number in range(40_000))
    ),
    "blocks in an element": "x <a>\n" + '<TOOL_CALL>\n{"name": "ping"}\n</TOOL_CALL>\n' * 20_000 + "</a>",
    "openings in an element": "x <a>\n" + "<tool_call><name>ping</name><params><a><![CDATA[\n" * 20_000 + "</a>",
    "thoughts that end at once": "<think></think>" * 60_000,
    "thoughts in brackets": "[think]" * 130_000,
    "channels": "<|channel|>analysis " * 50_000,
    "nearly tags": "".join(f"<TOOL_CALL{number}>\n" for number in range(60_000)),
    "odd tags": "[TOOL_CALL]\n" * 80_000,
    "comments in broken JSON": '<TOOL_CALL>\n{"name": /*' + "*" * 900_000 + "\n</TOOL_CALL>",
    "commas": '<TOOL_CALL>\n{"name": "look", "arguments": {"lines": [' + "1," * 400_000 + "x]}}\n</TOOL_CALL>",
}
LARGE |= {name: f"Not yet a TOOL_CALL.\n{text}" for name, text in SIGNS.items()}


@pytest.mark.parametrize("part", first(PART, 1))
@pytest.mark.parametrize("name", LARGE)
def test_a_reply_of_a_megabyte_is_read_at_once(name: str, part: int) -> None:
    text = LARGE[name]
    begin = time.process_time()
    found = read(text[: len(text) // part] + text[-END:], ALL, tools=TOOLS, agents=["bob"], pure={"look"}, ended=True)
    assert is_soon(time.process_time() - begin, LIMIT if part == 1 else PART_LIMIT)
    assert not isinstance(found, BlockCall)
    assert not isinstance(found, BlockRejection) or len(str(found)) < 20_000


def test_what_can_be_mended_at_all_is_mended_at_once() -> None:
    text = '<TOOL_CALL>\n{"name": "look", "arguments": {"path": "' + '\\"' * 40_000 + '",}}\n</TOOL_CALL>'
    begin = time.process_time()
    assert isinstance(read(text, ["tool_call"], tools=TOOLS, pure={"look"}), BlockCall)
    assert is_soon(time.process_time() - begin, LIMIT)


@pytest.mark.parametrize("sign", ["<", "`", "~", ">", "[", "&", "</", "<a", "\n", "{"])
def test_a_reply_of_one_sign_is_read_within_a_second(sign: str) -> None:
    def measure(text: str) -> float:
        begin = time.process_time()
        read(text, ALL, tools=TOOLS, agents=["bob"], ended=True)
        return time.process_time() - begin

    for text in (sign * (1_000_000 // len(sign)), "<TOOL_CALL>\n" + sign * (1_000_000 // len(sign))):
        assert any(measure(text) < 1.0 * measure_slowness() for _ in range(5)), "other programs only add time"


def test_a_few_aliases_cannot_stand_for_gigabytes() -> None:
    names = "abcdefghijklmnopqrst"
    bomb = "\n".join(f"{name}: &{name} [*{before}, *{before}]" for before, name in itertools.pairwise(names))
    found = read(f"<SEND_MESSAGE>\na: &a [x, x]\n{bomb}\n</SEND_MESSAGE>", ["send_message"], agents=["bob"])
    assert isinstance(found, BlockRejection)
    assert "aliases" in found.why


@pytest.mark.parametrize("depth", [65, 5_000, 200_000])
@pytest.mark.parametrize(("opening", "closing"), [('{"a": ', "}"), ("[", "]")])
def test_deep_json_is_refused(depth: int, opening: str, closing: str) -> None:
    deep = opening * depth + "1" + closing * depth
    found = read(f'<TOOL_CALL>\n{{"name": "loose", "arguments": {{"a": {deep}}}}}\n</TOOL_CALL>', ALL, tools=TOOLS)
    assert isinstance(found, BlockRejection)
    assert "nested" in found.why


@pytest.mark.parametrize("depth", [70, 1_900])
def test_deep_json_that_would_have_to_be_mended_is_refused(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    text = f'<TOOL_CALL>\n{{"name": "loose", "arguments": {{"a": {deep},}}}}\n</TOOL_CALL>'
    found = read(text, ["tool_call"], tools=TOOLS, pure={"loose"})
    assert isinstance(found, BlockRejection)
    assert "cannot be read" in found.why or "nested" in found.why


@pytest.mark.parametrize("body", ["a: " + "[" * 70 + "]" * 70, "- " * 70 + "a", "a: " + "[" * 100_000])
def test_deep_yaml_is_refused(body: str) -> None:
    found = read(f"<TOOL_CALL>\n{body}\n</TOOL_CALL>", ["tool_call"], tools=TOOLS)
    assert isinstance(found, BlockRejection)
    assert "nested deeper" in found.why


def test_what_is_as_deep_as_it_may_be_is_read() -> None:
    deep = "[" * 60 + "]" * 60
    text = f'<TOOL_CALL>\n{{"name": "loose", "arguments": {{"a": {deep}}}}}\n</TOOL_CALL>'
    assert isinstance(read(text, ["tool_call"], tools=TOOLS), BlockCall)
