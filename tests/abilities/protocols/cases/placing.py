"""Where a block counts: not in code, not in reasoning, not in the middle of a sentence."""

from typing import Final

from tests.abilities.protocols.house import NOTHING, Refuses, Row, Runs, Says, looks, refuses

CALL: Final = '<TOOL_CALL>\n{"name": "look", "arguments": {"path": "a.py"}}\n</TOOL_CALL>'
LINE: Final = CALL.replace("\n", "")
LINES: Final = CALL.splitlines()
FENCE: Final = Says(hint="inside a code fence")
THOUGHT: Final = Says(hint="inside your thoughts")
OPEN_FENCE: Final = refuses("a code fence behind it is not closed")
MIDDLE: Final = Says(hint="not at the start of a line")
TAIL: Final = refuses("must be the last on its line")
AGAIN: Final = refuses("more often than")
SHOWN: Final = f"```\n{CALL}\n```"


def under(mark: str) -> str:
    return "\n".join(mark + line for line in LINES)


PLACES: Final[dict[str, tuple[str, Runs | Refuses | Says]]] = {
    "an empty reply": ("", NOTHING),
    "white space": (" \n\t\n", NOTHING),
    "prose": ("All done. 1 < 2 and a <b> too.", NOTHING),
    "named in a sentence": ("Use the <TOOL_CALL> tag to act.", NOTHING),
    "both tags named in a sentence": ("Write <TOOL_CALL> and </TOOL_CALL>.", MIDDLE),
    "named in backticks": ("Use `<TOOL_CALL>` and `</TOOL_CALL>`.", NOTHING),
    "a whole block in backticks": (f"Write `{LINE}`.", NOTHING),
    "in backticks over two lines": (f"Write `x\n{LINE}` so.", TAIL),
    "in double backticks over two lines": (f"Write `` x ` y\n{LINE} `` so.", TAIL),
    "behind a backtick of another paragraph": (f"A stray ` here.\n\n{CALL}", looks()),
    "behind a backtick that does not close": (f"A stray ` here.\n{CALL}", looks()),
    "behind an escaped backtick": (f"A \\` and ` here.\n\n{CALL}\n`", looks()),
    "between inline codes": (f"See `a`.\n{CALL}\nSee `b`.", looks()),
    "behind a sentence on its line": (f"I will look. {LINE}", MIDDLE),
    "before a sentence on its line": (f"{LINE} is what I do.", TAIL),
    "in a quotation": (under("> "), MIDDLE),
    "in a list": (f"- {LINE}", MIDDLE),
    "indented by three spaces": (under("   "), looks()),
    "indented as code": (under("    "), MIDDLE),
    "indented by a tab": (under("\t"), MIDDLE),
    "in a fence": (SHOWN, FENCE),
    "in a fence with a language": (f"```xml\n{CALL}\n```", FENCE),
    "in a fence of tildes": (f"~~~\n{CALL}\n~~~", FENCE),
    "in a long fence": (f"`````\n```\n{CALL}\n```\n`````", FENCE),
    "in a fence with prose": (f"So:\n\n```\nfirst\n{CALL}\nlast\n```\nDone.", FENCE),
    "in a fence that is not closed": (f"```\n{CALL}", FENCE),
    "in a fence closed by too few": (f"````\n{CALL}\n```", FENCE),
    "in a fence closed by the other sign": (f"```\n{CALL}\n~~~", FENCE),
    "in a fence whose end has a word": (f"```\n{CALL}\n``` end", FENCE),
    "in an indented fence": (f"  ```\n{under('  ')}\n  ```", FENCE),
    "in a fence in a list": (f"- ```\n{under('  ')}\n  ```", FENCE),
    "in a fence in a numbered list": (f"1. ```\n{under('   ')}\n   ```", FENCE),
    "in a fence under a list": (f"- so:\n  ```\n{under('  ')}\n  ```", FENCE),
    "in a fence with CRLF": (SHOWN.replace("\n", "\r\n"), FENCE),
    "in a fence in a fence": (f"```md\n```xml\n{CALL}\n```\n```", FENCE),
    "behind a fence in a fence": (f"```md\n```json\n{{}}\n```\n{CALL}\n```", OPEN_FENCE),
    "behind a fence": (f"```\nx\n```\n{CALL}", looks()),
    "behind an example of itself": (f"{SHOWN}\nNow I do it:\n{CALL}", looks()),
    "before an example of itself": (f"{CALL}\nIt was:\n{SHOWN}", AGAIN),
    "in a fence in a list that is not indented": (f"- ```\n{CALL}\n```", FENCE),
    "in a fence behind three backticks in a line": (f"Fences are ``` here.\n{SHOWN}", OPEN_FENCE),
    "behind three backticks in a line": (f"Fences are ``` here.\n{CALL}", FENCE),
    "behind a line of inline code": (f"```x``` is code.\n{CALL}", looks()),
    "in thoughts": (f"<think>\n{CALL}\n</think>\nNo, done.", THOUGHT),
    "in thoughts of another name": (f"<thinking>\n{CALL}\n</thinking>", THOUGHT),
    "in reasoning": (f"<reasoning>\n{CALL}\n</reasoning>", THOUGHT),
    "in thoughts in capitals": (f"<THINK>\n{CALL}\n</Think>", THOUGHT),
    "in thoughts that do not end": (f"<think>\nHm.\n{CALL}", THOUGHT),
    "behind thoughts": (f"<think>I could write {LINE}</think>\n{CALL}", looks()),
    "right behind thoughts": (f"<think>hm</think>{CALL}", looks()),
    "behind thoughts with an open fence": (f"<think>\n```\nx\n</think>\n{CALL}", looks()),
    "in thoughts that only end": (f"Hm.\n{CALL}\n</think>\nDone.", THOUGHT),
    "behind thoughts that only end": (f"Hm, {LINE} perhaps.\n</think>\n\n{CALL}", looks()),
    "behind thoughts named in backticks": (f"No `<think>` here.\n{CALL}", looks()),
    "in an example": (f"<example>\n{CALL}\n</example>", Says(hint="inside <example>")),
    "in HTML's code": (f"<pre><code>\n{CALL}\n</code></pre>", Says(hint="inside <pre>")),
    "behind a comment": (f"<!-- x -->\n{CALL}", looks()),
    "behind its name in a sentence": (f"I use <TOOL_CALL> now.\n{CALL}", looks()),
    "before its name in a sentence": (f"{CALL}\nThat was a <TOOL_CALL>.", looks()),
    "before its end in a sentence": (f"{CALL}\nThat ended with </TOOL_CALL>.", AGAIN),
    "before its end in backticks": (f"{CALL}\nThat ended with `</TOOL_CALL>`.", AGAIN),
    "a tag of nobody": ("<TOOL_CALLS>\n{}\n</TOOL_CALLS>", Says(hint="<TOOL_CALLS> is not a tag here")),
    "an end tag alone": ("</TOOL_CALL>", Says(hint="</TOOL_CALL> is not a tag here")),
    "a tag with a line break": ("<TOOL_CALL\n>\n{}\n</TOOL_CALL>", MIDDLE),
    "a byte order mark before it": ("\ufeff" + CALL, looks()),
}

ROWS: Final = (
    *(Row(name=f"place: {name}", text=text, wants=wants) for name, (text, wants) in PLACES.items()),
    Row(name="place: nobody reads it", text=CALL, wants=NOTHING, protocols=()),
    Row(name="place: another protocol reads it", text=CALL, wants=NOTHING, protocols=("patch",)),
)
