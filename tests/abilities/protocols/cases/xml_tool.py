"""XML tool calls, well and badly written."""

from typing import Final

from tests.abilities.protocols.house import Refuses, Row, Runs, Says, looks, mends, offers, refuses


def block(params: str, name: str = "look") -> str:
    return f"<tool_call>\n<name>{name}</name>\n<params>\n{params}\n</params>\n</tool_call>"


PATH: Final = "<path>a.py</path>"

WELL: Final[dict[str, tuple[str, Runs]]] = {
    "plain": (block(PATH), looks()),
    "on one line": ("<tool_call><name>look</name><params><path>a.py</path></params></tool_call>", looks()),
    "indented": (
        "<tool_call>\n  <name>look</name>\n  <params>\n    <path>a.py</path>\n  </params>\n</tool_call>",
        looks(),
    ),
    "spaces around the name": (block(PATH, name="\n look \n"), looks()),
    "no parameters": ("<tool_call>\n<name>ping</name>\n</tool_call>", Runs(tool="ping", arguments={})),
    "empty parameters": (block("", name="ping"), Runs(tool="ping", arguments={})),
    "parameters closed at once": (
        "<tool_call><name>ping</name><params/></tool_call>",
        Runs(tool="ping", arguments={}),
    ),
    "less and ampersand": (block("<path>a<b && c</path>"), looks("a<b && c")),
    "entities stay": (block("<path>&lt;a&amp;&gt;</path>"), looks("&lt;a&amp;&gt;")),
    "other tags stay": (block("<path><b>x</b><br/><!-- y --></path>"), looks("<b>x</b><br/><!-- y -->")),
    "tags of the call stay": (block("<path><name>x</name><params></path>"), looks("<name>x</name><params>")),
    "an end tag of the call stays": (block("<path>a</tool_call>b</path>"), looks("a</tool_call>b")),
    "lines": (block("<path>\na\n b\n</path>"), looks("a\n b")),
    "blank lines at both ends": (block("<path>\n\na\n\n</path>"), looks("\na\n")),
    "spaces at both ends": (block("<path>  a </path>"), looks("  a ")),
    "an empty text": (block("<path></path>"), looks("")),
    "CRLF in a text": (block("<path>\r\na\r\nb\r\n</path>"), looks("a\r\nb")),
    "CRLF everywhere": (block(PATH).replace("\n", "\r\n"), looks()),
    "a fence in a text": (block("<path>\n```py\nx\n```\n</path>"), looks("```py\nx\n```")),
    "CDATA": (block("<path><![CDATA[a</path>b]]></path>"), looks("a</path>b")),
    "CDATA with lines": (block("<path><![CDATA[\na\nb\n]]></path>"), looks("a\nb")),
    "CDATA with white space around": (block("<path>\n  <![CDATA[a]]>\n</path>"), looks("a")),
    "CDATA in two sections": (block("<path><![CDATA[a]]]]><![CDATA[>b]]></path>"), looks("a]]>b")),
    "CDATA with both end tags": (
        block("<path><![CDATA[</params></tool_call>]]></path>"),
        looks("</params></tool_call>"),
    ),
    "CDATA in the middle of a text stays": (block("<path>a <![CDATA[b]]></path>"), looks("a <![CDATA[b]]>")),
    "invisible signs between the tags": (block(PATH).replace("\n", "\ufeff\n\u200b"), looks()),
    "invisible signs in a text": (block("<path>\ufeffa\u200b.py</path>"), looks("\ufeffa\u200b.py")),
    "CDATA around everything": (
        f"<tool_call><![CDATA[<name>look</name><params>{PATH}</params>]]></tool_call>",
        looks(),
    ),
    "a fence around everything": (
        f"<tool_call>\n```xml\n<name>look</name>\n<params>{PATH}</params>\n```\n</tool_call>",
        looks(),
    ),
    "an integer": (block(f"{PATH}<depth> 3 </depth>"), looks(depth=3)),
    "a number": (block(f"{PATH}<ratio>-1.5e2</ratio>"), looks(ratio=-150.0)),
    "a whole number where any will do": (block(f"{PATH}<ratio>2</ratio>"), looks(ratio=2)),
    "a truth": (block(f"{PATH}<deep>True</deep>"), looks(deep=True)),
    "a list": (block(f"{PATH}<lines>[1, 2]</lines>"), looks(lines=[1, 2])),
    "an object by reference": (block(f'{PATH}<filter>{{"ext": "py"}}</filter>'), looks(filter={"ext": "py"})),
    "null where it may be": (block(f"{PATH}<limit>null</limit>"), looks(limit=None)),
    "a number where null may be": (block(f"{PATH}<limit>5</limit>"), looks(limit=5)),
    "the word null where a text may be": (block(f"{PATH}<note>null</note>"), looks(note="null")),
    "a number where a text is wanted": (block("<path>007</path>"), looks("007")),
    "a choice": (block(f"{PATH}<mode>fast</mode>"), looks(mode="fast")),
    "a choice of numbers": (block(f"{PATH}<level>2</level>"), looks(level=2)),
    "text where the schema says nothing": (
        block("<a>5</a>", name="loose"),
        Runs(tool="loose", arguments={"a": "5"}),
    ),
    "a side effect": (
        block("<path>a</path><text>x <y</text>", name="save"),
        Runs(tool="save", arguments={"path": "a", "text": "x <y"}),
    ),
    "a sub-agent": (
        block("<agent_name>bob</agent_name><instruction>Do\nit.</instruction>", name="call_subagent"),
        Runs(tool="call_subagent", arguments={"agent_name": "bob", "instruction": "Do\nit."}),
    ),
    "no end tag": (
        block(PATH).removesuffix("</tool_call>"),
        Runs(tool="look", arguments={"path": "a.py"}, note="missing"),
    ),
    "no end tag and prose": (
        block(PATH).replace("</tool_call>", "That is it."),
        Runs(tool="look", arguments={"path": "a.py"}, note="missing"),
    ),
    "JSON inside": ('<tool_call>\n{"name": "look", "arguments": {"path": "a.py"}}\n</tool_call>', looks()),
    "JSON inside, in a fence": (
        '<tool_call>\n```\n{"name": "look", "arguments": {"path": "</tool_call>"}}\n```\n</tool_call>',
        looks("</tool_call>"),
    ),
    "JSON for parameters": (block('{"path": "a.py"}'), mends()),
}

BADLY: Final[dict[str, tuple[str, Refuses | Says]]] = {
    "cut off in the name": ("<tool_call><name>lo", refuses("does not begin with <name>")),
    "cut off behind the name": ("<tool_call><name>ping</name>", refuses("may not be whole")),
    "cut off in a text": ("<tool_call><name>look</name><params><path>a.p", refuses("'path' is not closed")),
    "cut off behind a text": (
        f"<tool_call><name>look</name><params>{PATH}",
        refuses("neither a parameter nor </params>"),
    ),
    "cut off in CDATA": ("<tool_call><name>look</name><params><path><![CDATA[a", refuses("'path' is not closed")),
    "empty": ("<tool_call></tool_call>", refuses("does not begin with <name>")),
    "prose": ("<tool_call>\nlook at a.py\n</tool_call>", refuses("does not begin with <name>")),
    "no name": (f"<tool_call><params>{PATH}</params></tool_call>", refuses("does not begin with <name>")),
    "a blank name": (block(PATH, name=" "), refuses("does not begin with <name>")),
    "name behind the parameters": (
        f"<tool_call><params>{PATH}</params><name>look</name></tool_call>",
        refuses("does not begin with <name>"),
    ),
    "the name as an attribute": (
        '<tool_call name="look">\n<params></params>\n</tool_call>',
        refuses("just <tool_call>"),
    ),
    "parameters outside": (
        f"<tool_call><name>look</name>{PATH}</tool_call>",
        refuses("something behind the parameters"),
    ),
    "parameters not closed": (
        f"<tool_call>\n<name>look</name>\n<params>\n{PATH}\n</tool_call>",
        refuses("neither a parameter nor"),
    ),
    "text among the parameters": (block(f"{PATH} and then"), refuses("what follows the parameter 'path'")),
    "a text not closed": (block("<path>a.py"), refuses("'path' is not closed")),
    "a text closed by another tag": (block("<path>a.py</paths>"), refuses("'path' is not closed")),
    "a text with its own end tag": (block("<path>a</path>b</path>"), refuses("neither a parameter nor")),
    "a text with its own opening tag": (block("<path><path>x</path>"), refuses("holds its own tag")),
    "a text with a whole call of its own": (
        block("<path>like <path>b</path></params></tool_call> here</path>"),
        refuses("holds its own tag"),
    ),
    "a text with its own element": (block("<path><path>a</path></path>"), refuses("holds its own tag")),
    "text behind CDATA": (block("<path><![CDATA[a]]> b</path>"), refuses("'path' is not closed")),
    "a parameter twice": (block(f"{PATH}<path>b</path>"), refuses("'path' is there twice")),
    "a parameter with an attribute": (block('<path type="x">a</path>'), refuses("neither a parameter nor")),
    "something behind the parameters": (
        f"<tool_call><name>look</name><params>{PATH}</params>and<x/></tool_call>",
        refuses("something behind the parameters"),
    ),
    "an unknown tool": (block("", name="fly"), refuses("no tool 'fly'")),
    "a misspelt tool": (block(PATH, name="looks"), offers("no tool 'looks'", "look, loose")),
    "a parameter missing": (block("", name="look"), refuses('"path" is a required property')),
    "a parameter unknown": (block(f"{PATH}<x>1</x>"), refuses("'x' was unexpected")),
    "no integer": (block(f"{PATH}<depth>three</depth>"), refuses('depth: "three" is not of type "integer"')),
    "a fraction for an integer": (block(f"{PATH}<depth>1.5</depth>"), refuses('depth: 1.5 is not of type "integer"')),
    "an integer out of range": (block(f"{PATH}<depth>-1</depth>"), refuses("depth:")),
    "no truth": (block(f"{PATH}<deep>yes</deep>"), refuses('deep: "yes" is not of type "boolean"')),
    "no list": (block(f"{PATH}<lines>1, 2</lines>"), refuses('lines: "1, 2" is not of type "array"')),
    "a list cut off": (block(f"{PATH}<lines>[1, 2</lines>"), refuses('lines: "[1, 2" is not of type "array"')),
    "a list of the wrong things": (block(f'{PATH}<lines>["a"]</lines>'), refuses("lines.0:")),
    "an object for a list": (block(f"{PATH}<lines>{{}}</lines>"), refuses('is not of type "array"')),
    "no choice": (block(f"{PATH}<mode>quick</mode>"), refuses("mode:")),
    "nothing for a number": (block(f"{PATH}<depth></depth>"), refuses('depth: "" is not of type "integer"')),
    "an unknown sub-agent": (
        block("<agent_name>eve</agent_name><instruction>x</instruction>", name="call_subagent"),
        refuses("no agent 'eve'", "amy, bob, 老王"),
    ),
    "a misspelt sub-agent": (
        block("<agent_name>bobb</agent_name><instruction>x</instruction>", name="call_subagent"),
        offers("no agent 'bobb'"),
    ),
    "a sub-agent without instruction": (
        block("<agent_name>bob</agent_name>", name="call_subagent"),
        refuses('"instruction" is a required property'),
    ),
    "JSON for parameters, and a side effect": (
        block('{"path": "a", "text": "b"}', name="save"),
        offers("are JSON, not XML"),
    ),
    "JSON inside, cut off": ('<tool_call>\n{"name": "look"\n</tool_call>', refuses("cut off")),
    "an end tag too many": (block(PATH) + "\n</tool_call>", refuses("more often than")),
    "the other case": (block(PATH).replace("tool_call", "TOOL_CALL"), Says(hint="Write it exactly so: <tool_call>")),
    "closed at once": ("<tool_call/>", Says(hint="<tool_call/> is not a tag here")),
}

ROWS: Final = tuple(
    Row(name=f"xml: {name}", text=text, wants=wants, protocols=("xml_tool",))
    for name, (text, wants) in (WELL | BADLY).items()
)
