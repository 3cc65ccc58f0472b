"""Replies that the provider cut off, and blocks that look whole in them."""

from typing import Final

from tests.abilities.protocols.cases.around import BLOCKS
from tests.abilities.protocols.house import Row, Withheld, looks, refuses

JSON: Final = '{"name": "look", "arguments": {"path": "a.py"}}'
CUT: Final = Withheld(because="was cut off")

WHOLE: Final = {
    "a whole block": "@",
    "a whole block and prose": "@\nThat is",
    "a whole block and half of another": "@\n<TOOL_C",
    "a whole block behind prose": "First.\n\n@\n",
    "a whole block and half a fence": "@\n```",
    "a whole block and half a thought": "@\n<think>hm",
}

TEXTS: Final[dict[str, str]] = {
    "a file that goes on": '<REWRITE file="a.py">\nprint(1)\n</REWRITE>\nprint(2',
    "a file that goes on in a fence": '<REWRITE file="a.md">\n```\n</REWRITE>\n```\nmore',
    "a message that goes on": "<SEND_MESSAGE>\nto: bob\ncontent: |2\n  a\n</SEND_MESSAGE>\n  b",
    "a message behind everything": "<SEND_MESSAGE>\nto: bob\ncontent: hello</SEND_MESSAGE>",
    "a message without its end": "<SEND_MESSAGE>\nto: bob\ncontent: |2\n  hello wor",
    "a message in JSON without its end": '<SEND_MESSAGE>{"to": "bob", "content": "x"}',
    "a call without its end": f"<TOOL_CALL>\n{JSON}",
    "a call without its end, and a fence": f"<TOOL_CALL>\n{JSON}\n\n```py\n<TOOL_CALL>",
    "a call in YAML": "<TOOL_CALL>\nname: look\narguments:\n  path: /home/us",
    "a call in YAML with its end behind it": "<TOOL_CALL>\nname: look\narguments:\n  path: a</TOOL_CALL>",
    "a patch without its end": '<PATCH file="a">\n<DIFF><SEARCH>a</SEARCH><REPLACE>b</REPLACE></DIFF>',
    "a patch with half a change": '<PATCH file="a">\n<SEARCH>a</SEARCH><REPLACE>b',
    "an XML call without its end": "<tool_call><name>look</name><params><path>a</path></params>",
    "a misspelt receiver": "<SEND_MESSAGE>\nto: bobb\ncontent: a\n</SEND_MESSAGE>",
    "a misspelt tool": '<TOOL_CALL>\n{"name": "lok", "arguments": {"path": "a.py"}}\n</TOOL_CALL>',
    "a comma too many": '<TOOL_CALL>\n{"name": "save", "arguments": {"path": "a", "text": "b",}}\n</TOOL_CALL>',
}

ROWS: Final = (
    *(
        Row(
            name=f"cut off: {protocol}, {name}",
            text=around.replace("@", block),
            wants=Withheld(),
            ended=False,
            pure=frozenset(),
        )
        for protocol, (block, _) in BLOCKS.items()
        for name, around in WHOLE.items()
    ),
    *(
        Row(name=f"cut off: {name}", text=text, wants=Withheld(), ended=False, pure=frozenset())
        for name, text in TEXTS.items()
    ),
    Row(name="cut off: a message, said so", text=BLOCKS["send_message"][0], wants=CUT, ended=False),
    Row(name="cut off: a file, said so", text=BLOCKS["rewrite"][0], wants=CUT, ended=False),
    Row(name="cut off: a patch, said so", text=BLOCKS["patch"][0], wants=CUT, ended=False),
    Row(name="cut off: a pure call", text=BLOCKS["tool_call"][0] + "\nThen I", wants=looks(), ended=False),
    Row(
        name="cut off: a pure call without its end", text=f"<TOOL_CALL>\n{JSON}", wants=refuses("cut off"), ended=False
    ),
)
