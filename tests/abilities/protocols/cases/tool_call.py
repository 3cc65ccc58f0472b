"""TOOL_CALL blocks, well and badly written."""

from typing import Final

from tests.abilities.protocols.house import Refuses, Row, Runs, Says, looks, mends, offers, refuses


def block(body: str) -> str:
    return f"<TOOL_CALL>\n{body}\n</TOOL_CALL>"


LOOK: Final = '{"name": "look", "arguments": {"path": "a.py"}}'
SAVE: Final = '{"name": "save", "arguments": {"path": "a", "text": "b"}}'
ADDED: Final = Runs(tool="look", arguments={"path": "a.py"}, note="was missing and was added")

WELL: Final[dict[str, tuple[str, Runs]]] = {
    "plain": (block(LOOK), looks()),
    "on one line": (f"<TOOL_CALL>{LOOK}</TOOL_CALL>", looks()),
    "spread over lines": (block('{\n  "name": "look",\n  "arguments": {\n    "path": "a.py"\n  }\n}'), looks()),
    "with prose around": (
        f"I look first.\n\n{block(LOOK)}\n\nThen I go on.",
        Runs(tool="look", arguments={"path": "a.py"}, said="I look first.\n\n\n\nThen I go on."),
    ),
    "indented by two spaces": (f"  <TOOL_CALL>\n  {LOOK}\n  </TOOL_CALL>", looks()),
    "with a fence inside": (block(f"```json\n{LOOK}\n```"), looks()),
    "with a fence of tildes inside": (block(f"~~~\n{LOOK}\n~~~"), looks()),
    "with CDATA inside": (block(f"<![CDATA[{LOOK}]]>"), looks()),
    "with CRLF": (block(LOOK).replace("\n", "\r\n"), looks()),
    "with CR": (block(LOOK).replace("\n", "\r"), looks()),
    "with spaces in the tags": (f"<TOOL_CALL >\n{LOOK}\n</TOOL_CALL >", looks()),
    "with what is wanted": (block('{"want": "to know", "name": "look", "arguments": {"path": "a.py"}}'), looks()),
    "its end tag in a text": (
        block('{"name": "look", "arguments": {"path": "a </TOOL_CALL> b"}}'),
        looks("a </TOOL_CALL> b"),
    ),
    "both tags in a text": (
        block('{"name": "look", "arguments": {"path": "<TOOL_CALL>{}</TOOL_CALL>"}}'),
        looks("<TOOL_CALL>{}</TOOL_CALL>"),
    ),
    "its end tag in a text and no other": (
        '<TOOL_CALL>\n{"name": "look", "arguments": {"path": "</TOOL_CALL>"}}',
        Runs(tool="look", arguments={"path": "</TOOL_CALL>"}, note="was missing"),
    ),
    "a fence in a text": (block('{"name": "look", "arguments": {"path": "```\\n```"}}'), looks("```\n```")),
    "less and ampersand": (block('{"name": "look", "arguments": {"path": "a<b && c"}}'), looks("a<b && c")),
    "Chinese": (block('{"name": "look", "arguments": {"path": "文件.py"}}'), looks("文件.py")),
    "an escaped emoji": (block('{"name": "look", "arguments": {"path": "\\ud83d\\ude00"}}'), looks("😀")),
    "all types": (
        block(
            '{"name": "look", "arguments": {"path": "a.py", "lines": [1], "deep": true, "ratio": 0.5, "limit": null}}'
        ),
        looks(lines=[1], deep=True, ratio=0.5, limit=None),
    ),
    "no arguments": (block('{"name": "ping"}'), Runs(tool="ping", arguments={})),
    "null arguments": (block('{"name": "ping", "arguments": null}'), Runs(tool="ping", arguments={})),
    "arguments as a text of JSON": (block('{"name": "look", "arguments": "{\\"path\\": \\"a.py\\"}"}'), looks()),
    "a side effect": (block(SAVE), Runs(tool="save", arguments={"path": "a", "text": "b"})),
    "YAML": (block("name: look\narguments:\n  path: a.py"), looks()),
    "YAML with lines": (
        block("want: x\nname: save\narguments:\n  path: a\n  text: |2\n    x\n     y"),
        Runs(tool="save", arguments={"path": "a", "text": "x\n y\n"}),
    ),
    "YAML in a fence": (block("```yaml\nname: look\narguments:\n  path: a.py\n```"), looks()),
    "YAML words that YAML 1.1 misreads": (
        block("name: loose\narguments: {a: no, b: 1:30, c: 2026-01-01, d: on, e: ~}"),
        Runs(tool="loose", arguments={"a": "no", "b": "1:30", "c": "2026-01-01", "d": "on", "e": None}),
    ),
    "YAML that looks like numbers where texts are wanted": (
        block("name: save\narguments: {path: 1.10, text: ~, mode: 7}"),
        Runs(tool="save", arguments={"path": "1.10", "text": "~", "mode": 7}),
    ),
    "YAML that looks like a number inside an object": (
        block("name: look\narguments:\n  path: 1e3\n  lines: [1, 2]\n  filter:\n    ext: 007"),
        looks("1e3", lines=[1, 2], filter={"ext": "007"}),
    ),
    "invisible signs around the JSON": (f"<TOOL_CALL>\u200b{LOOK}\ufeff</TOOL_CALL>", looks()),
    "no end tag": (f"<TOOL_CALL>\n{LOOK}", ADDED),
    "no end tag and prose": (f"<TOOL_CALL>\n{LOOK}\nThat should do.", ADDED),
    "no end tag in a fence of its own": (f"<TOOL_CALL>\n```json\n{LOOK}\n```", ADDED),
    "half an end tag": (f"<TOOL_CALL>\n{LOOK}\n</TOOL_CA", ADDED),
    "no end tag, and a side effect": (
        f"<TOOL_CALL>\n{SAVE}",
        Runs(tool="save", arguments={"path": "a", "text": "b"}, note="was missing"),
    ),
    "a mistake that can be mended: trailing comma": (
        block('{"name": "look", "arguments": {"path": "a.py",}}'),
        mends(),
    ),
    "a mistake that can be mended: single quotes": (block("{'name': 'look', 'arguments': {'path': 'a.py'}}"), mends()),
    "a mistake that can be mended: a comment": (
        block('{"name": "look", // why\n "arguments": {"path": "a.py"}}'),
        mends(),
    ),
    "a mistake that can be mended: Python's words": (
        block('{"name": "look", "arguments": {"path": "a.py", "deep": True}}'),
        mends(deep=True),
    ),
    "a mistake that can be mended: a number as text": (
        block('{"name": "look", "arguments": {"path": "a.py", "depth": "3"}}'),
        mends(depth=3),
    ),
    "a mistake that can be mended: a list as text": (
        block('{"name": "look", "arguments": {"path": "a.py", "lines": "[1, 2]"}}'),
        mends(lines=[1, 2]),
    ),
    "a mistake that can be mended: other names": (block('{"tool": "look", "parameters": {"path": "a.py"}}'), mends()),
    "a mistake that can be mended: its end tag in a broken text": (
        block('{"name": "look", "arguments": {"path": "a </TOOL_CALL> b",}}'),
        mends("a </TOOL_CALL> b"),
    ),
    "a mistake that can be mended: a list of one": (block(f"[{LOOK}]"), mends()),
}

BADLY: Final[dict[str, tuple[str, Refuses | Says]]] = {
    "cut off in a text": ('<TOOL_CALL>\n{"name": "look", "arguments": {"path": "a.p', refuses("cut off")),
    "cut off between": ('<TOOL_CALL>\n{"name": "look", "arguments": {', refuses("cut off")),
    "cut off, with its end tag": (block('{"name": "look", "arguments": {"path": "a.py"}'), refuses("cut off")),
    "cut off after a comma, with its end tag": (
        block('{"name": "look", "arguments": {"path": "a.py",'),
        refuses("cut off"),
    ),
    "empty": (block(""), refuses("it is empty")),
    "only its opening tag": ("<TOOL_CALL>", refuses("it is empty")),
    "prose": (block("please look at a.py"), refuses("holds no object")),
    "prose with a colon twice": (block("a: b: c"), refuses("neither JSON nor YAML")),
    "a number": (block("42"), refuses("holds no object")),
    "two calls in one block": (block(f"{LOOK}\n{LOOK}"), refuses("cannot be read")),
    "a list of two": (block(f"[{LOOK}, {LOOK}]"), refuses("only one call at a time")),
    "no name": (block('{"arguments": {}}'), refuses("'name' is missing")),
    "a blank name": (block('{"name": " ", "arguments": {}}'), refuses("'name' is missing")),
    "a name that is none": (block('{"name": 7, "arguments": {}}'), refuses("'name' is missing")),
    "a list for arguments": (block('{"name": "look", "arguments": ["a.py"]}'), refuses("'arguments' is not an object")),
    "broken text for arguments": (block('{"name": "look", "arguments": "{oops"}'), refuses("is a text and no JSON")),
    "a field too many": (block('{"name": "ping", "path": "a.py"}'), refuses("'path' cannot stand beside")),
    "an unknown tool": (
        block('{"name": "fly", "arguments": {}}'),
        refuses("no tool 'fly'", "broken, look, loose, ping"),
    ),
    "a misspelt tool": (block('{"name": "lok", "arguments": {"path": "a.py"}}'), offers("no tool 'lok'")),
    "a misspelt tool and wrong arguments": (block('{"name": "lok", "arguments": {}}'), refuses("no tool 'lok'")),
    "an argument missing": (block('{"name": "look", "arguments": {}}'), refuses("'look' do not fit", '"path"')),
    "an argument unknown": (
        block('{"name": "look", "arguments": {"path": "a", "x": 1}}'),
        refuses("'x' was unexpected"),
    ),
    "an argument of the wrong type": (block('{"name": "look", "arguments": {"path": 1}}'), refuses("path: 1 is not")),
    "an argument that is no number, as text": (
        block('{"name": "look", "arguments": {"path": "a", "depth": "x"}}'),
        refuses('depth: "x" is not of type "integer"'),
    ),
    "an argument out of range": (block('{"name": "look", "arguments": {"path": "a", "depth": -1}}'), refuses("depth:")),
    "an argument that is no choice": (
        block('{"name": "look", "arguments": {"path": "a", "mode": "x"}}'),
        refuses("mode:"),
    ),
    "the same key twice": (block('{"name": "ping", "name": "ping"}'), refuses("'name'", "twice")),
    "NaN": (block('{"name": "loose", "arguments": {"a": NaN}}'), refuses("NaN is not JSON")),
    "a number beyond all": (block('{"name": "loose", "arguments": {"a": 1e999}}'), refuses("too large")),
    "half a character": (block('{"name": "loose", "arguments": {"a": "\\ud800"}}'), refuses("half a character")),
    "half a character as it is": (block(LOOK) + "\ud800", refuses("half a character")),
    "a tool whose schema is broken": (
        block('{"name": "broken", "arguments": {}}'),
        refuses("its own schema is broken"),
    ),
    "trailing comma, and a side effect": (
        block('{"name": "save", "arguments": {"path": "a", "text": "b",}}'),
        offers("its JSON is not valid"),
    ),
    "raw line break in a text, and a side effect": (
        block('{"name": "save", "arguments": {"path": "a", "text": "b\nc"}}'),
        offers("its JSON is not valid"),
    ),
    "quotes in a text, and a side effect": (
        block('{"name": "save", "arguments": {"path": "a", "text": "say "hi" now"}}'),
        refuses("cannot be read", "column"),
    ),
    "a number as text, and a side effect": (
        block('{"name": "save", "arguments": {"path": "a", "text": "b", "mode": "7"}}'),
        offers('"7" is not of type "integer"'),
    ),
    "other names, and a side effect": (
        block('{"tool": "save", "args": {"path": "a", "text": "b"}}'),
        offers("'arguments'"),
    ),
    "trailing comma, and no end tag": ('<TOOL_CALL>\n{"name": "ping",}', refuses("cannot be read")),
    "mended, and an unknown argument": (
        block('{"name": "loose", "arguments": {"x": 1,}}'),
        refuses("'loose' has no x"),
    ),
    "an end tag too many": (block(LOOK) + "\n</TOOL_CALL>", refuses("more often than")),
    "its end tag in a broken text on one line": (
        '<TOOL_CALL>{"name": "look", "arguments": {"path": "a </TOOL_CALL> b",}}</TOOL_CALL>',
        refuses("more often than"),
    ),
    "two broken calls in one block": (block('{"name": "ping",}\n{"name": "ping",}'), refuses("cannot be read")),
    "text behind the JSON": (block(f"{LOOK} and that is it"), refuses("cannot be read")),
    "YAML without its end tag": ("<TOOL_CALL>\nname: look\narguments:\n  path: a.p", refuses("may not be whole")),
    "YAML with its end tag behind a text": (
        "<TOOL_CALL>\nname: look\narguments:\n  path: a.py</TOOL_CALL>",
        offers("may not be whole"),
    ),
    "YAML with nothing where a text is wanted": (
        block("name: save\narguments:\n  path: a\n  text:"),
        refuses("text: null is not"),
    ),
    "YAML with a text where a number is wanted": (
        block("name: look\narguments: {path: 1.0, depth: 1.5}"),
        refuses("depth: 1.5 is not"),
    ),
    "YAML with a tab": (block("name: look\narguments:\n\tpath: a.py"), refuses("neither JSON nor YAML")),
    "YAML with an alias": (block("name: look\narguments: &a\n  path: *a"), refuses("aliases")),
    "YAML with a tag": (block("name: !!python/name:os.system x"), refuses("tags (!)")),
    "YAML with a sign that does not print": (
        block("name: a\x07"),
        refuses("neither JSON nor YAML", "control characters"),
    ),
    "YAML with half a character": (block("name: a\ud800"), refuses("half a character")),
    "YAML with a comment that eats the text": (
        block("name: look\narguments:\n  path: a #b"),
        refuses("would be a comment"),
    ),
    "YAML with a key twice": (block("name: look\nname: ping"), refuses("'name' is there twice")),
    "YAML with two documents": (block("name: ping\n---\nname: ping"), refuses("more than one document")),
    "YAML with a list as key": (block("? [a]\n: b"), refuses("a key must be a word")),
    "an attribute": (f'<TOOL_CALL name="look">\n{LOOK}\n</TOOL_CALL>', refuses("just <TOOL_CALL>")),
    "another case": ("<Tool_Call>\n{}\n</Tool_Call>", Says(hint="<Tool_Call> is not a tag here")),
    "closed by the other case": (f"<TOOL_CALL>\n{LOOK}\n</Tool_call>\n<TOOL_CALL>", refuses("only one operation")),
}

ENDED: Final[dict[str, tuple[str, Runs | Refuses]]] = {
    "YAML without its end tag": (
        "<TOOL_CALL>\nname: look\narguments:\n  path: a.py",
        Runs(tool="look", arguments={"path": "a.py"}, note="was missing"),
    ),
    "YAML with its end tag behind a text": ("<TOOL_CALL>\nname: look\narguments:\n  path: a.py</TOOL_CALL>", looks()),
    "YAML without its end tag, and a side effect": (
        "<TOOL_CALL>\nname: save\narguments:\n  path: a\n  text: b",
        refuses("</TOOL_CALL> is missing", "may not be whole"),
    ),
    "JSON cut off": ('<TOOL_CALL>\n{"name": "look", "arguments": {"path": "a', refuses("cut off")),
}

ROWS: Final = (
    *(
        Row(name=f"tool call: {name}", text=text, wants=wants, protocols=("tool_call",))
        for name, (text, wants) in (WELL | BADLY).items()
    ),
    *(
        Row(
            name=f"tool call of a model that stopped: {name}",
            text=text,
            wants=wants,
            protocols=("tool_call",),
            ended=True,
        )
        for name, (text, wants) in ENDED.items()
    ),
)
