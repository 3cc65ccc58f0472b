"""Near misses of a block: they do not run, and the model is told the correct form."""

from typing import Final

from tests.abilities.protocols.house import NOTHING, Refuses, Row, Says, refuses

JSON: Final = '{"name": "look", "arguments": {"path": "a.py"}}'
NO_TAG: Final = Says(hint="is not a tag here")

NEAR: Final[dict[str, tuple[str, Refuses | Says]]] = {
    "no underscore": (f"<TOOLCALL>\n{JSON}\n</TOOLCALL>", Says(hint="<TOOLCALL> is not a tag here")),
    "no underscore in small letters": (f"<toolcall>\n{JSON}\n</toolcall>", NO_TAG),
    "a hyphen": (f"<TOOL-CALL>\n{JSON}\n</TOOL-CALL>", NO_TAG),
    "a plural": (f"<TOOL_CALLS>\n{JSON}\n</TOOL_CALLS>", NO_TAG),
    "square brackets": (f"[TOOL_CALL]\n{JSON}\n[/TOOL_CALL]", Says(hint="Write it exactly so: <TOOL_CALL>")),
    "braces": (f"{{TOOL_CALL}}\n{JSON}\n{{/TOOL_CALL}}", NO_TAG),
    "blanks in the tag": (f"< TOOL_CALL >\n{JSON}\n</ TOOL_CALL >", NO_TAG),
    "closed at once": ("<TOOL_CALL/>", Says(hint="<TOOL_CALL/> is not a tag here")),
    "closed at once with a blank": ("<TOOL_CALL />", refuses("without '/'")),
    "a function": ("<function=look>\n<parameter=path>\na.py\n</parameter>\n</function>", NO_TAG),
    "an invocation": ('<invoke name="look">\n<path>a.py</path>\n</invoke>', NO_TAG),
    "a tool use": (f"<tool_use>\n{JSON}\n</tool_use>", NO_TAG),
    "a function call": (f"<function_call>\n{JSON}\n</function_call>", NO_TAG),
    "a sign of another template": (f"<|tool_call|>{JSON}", NO_TAG),
    "a sign of a third template": (f"[TOOL_CALLS] [{JSON}]", NO_TAG),
    "a sign of Python": (f"<|python_tag|>{JSON}", NO_TAG),
    "full-width signs": ("＜tool_call＞\n<name>look</name>\n＜/tool_call＞", NO_TAG),
    "entities": (f"&lt;TOOL_CALL&gt;\n{JSON}\n&lt;/TOOL_CALL&gt;", NO_TAG),
    "escaped": (f"\\<TOOL_CALL>\n{JSON}\n\\</TOOL_CALL>", Says(hint="TOOL_CALL")),
    "bold": (f"**<TOOL_CALL>**\n{JSON}\n**</TOOL_CALL>**", Says(hint="TOOL_CALL")),
    "a label": (f"TOOL_CALL: {JSON}", NO_TAG),
    "a misspelt message": ("<SENDMESSAGE>\nto: bob\ncontent: a\n</SENDMESSAGE>", Says(hint="<SEND_MESSAGE>")),
    "a message in small letters": ("<send_message>\nto: bob\ncontent: a\n</send_message>", Says(hint="<SEND_MESSAGE>")),
    "a patch in small letters": ('<patch file="a">\n<SEARCH>a</SEARCH>\n</patch>', Says(hint="<PATCH>")),
    "a fence named after the tag": (f"```tool_call\n{JSON}\n```", Says(hint="```tool_call is not a tag here")),
    "a fence named TOOL_CALL": (f"```TOOL_CALL\n{JSON}\n```", NO_TAG),
    "a fence of tildes named after the tag": (f"~~~tool_call\n{JSON}\n~~~", NO_TAG),
    "a fence of JSON": (f"```json\n{JSON}\n```", NOTHING),
    "JSON alone": (JSON, Says(hint="it has no tags")),
    "JSON with an odd name": ('{"name": [{}]}', NOTHING),
    "JSON cut off alone": ('{"name": "look", "arg', NOTHING),
    "JSON that calls no tool": ('{"name": "Ann", "age": 7}', NOTHING),
    "another element": ("<rm><path>/x</path></rm>", NOTHING),
    "an answer about patches": ("I wrote a patch and rewrote the tool call.", NOTHING),
    "a word in brackets": ("[patch] is the name of it", Says(hint="[patch")),
    "a file with a tag in its code": ("```html\n<TOOLCALL>\n```", NOTHING),
    "a tag in backticks": ("`<TOOLCALL>`", NOTHING),
    "no opening tag": (f"{JSON}\n</TOOL_CALL>", Says(hint="</TOOL_CALL> is not a tag here")),
    "half an opening tag": (f"TOOL_CALL>\n{JSON}\n</TOOL_CALL>", NO_TAG),
    "half an opening tag with a file": ('PATCH file="a.py">\n<SEARCH>a</SEARCH>', NO_TAG),
    "cut off in the opening tag": ("I look.\n<TOOL_CA", Says(hint="<TOOL_CALL>")),
    "cut off in the end tag alone": (f"{JSON}\n</TOOL_CALL", NO_TAG),
    "the whole reply in backticks": (f"`<TOOL_CALL>{JSON}</TOOL_CALL>`", Says(hint="inside backticks")),
    "cut off in thoughts": (f"<think>I do it: <TOOL_CALL>{JSON}", Says(hint="inside your thoughts")),
    "cut off in a fence": (f"```\n<TOOL_CALL>\n{JSON}", Says(hint="inside a code fence")),
    "no end tag in a fence": (f"```\n<TOOL_CALL>\n{JSON}\n```", Says(hint="inside a code fence")),
}

ROWS: Final = (
    *(Row(name=f"near: {name}", text=text, wants=wants) for name, (text, wants) in NEAR.items()),
    Row(name="near: a call of who makes none", text=f"<tool_use>\n{JSON}", wants=NOTHING, protocols=("patch",)),
)
