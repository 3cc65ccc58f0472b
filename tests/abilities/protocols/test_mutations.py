"""Damaged replies: the very call that was meant runs, or the model is told why nothing did. Nothing else runs."""

import re
from collections.abc import Callable

import pytest

from greenroom.abilities.protocols.parse_result import BlockCall, BlockRejection, ProtocolName
from greenroom.abilities.protocols.text_calls import PROTOCOLS, read, write
from greenroom.core.ports.model import ToolCall
from tests.abilities.protocols.house import AGENTS, ALL, PURE, TOOLS
from tests.sampling import sampled

# Reaches no line that other tests do not, and to be measured takes it twice as long.
pytestmark = pytest.mark.no_cover

Mutation = Callable[[str], str]

TEXT = "if a < b:\n    say('<x> & ]]>')\n\n# `x` ```\n"
CALLS: dict[ProtocolName, tuple[ToolCall, ...]] = {
    "tool_call": (
        ToolCall(call_id="", name="save", arguments={"path": "a.py", "text": TEXT}),
        ToolCall(call_id="", name="look", arguments={"path": "a\u200b.py", "lines": [1, 2]}),
    ),
    "xml_tool": (
        ToolCall(call_id="", name="save", arguments={"path": "a.py", "text": TEXT}),
        ToolCall(call_id="", name="ping", arguments={}),
    ),
    "send_message": (
        ToolCall(call_id="", name="send_message", arguments={"receiver": "bob", "message": TEXT, "handoff": True}),
    ),
    "patch": (
        ToolCall(
            call_id="",
            name="patch",
            arguments={"file": "a.py", "edits": [{"replace": TEXT, "search": "a < b"}, {"replace": "", "search": "c"}]},
        ),
    ),
    "rewrite": (
        ToolCall(call_id="", name="rewrite", arguments={"file": "a.py", "content": TEXT}),
        ToolCall(call_id="", name="rewrite", arguments={"file": "a.py", "content": "<![CDATA[a]]>\n<TOOL_CALL>\n"}),
    ),
}
CASES = [(name, call) for name, calls in CALLS.items() for call in calls]


def tag_of(block: str) -> str:
    found = re.search(r"[A-Za-z_]{5,}", block)
    return found[0] if found else "x"


def around(before: str, after: str = "") -> Mutation:
    return lambda block: f"{before}{block}{after}"


def at_end(change: Callable[[str], str]) -> Mutation:
    """Change the end tag."""
    return lambda block: block[: block.rfind("</")] + change(block[block.rfind("</") :])


def at_start(change: Callable[[str], str]) -> Mutation:
    """Change the opening tag."""
    return lambda block: change(block[: block.find(">") + 1]) + block[block.find(">") + 1 :]


def in_tags(sign: str) -> Mutation:
    """Put an invisible sign into both tags, and between the tags and the text."""

    def mutate(block: str) -> str:
        block = at_end(lambda end: end[:3] + sign + end[3:])(block)
        return at_start(lambda tag: f"{tag[:3]}{sign}{tag[3:-1]}{sign}>{sign}")(block)

    return mutate


MUTATIONS: dict[str, Mutation] = {
    **{f"U+{ord(sign):04X} around": around(sign, sign) for sign in "\ufeff\u200b\u200c\u200d\u2060\xad\xa0\u3000"},
    **{f"U+{ord(sign):04X} in the tags": in_tags(sign) for sign in "\ufeff\u200b"},
    "CRLF": lambda block: re.sub(r"(?<!\r)\n", "\r\n", block),
    "twice": lambda block: f"{block}\n{block}",
    "twice, with prose": lambda block: f"{block}\n\nand then\n\n{block}",
    "in itself": lambda block: block.replace("\n", f"\n{block}\n", 1),
    "no end": at_end(lambda _: ""),
    "half an end": at_end(lambda end: end[:-3]),
    "the end twice": at_end(lambda end: f"{end}\n{end}"),
    "the end as an opening": at_end(lambda end: end.replace("/", "")),
    "another end": at_end(lambda _: "</tool>"),
    "the end in the other case": at_end(str.swapcase),
    "an escaped end": at_end(lambda end: end.replace("<", "&lt;").replace(">", "&gt;")),
    "a blank in the end": at_end(lambda end: end.replace("</", "< /")),
    "no opening": at_start(lambda _: ""),
    "half an opening": at_start(lambda tag: tag[1:]),
    "an opening without its bracket": at_start(lambda tag: tag[:-1]),
    "the opening twice": at_start(lambda tag: f"{tag}\n{tag}"),
    "the opening in the other case": at_start(lambda tag: tag.replace(tag_of(tag), tag_of(tag).swapcase(), 1)),
    "an attribute": at_start(lambda tag: tag[:-1] + ' id="1">'),
    "closed at once": at_start(lambda tag: tag[:-1] + "/>"),
    "a line break in the opening": at_start(lambda tag: tag[:-1] + "\n>"),
    "entities": lambda block: block.replace("<", "&lt;").replace(">", "&gt;"),
    "wide brackets": lambda block: block.replace("<", "＜").replace(">", "＞"),
    "square brackets": lambda block: at_end(lambda end: f"[{end[1:-1]}]")(
        at_start(lambda tag: f"[{tag[1:-1]}]")(block)
    ),
    **{
        f"in {name}": around(*marks)
        for name, marks in {
            "a fence": ("````\n", "\n````"),
            "a fence that is not closed": ("````xml\n", ""),
            "tildes": ("~~~~\n", "\n~~~~"),
            "backticks": ("`", "`"),
            "a comment": ("<!--\n", "\n-->"),
            "CDATA": ("<![CDATA[\n", "\n]]>"),
            "an example": ("<example>\n", "\n</example>"),
            "an example that is not closed": ("<example>\n", ""),
            "a forum": ("[code]\n", "\n[/code]"),
            "TeX": ("\\begin{verbatim}\n", "\n\\end{verbatim}"),
            "thoughts": ("<think>\n", "\n</think>\n"),
            "thoughts that are not closed": ("<think>\n", ""),
            "thoughts that only end": ("", "\n</think>\n"),
            "quotation marks": ('"', '"'),
            "bold letters": ("**", "**"),
            "a sentence": ("I write ", " now."),
            "a list": ("- ", ""),
            "code by blanks": ("    ", ""),
        }.items()
    },
    "behind thoughts": around("<think>hm</think>\n"),
    "behind the end of thoughts": around("hm</think>\n"),
    "behind prose": around("I do it.\n\n", "\n\nDone."),
    "behind a declaration": around('<?xml version="1.0"?>\n'),
    "in a wrapper": around("<tool_calls>\n", "\n</tool_calls>"),
    "quoted": lambda block: "\n".join(f"> {line}" for line in block.split("\n")),
}


def check(text: str, meant: ToolCall, name: ProtocolName, *protocols: ProtocolName, is_whole: bool = True) -> None:
    """Check a reply. A message that was cut or damaged twice may look whole, if the provider says that it ended."""
    for ended in (None, False, True)[: 3 if is_whole or name != "send_message" else 2]:
        found = read(text, protocols or (name,), tools=TOOLS, agents=AGENTS, pure=PURE, ended=ended)
        if isinstance(found, BlockCall):
            assert str(found.call).replace("\\r", "") == str(meant), text  # line ends of a content are kept
        else:
            assert found.why if isinstance(found, BlockRejection) else found.hint, f"lost: {text!r}"


OFTEN = ("U+200B in the tags", "CRLF", "twice", "no end", "no opening", "in a fence", "in thoughts", "behind prose")


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_damaged_block_is_run_as_it_is_meant_or_not_at_all(mutation: str) -> None:
    for name, call in CASES:
        check(MUTATIONS[mutation](write(call, name)), call, name)
        check(MUTATIONS[mutation](write(call, name)), call, name, *ALL)


@pytest.mark.parametrize("first", sampled(MUTATIONS, OFTEN))
def test_a_block_that_is_damaged_twice_is_run_as_it_is_meant_or_not_at_all(first: str) -> None:
    for second in MUTATIONS.values():
        for name, call in CASES:
            text = second(MUTATIONS[first](write(call, name)))
            if re.search(rf"<{PROTOCOLS[name].tag}[ >]", text):
                check(text, call, name, is_whole=False)


@pytest.mark.parametrize(("name", "call"), CASES)
def test_a_block_that_is_cut_anywhere_is_run_as_it_is_meant_or_not_at_all(name: ProtocolName, call: ToolCall) -> None:
    block = write(call, name)
    for at in range(2, len(block)):
        check(block[:at], call, name, is_whole=False)
        check(f"I do it.\n{block[:at]}", call, name, is_whole=False)
