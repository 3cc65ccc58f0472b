"""Texts and calls that are designed to be misread."""

from typing import Final

from hypothesis import strategies as st

from greenroom.abilities.protocols.parse_result import ProtocolName
from greenroom.core.ports.model import ToolCall
from tests.abilities.protocols.house import AGENTS

TAGS: Final = ("TOOL_CALL", "tool_call", "SEND_MESSAGE", "PATCH", "REWRITE", "name", "params", "path", "DIFF", "SEARCH")
PIECES: Final = (
    *(f"<{tag}>" for tag in TAGS),
    *(f"</{tag}>" for tag in TAGS),
    *(
        '<REWRITE file="a">',
        "<![CDATA[",
        "]]>",
        "```",
        "````",
        "~~~",
        "```json",
        "`",
        "<think>",
        "</think>",
        "<!--",
        "-->",
    ),
    *("\n", "\n", "\n\n", "\r\n", "\r", " ", "  ", "    ", "\t", "- ", "> ", "\\", '"', "'", ":", "#", "|", "&", "*"),
    *(
        "{",
        "}",
        "[",
        "]",
        "to: bob",
        "content: |2",
        "content: x",
        "a",
        "b",
        "0",
        "é",
        "文",
        "😀",
        "\x85",
        "\u2028",
        "\u200b",
        "\ufeff",
        "\xa0",
        "\x00",
    ),
    *('{"name": "ping"}', "<name>ping</name>", "<REPLACE>b</REPLACE>", "<SEARCH>a</SEARCH>"),
)

odd: Final = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=14).map("".join)
solid: Final = odd.filter(lambda text: bool(text.strip()))
words: Final = st.text(alphabet="abc ,.éß文", max_size=30)
paths: Final = st.text(alphabet="abc/._- é文", min_size=1, max_size=12).map(str.strip).filter(bool)
keys: Final = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,6}", fullmatch=True)
plain: Final = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | odd
data: Final = st.recursive(
    plain, lambda more: st.lists(more, max_size=3) | st.dictionaries(odd, more, max_size=3), max_leaves=8
)
finite: Final = st.floats(allow_nan=False, allow_infinity=False)

looked: Final = st.fixed_dictionaries(
    {"path": odd},
    optional={
        "lines": st.lists(st.integers(), max_size=3),
        "depth": st.integers(min_value=0),
        "deep": st.booleans(),
        "ratio": finite,
        "limit": st.none() | st.integers(),
        "mode": st.sampled_from(["fast", "slow"]),
        "filter": st.dictionaries(st.just("ext"), odd),
    },
)
edit: Final = st.fixed_dictionaries({"search": solid, "replace": odd}) | st.fixed_dictionaries(
    {"search_start": solid, "search_end": solid, "replace": odd},
    optional={"range": st.tuples(st.integers(1, 50), st.integers(50, 99)).map(list)},
)


def call(name: str, arguments: st.SearchStrategy[dict[str, object]]) -> st.SearchStrategy[ToolCall]:
    """Return calls of this tool with these arguments."""
    return arguments.map(lambda found: ToolCall(call_id="", name=name, arguments=found))


CALLS: Final[dict[ProtocolName, st.SearchStrategy[ToolCall]]] = {
    "tool_call": call("loose", st.dictionaries(odd, data, max_size=4)) | call("look", looked),
    "xml_tool": call("loose", st.dictionaries(keys, odd, max_size=4)) | call("look", looked),
    "send_message": call(
        "send_message",
        st.fixed_dictionaries(
            {"receiver": st.sampled_from(sorted(AGENTS)), "message": solid, "handoff": st.just(value=True)}
        ),
    ),
    "patch": call("patch", st.fixed_dictionaries({"file": paths, "edits": st.lists(edit, min_size=1, max_size=3)})),
    "rewrite": call("rewrite", st.fixed_dictionaries({"file": paths, "content": odd})),
}
written: Final = st.sampled_from(sorted(CALLS)).flatmap(lambda name: st.tuples(st.just(name), CALLS[name]))
