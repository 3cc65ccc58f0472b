"""Bodies with mistakes. The intended call runs or is offered only if it is unambiguous and nothing gets lost."""

from typing import Final

from tests.abilities.protocols.house import Refuses, Row, Runs, mends, offers, refuses


def call(body: str) -> str:
    return f"<TOOL_CALL>\n{body}\n</TOOL_CALL>"


def look(arguments: str) -> str:
    return call(f'{{"name": "look", "arguments": {arguments}}}')


def message(body: str) -> str:
    return f"<SEND_MESSAGE>\n{body}\n</SEND_MESSAGE>"


UNREAD: Final = refuses("cannot be read")
TWICE: Final = refuses("'path' is there twice")

MENDED: Final[dict[str, tuple[str, Runs]]] = {
    "a comma behind the last argument": (look('{"path": "a.py",}'), mends()),
    "a comma behind the last element": (look('{"path": "a.py", "lines": [1, 2,]}'), mends(lines=[1, 2])),
    "single quotes": (look("{'path': 'a.py'}"), mends()),
    "single and double quotes": (look("{'path': \"a.py\"}"), mends()),
    "keys without quotes": (look('{path: "a.py"}'), mends()),
    "all keys without quotes": (call('{name: "look", arguments: {path: "a.py"}}'), mends()),
    "Python's words": (look('{"path": "a.py", "deep": False, "limit": None}'), mends(deep=False, limit=None)),
    "a comment on a line": (look('{"path": "a.py" // it\n}'), mends()),
    "a comment of Python": (look('{"path": "a.py", # it\n"depth": 1}'), mends(depth=1)),
    "a comment between": (look('{/* the path */ "path": "a.py"}'), mends()),
    "an address that is no comment": (look('{"path": "http://a/b#c",}'), mends("http://a/b#c")),
    "a line break in a text": (look('{"path": "a\nb"}'), mends("a\nb")),
    "a tab in a text": (look('{"path": "a\tb"}'), mends("a\tb")),
    "an escaped quote and a comma": (look('{"path": "a \\"b\\" c",}'), mends('a "b" c')),
    "an apostrophe in double quotes": (look('{"path": "it\'s",}'), mends("it's")),
    "an escaped character and a comma": (look('{"path": "\\u00e9",}'), mends("é")),
    "a number with an exponent and a comma": (look('{"path": "a.py", "ratio": -1.5e2,}'), mends(ratio=-150.0)),
}

GUESSES: Final[dict[str, tuple[str, Refuses]]] = {
    "two single quotes in single quotes": (look("{'path': 'it''s'}"), UNREAD),
    "an apostrophe in single quotes": (look("{'path': 'it's'}"), UNREAD),
    "an escaped apostrophe in single quotes": (look("{'path': 'it\\'s'}"), UNREAD),
    "double quotes in single quotes": (look("{'path': 'say \"hi\" now'}"), UNREAD),
    "a backslash in single quotes": (look("{'path': 'C:\\new'}"), UNREAD),
    "two texts beside each other": (look('{"path": "a" "b"}'), UNREAD),
    "two texts with a plus": (look('{"path": "a" + "b"}'), UNREAD),
    "two texts with a blank key": (look('{"path": "a", "b"}'), UNREAD),
    "a placeholder": (look('{"path": <path>}'), UNREAD),
    "a template": (look('{"path": `tpl`}'), UNREAD),
    "three quotes": (look('{"path": """a"""}'), UNREAD),
    "dots": (look('{"path": ...}'), UNREAD),
    "dots between": (look('{"path": "a.py", ...}'), UNREAD),
    "a word": (look('{"path": a.py}'), UNREAD),
    "a word without dots": (look('{"path": here}'), UNREAD),
    "quotes in a text": (look('{"path": "say "hi" now"}'), UNREAD),
    "an invalid escape": (look('{"path": "C:\\Users"}'), UNREAD),
    "half an escape": (look('{"path": "\\u00"}'), UNREAD),
    "no comma": (look('{"path": "a.py" "depth": 1}'), UNREAD),
    "two commas": (look('{"path": "a.py",, "depth": 1}'), UNREAD),
    "a comma first": (look('{, "path": "a.py"}'), UNREAD),
    "no colon": (look('{"path" "a.py"}'), UNREAD),
    "an equal sign": (look('{"path" = "a.py"}'), UNREAD),
    "an arrow": (look('{"path" => "a.py"}'), UNREAD),
    "a set": (look("{path}"), UNREAD),
    "an octal number": (look('{"path": "a.py", "depth": 01}'), UNREAD),
    "a hexadecimal number": (look('{"path": "a.py", "depth": 0x1}'), UNREAD),
    "a number with a plus": (look('{"path": "a.py", "depth": +1}'), UNREAD),
    "a number with underscores": (look('{"path": "a.py", "depth": 1_000}'), UNREAD),
    "a tuple": (look('{"path": "a.py", "lines": (1, 2)}'), UNREAD),
    "Python's prefix": (look("{\"path\": r'a.py'}"), UNREAD),
    "typographic quotes": (look("{“path”: “a.py”}"), UNREAD),
    "undefined": (look('{"path": "a.py", "limit": undefined}'), UNREAD),
    "a brace too many": (look('{"path": "a.py"}}'), UNREAD),
    "text before the JSON in a fence": (call('```\nSo:\n{"name": "ping"}\n```'), refuses("neither JSON nor YAML")),
    "half a character, and a comma": (look('{"path": "\\ud800",}'), UNREAD),
    "the same argument twice": (look('{"path": "a", "path": "b"}'), TWICE),
    "the same argument twice in single quotes": (look("{'path': 'a', 'path': 'b'}"), TWICE),
    "the same argument twice without quotes": (look('{path: "a", path: "b"}'), TWICE),
    "the same argument twice, and a comma": (look('{"path": "a", "path": "b",}'), TWICE),
    "the same argument twice, escaped": (look('{"path": "a", "p\\u0061th": "b"}'), TWICE),
    "the same argument twice inside": (
        look('{"path": "a", "filter": {"x": 1, "x": 1}}'),
        refuses("'x' is there twice"),
    ),
    "arguments as text with a key twice": (
        call('{"name": "look", "arguments": "{\\"path\\": \\"a\\", \\"path\\": \\"b\\"}"}'),
        refuses("'path' is there twice"),
    ),
    "arguments twice": (call('{"name": "look", "arguments": {}, "arguments": {"path": "a"}}'), refuses("there twice")),
    "YAML with an argument twice": (call("name: look\narguments:\n  path: a\n  path: b"), TWICE),
    "braces of YAML with an argument twice": (call("name: look\narguments: {path: a, path: b}"), TWICE),
    "JSON for parameters with one twice": (
        '<tool_call>\n<name>look</name>\n<params>\n{"path": "a", "path": "b"}\n</params>\n</tool_call>',
        refuses("neither a parameter nor"),
    ),
    "a parameter of JSON with a key twice": (
        '<tool_call><name>look</name><params><path>a</path><filter>{"x": 1, "x": 2}</filter></params></tool_call>',
        refuses("filter: ", 'is not of type "object"'),
    ),
}

MESSAGES: Final[dict[str, tuple[str, Refuses]]] = {
    "its end in a sentence": (
        "<SEND_MESSAGE>\nto: bob\ncontent: the tag </SEND_MESSAGE> ends it",
        refuses("must be the last on its line"),
    ),
    "its end in a sentence, all on two lines": (
        "<SEND_MESSAGE>to: bob\ncontent: the tag </SEND_MESSAGE> ends it",
        refuses("must be the last on its line"),
    ),
    "a subject": (message("to: bob\nsubject: x\ncontent: hi"), refuses("'subject'")),
    "a postscript": (message("to: bob\ncontent: |2\n  hi\nPS: more"), refuses("'PS'")),
    "a comma in braces": (message("{to: bob, content: hi, there}"), refuses("'there'")),
    "two receivers": (message("to: bob, amy\ncontent: hi"), refuses("no agent 'bob, amy'")),
    "two receivers with an ampersand": (message("to: bob & amy\ncontent: hi"), refuses("no agent")),
    "two receivers with a word": (message("to: bob and amy\ncontent: hi"), refuses("no agent")),
    "a receiver with a slash": (message("to: bob/amy\ncontent: hi"), refuses("no agent")),
    "the receiver twice": (message("to: bob\nto: amy\ncontent: hi"), refuses("'to' is there twice")),
    "the content twice": (message("to: bob\ncontent: a\ncontent: b"), refuses("'content' is there twice")),
    "the content before the receiver": (message("content: Note: this\nto: bob"), refuses("YAML cannot be read")),
    "a line between the fields": (message("to: bob\ncc: amy: x\ncontent: hi"), refuses("YAML cannot be read")),
    "a line before the fields": (message("Hello: there: x\nto: bob\ncontent: hi"), refuses("YAML cannot be read")),
    "a number with a nought": (message("to: bob\ncontent: 042"), offers("must be a text (str), not int")),
    "a truth in capitals": (message("to: bob\ncontent: TRUE"), offers("must be a text (str), not bool")),
    "a colon and more lines": (message("to: bob\ncontent: Note: this\nand: that"), offers("YAML cannot be read")),
    "cut off in YAML": ("<SEND_MESSAGE>\nto: bob\ncontent: Note: th", refuses("was missing")),
    "cut off, and a misspelt receiver": ("<SEND_MESSAGE>\nto: bobb\ncontent: hel", refuses("no agent 'bobb'")),
    "cut off, and a subject": ("<SEND_MESSAGE>\nto: bob\nsubject: x\ncontent: hel", refuses("'subject'")),
    "JSON with the receiver twice": (message('{"to": "bob", "to": "amy", "content": "x"}'), refuses("there twice")),
}

CUT: Final[dict[str, tuple[str, Refuses]]] = {
    "YAML cut off in a path": ("<TOOL_CALL>\nname: save\narguments:\n  path: /home/us", refuses("do not fit")),
    "YAML cut off in a text": (
        "<TOOL_CALL>\nname: save\narguments:\n  path: a\n  text: hello wor",
        refuses("</TOOL_CALL> is missing"),
    ),
    "YAML cut off, and a misspelt tool": ("<TOOL_CALL>\nname: lok\narguments:\n  path: /home/us", refuses("no tool")),
    "XML cut off behind a name": ("<tool_call>\n<name>ping</name>\n", refuses("is missing")),
    "a patch cut off behind a change": (
        '<PATCH file="a">\n<SEARCH>a</SEARCH><REPLACE>b</REPLACE>\n',
        refuses("</PATCH> is missing"),
    ),
}


def offered(name: str) -> frozenset[str]:
    """Return what may be offered: nothing that was cut off."""
    return frozenset() if "cut off" in name else frozenset({"look", "loose"})


ROWS: Final = tuple(
    Row(name=f"{kind}: {name}", text=text, wants=wants, ended=True, pure=offered(name))
    for kind, table in (("mended", MENDED), ("guess", GUESSES), ("message, guessed", MESSAGES), ("cut", CUT))
    for name, (text, wants) in table.items()
)
