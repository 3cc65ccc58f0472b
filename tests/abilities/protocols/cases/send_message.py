"""Messages, well and badly written."""

from typing import Final

from tests.abilities.protocols.house import Refuses, Row, Runs, offers, refuses, sends


def block(body: str) -> str:
    return f"<SEND_MESSAGE>\n{body}\n</SEND_MESSAGE>"


ADDED: Final = "was missing and was added"

WELL: Final[dict[str, tuple[str, Runs]]] = {
    "plain": (block("to: bob\ncontent: hello"), sends("hello")),
    "under |2": (block("to: bob\ncontent: |2\n  # A\n  ## B\n    c"), sends("# A\n## B\n  c\n")),
    "under |": (block("to: bob\ncontent: |\n  a\n  b"), sends("a\nb\n")),
    "under |2-": (block("to: bob\ncontent: |2-\n  a\n  b"), sends("a\nb")),
    "folded": (block("to: bob\ncontent: >\n  a\n  b"), sends("a b\n")),
    "in quotes": (block('to: bob\ncontent: "a: \\"b\\""'), sends('a: "b"')),
    "content first": (block("content: hello\nto: bob"), sends("hello")),
    "a name in quotes": (block('to: "bob"\ncontent: hello'), sends("hello")),
    "spaces around the name": (block('to: " bob "\ncontent: hello'), sends("hello")),
    "a Chinese name": (block("to: 老王\ncontent: |2\n  你好"), sends("你好\n", to="老王")),
    "CRLF": (block("to: bob\ncontent: |2\n  a\n  b").replace("\n", "\r\n"), sends("a\nb\n")),
    "CR": (block("to: bob\ncontent: |2\n  a\n  b").replace("\n", "\r"), sends("a\nb\n")),
    "mixed line ends": (block("to: bob\r\ncontent: |2\r  a\n  b"), sends("a\nb\n")),
    "a byte order mark before it": (block("\ufeffto: bob\ncontent: hello"), sends("hello")),
    "blank lines around": (block("\n\nto: bob\ncontent: hello\n\n"), sends("hello")),
    "a fence in the content": (block("to: bob\ncontent: |2\n  ```py\n  x = 1\n  ```"), sends("```py\nx = 1\n```\n")),
    "an open fence in the content": (block("to: bob\ncontent: |2\n  ```py\n  x = 1"), sends("```py\nx = 1\n")),
    "a fence around": (block("```yaml\nto: bob\ncontent: hello\n```"), sends("hello")),
    "CDATA around": (block("<![CDATA[to: bob\ncontent: hello]]>"), sends("hello")),
    "less and ampersand": (block("to: bob\ncontent: |2\n  a<b && c"), sends("a<b && c\n")),
    "other blocks in the content": (
        block("to: bob\ncontent: |2\n  <TOOL_CALL>\n  {}\n  </TOOL_CALL>"),
        sends("<TOOL_CALL>\n{}\n</TOOL_CALL>\n"),
    ),
    "its own tags in the content": (
        block("to: bob\ncontent: |2\n  <SEND_MESSAGE>\n  to: amy\n  </SEND_MESSAGE>\n  end"),
        sends("<SEND_MESSAGE>\nto: amy\n</SEND_MESSAGE>\nend\n"),
    ),
    "its end tag in a line of the content": (
        block("to: bob\ncontent: |2\n  write </SEND_MESSAGE> last"),
        sends("write </SEND_MESSAGE> last\n"),
    ),
    "thoughts in the content": (block("to: bob\ncontent: |2\n  <think>x</think>"), sends("<think>x</think>\n")),
    "indented": ("  <SEND_MESSAGE>\n  to: bob\n  content: |2\n    a\n  </SEND_MESSAGE>", sends("a\n")),
    "JSON": (block('{"to": "bob", "content": "</SEND_MESSAGE>"}'), sends("</SEND_MESSAGE>")),
    "JSON without its end tag": ('<SEND_MESSAGE>\n{"to": "bob", "content": "a"}', sends("a", note=ADDED)),
    "braces of YAML": ("<SEND_MESSAGE>{to: bob, content: a}</SEND_MESSAGE>", sends("a")),
    "braces with a comma at the end": (block('{"to": "bob", "content": "a",}'), sends("a")),
    "words that YAML 1.1 misreads": (block("to: bob\ncontent: no"), sends("no")),
    "a comment behind quotes": (block('to: "bob" # him\ncontent: hello'), sends("hello")),
    "a comment of its own": (block("# to him\nto: bob\ncontent: hello"), sends("hello")),
    "a time": (block("to: bob\ncontent: 12:30"), sends("12:30")),
    "a date": (block("to: bob\ncontent: 2026-01-01"), sends("2026-01-01")),
}

ENDED: Final[dict[str, tuple[str, Runs]]] = {
    "no end tag": ("<SEND_MESSAGE>\nto: bob\ncontent: |2\n  hello", sends("hello", note=ADDED)),
    "no end tag, CRLF": ("<SEND_MESSAGE>\r\nto: bob\r\ncontent: |2\r\n  hello\r\n", sends("hello\n", note=ADDED)),
    "the end tag behind the text": ("<SEND_MESSAGE>\nto: bob\ncontent: hello</SEND_MESSAGE>", sends("hello")),
    "the end tag behind everything": ("<SEND_MESSAGE>to: bob\ncontent: hello</SEND_MESSAGE>", sends("hello")),
    "the end tag indented too far": ("<SEND_MESSAGE>\nto: bob\ncontent: hello\n  </SEND_MESSAGE>", sends("hello")),
}

UNENDED: Final[dict[str, tuple[str, Refuses]]] = {
    name: (text, refuses("is missing") if "no end" in name else offers("may not be whole"))
    for name, (text, _) in ENDED.items()
}

BADLY: Final[dict[str, tuple[str, Refuses]]] = {
    "to missing": (block("content: hello"), refuses("'to' is missing", "For example", "  hello")),
    "to blank": (block("to:\ncontent: hello"), refuses("'to' is blank", "For example")),
    "to of spaces": (block('to: "  "\ncontent: hello'), refuses("'to' is blank")),
    "to a number": (block("to: 42\ncontent: hello"), refuses("'to' must be a text (str), not int")),
    "to a list": (
        block("to: [bob, amy]\ncontent: hello"),
        refuses("'to' must be a text (str), not list", "For example"),
    ),
    "content missing": (block("to: bob"), refuses("'content' is missing", "to: bob")),
    "content blank": (block("to: bob\ncontent:"), refuses("'content' is blank")),
    "content of spaces": (block("to: bob\ncontent: |2\n  \n"), refuses("'content' is blank")),
    "content a number": (block("to: bob\ncontent: 42"), offers("'content' must be a text (str), not int")),
    "content a truth": (block("to: bob\ncontent: true"), offers("'content' must be a text (str), not bool")),
    "content a mapping": (block("to: bob\ncontent:\n  a: b"), refuses("'content' must be a text (str), not dict")),
    "content a list": (block("to: bob\ncontent:\n  - a"), refuses("'content' must be a text (str), not list")),
    "both missing": (block("subject: x"), refuses("'to' is missing; 'content' is missing")),
    "a field too many": (
        block("to: bob\nsubject: x\ncontent: hello"),
        refuses("'subject' cannot stand beside", "What you want"),
    ),
    "an unknown receiver": (block("to: eve\ncontent: hello"), refuses("no agent 'eve'", "amy, bob, 老王")),
    "a misspelt receiver": (block("to: Bob\ncontent: hello"), offers("no agent 'Bob'", "amy, bob, 老王")),
    "empty": (block(""), refuses("it is empty", "For example")),
    "only its opening tag": ("<SEND_MESSAGE>", refuses("it is empty")),
    "prose": (block("hello bob"), refuses("no mapping of 'to' and 'content'")),
    "a list": (block("- to: bob\n- content: x"), refuses("no mapping of 'to' and 'content'")),
    "a colon in the content": (
        block("to: bob\ncontent: Note: this"),
        offers("mapping values are not allowed", "colon"),
    ),
    "content not indented": (block("to: bob\ncontent: |2\nhello\nworld"), offers("YAML cannot be read", "indented")),
    "content indented too little": (block("to: bob\ncontent: |2\n hello"), offers("YAML cannot be read")),
    "a quote not closed": (block('to: bob\ncontent: "hello'), offers("quote")),
    "a tab": (block("to: bob\ncontent: |2\n\thello"), refuses("YAML cannot be read")),
    "a sign that cannot begin a text": (block("to: bob\ncontent: @amy said so"), offers("cannot start any token")),
    "an alias": (block("to: bob\ncontent: *this"), offers("aliases")),
    "an anchor": (block("to: bob\ncontent: &this a"), offers("aliases")),
    "a tag of YAML": (block("to: bob\ncontent: !important a"), offers("tags (!)")),
    "a comment that eats the text": (block("to: bob\ncontent: see issue #3"), offers("would be a comment")),
    "a key twice": (block("to: bob\nto: amy\ncontent: hello"), refuses("'to' is there twice")),
    "two documents": (block("to: bob\ncontent: hello\n---\nto: amy"), refuses("more than one document")),
    "no end tag and no YAML": (
        "<SEND_MESSAGE>\nto: bob\ncontent: Note: this",
        refuses("</SEND_MESSAGE> was missing; it was added", "Check three things"),
    ),
    "JSON cut off": ('<SEND_MESSAGE>\n{"to": "bob", "content": "hel', refuses("cannot be read")),
    "an attribute": ('<SEND_MESSAGE to="bob">\nhello\n</SEND_MESSAGE>', refuses("just <SEND_MESSAGE>")),
    "an end tag too many": (block("to: bob\ncontent: a") + "\n</SEND_MESSAGE>", refuses("more often than")),
    "control signs": (block("to: bob\ncontent: a\x07b"), offers("YAML cannot be read")),
}

ROWS: Final = (
    *(
        Row(name=f"message: {name}", text=text, wants=wants, protocols=("send_message",))
        for name, (text, wants) in (WELL | UNENDED | BADLY).items()
    ),
    *(
        Row(
            name=f"message of a model that stopped: {name}",
            text=text,
            wants=wants,
            protocols=("send_message",),
            ended=True,
        )
        for name, (text, wants) in (ENDED | BADLY).items()
        if isinstance(wants, Runs) or "cut off" in name or "no end" in name
    ),
)
