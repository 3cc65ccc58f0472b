"""Replies with more than one block."""

from dataclasses import replace
from typing import Final

from tests.abilities.protocols.house import Refuses, Row, Runs, looks, refuses, sends

CALL: Final = '<TOOL_CALL>\n{"name": "look", "arguments": {"path": "a.py"}}\n</TOOL_CALL>'
XML: Final = "<tool_call><name>look</name><params><path>b.py</path></params></tool_call>"
MESSAGE: Final = "<SEND_MESSAGE>\nto: bob\ncontent: a\n</SEND_MESSAGE>"
PATCH: Final = '<PATCH file="a"><SEARCH>a</SEARCH><REPLACE>b</REPLACE></PATCH>'
REWRITE: Final = '<REWRITE file="a">\nx\n</REWRITE>'
ONE: Final = refuses("only one operation at a time")

SEVERAL: Final[dict[str, tuple[str, Refuses]]] = {
    "two tool calls": (f"{CALL}\n{CALL}", refuses("only one operation at a time", "line 1", "line 4")),
    "two tool calls on one line": ((CALL + CALL).replace("\n", ""), ONE),
    "two tool calls far apart": (f"{CALL}\n\nand then\n\n{CALL}", ONE),
    "two xml calls": (f"{XML}\n{XML}", ONE),
    "two messages": (
        f"{MESSAGE}\n{MESSAGE}",
        refuses("only one SEND_MESSAGE block", "Merge them", "over several turns"),
    ),
    "two patches": (f"{PATCH}\n{PATCH}", ONE),
    "two files": (f"{REWRITE}\n{REWRITE}", ONE),
    "a call and a message": (f"{CALL}\n{MESSAGE}", refuses("<TOOL_CALL> in line 1, <SEND_MESSAGE> in line 4")),
    "a call in both ways": (f"{CALL}\n{XML}", ONE),
    "a patch and a file": (f"{PATCH}\n{REWRITE}", ONE),
    "a call and a broken one": (f"{CALL}\n<TOOL_CALL>\n{{\n</TOOL_CALL>", ONE),
    "a call whose end is missing before another": (CALL.removesuffix("</TOOL_CALL>") + CALL, ONE),
    "a message whose end is missing before another": (
        MESSAGE.removesuffix("</SEND_MESSAGE>") + MESSAGE,
        refuses("SEND_MESSAGE"),
    ),
    "a file whose end is missing before another": (REWRITE.removesuffix("</REWRITE>") + REWRITE, ONE),
    "very many": (f"{CALL}\n" * 100, ONE),
}

FIRST: Final[dict[str, tuple[str, Runs | Refuses]]] = {
    "two tool calls": (f"{CALL}\n{CALL}", looks()),
    "two xml calls": (f"{XML}\n{XML.replace('b.py', 'c.py')}", looks("b.py")),
    "a message and a call": (f"{MESSAGE}\n{CALL}", sends("a")),
    "a broken call and a good one": (f"<TOOL_CALL>\n{{\n</TOOL_CALL>\n{CALL}", refuses("cut off")),
    "a call whose end is nowhere": (f"{CALL}\n</TOOL_CALL>\n{CALL}", refuses("more often than")),
}

ROWS: Final = (
    *(Row(name=f"several: {name}", text=text, wants=wants) for name, (text, wants) in SEVERAL.items()),
    *(
        replace(Row(name=f"first of several: {name}", text=text, wants=wants), policy="first")
        for name, (text, wants) in FIRST.items()
    ),
)
