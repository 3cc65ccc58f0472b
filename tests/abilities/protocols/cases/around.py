"""A good block of each protocol, and texts around it: most of them only show the block, some leave it valid."""

from textwrap import indent
from typing import Final

from greenroom.abilities.protocols.parse_result import ProtocolName
from tests.abilities.protocols.house import Row, Runs, Withheld, looks, refuses, sends

BLOCKS: Final[dict[ProtocolName, tuple[str, Runs]]] = {
    "tool_call": ('<TOOL_CALL>\n{"name": "look", "arguments": {"path": "a.py"}}\n</TOOL_CALL>', looks()),
    "xml_tool": ("<tool_call>\n<name>look</name>\n<params>\n<path>a.py</path>\n</params>\n</tool_call>", looks()),
    "send_message": ("<SEND_MESSAGE>\nto: bob\ncontent: |2\n  hi\n</SEND_MESSAGE>", sends("hi\n")),
    "patch": (
        '<PATCH file="a.py">\n<SEARCH>a</SEARCH>\n<REPLACE>b</REPLACE>\n</PATCH>',
        Runs(tool="patch", arguments={"file": "a.py", "edits": [{"search": "a", "replace": "b"}]}),
    ),
    "rewrite": (
        '<REWRITE file="a.py">\nx = 1\n</REWRITE>',
        Runs(tool="rewrite", arguments={"file": "a.py", "content": "x = 1\n"}),
    ),
}


def elements(*names: str) -> dict[str, str]:
    """Return the block in elements with and without attributes."""
    return {f"<{name}>": f"<{name}>\n@\n</{name.split()[0]}>" for name in names}


FENCES: Final = {
    "a fence": "```\n@\n```",
    "a fence with a language": "```xml\n@\n```",
    "a fence of tildes": "~~~\n@\n~~~",
    "a fence that is not closed": "```\n@",
    "a fence closed by too few": "````\n@\n```",
    "a fence closed by too many": "```\n@\n````\nand\n```\nmore\n```",
    "a fence with an end that is indented like code": "```\nfoo\n    ```\n@\n```",
    "a fence with an end behind a tab": "```\nfoo\n\t```\n@\n```",
    "a fence of tildes with an end indented like code": "~~~\nfoo\n    ~~~\n@\n~~~",
    "a fence in a longer one": "````\n```\n@\n```\n````",
    "a longer fence in a fence": "```\n````\n```\n````\n@\n```",
    "a fence behind a nested one": "```md\n```json\n{}\n```\n@\n```",
    "a nested fence of tildes": "~~~md\n~~~json\n{}\n~~~\n@\n~~~",
    "a nested long fence": "````md\n````json\n{}\n````\n@\n````",
    "a fence with its end in a sentence": "```\nfoo\n``` bar\n@\n```",
    "a fence behind text": "Use it like so: ```xml\n@\n```",
    "a fence behind text without a blank": "Use it like so:```\n@\n``` and that is it.",
    "a fence in a heading": "# Title ```\n@\n```",
    "a fence in a list": "- ```\n@\n```",
    "a fence in a list with text": "+ text ```\n@\n```",
    "a fence in a list in a list": "* * ```\n@\n```",
    "a fence in a numbered list": "1) ```\n@\n```",
    "a fence in a table": "| cell ```\n@\n``` |",
    "a fence in quotation marks": "“```\n@\n```”",
    "a fence that is escaped": "\\```\n@\n\\```",
    "a fence with a backtick in its language": "``` `x`\n@\n```",
    "a fence of tildes behind text": "So: ~~~\n@\n~~~",
    "a fence in a summary": "<details><summary>```</summary>\n@\n```\n</details>",
    "a fence in a thought's summary": "**Plan** ```\n@",
    "backticks over lines": "`x\n@`",
    "a fence with CR": "```\r@\r```",
    "a fence with CRLF": "```\r\n@\r\n```",
    "a fence named after the tag": "```tool_call\n@\n```",
    "a fence behind a byte order mark": "\ufeff```\n@\n```",
    "a fence behind a line separator": "x\u2028```\n@\n```",
}

ELEMENTS: Final = {
    **elements("pre class='x'", 'code class="xml"', "example lang='x'", "example", "Example", "EXAMPLE", "examples"),
    **elements("example_1", "bad_example", "good-example", "sample", "quote", "q", "blockquote", "xmp", "textarea"),
    **elements("tool_result", "result", "output", "document", "user", "system", "details", "div class=x", "snippet"),
    **elements("scratchpad", "reflection", "analysis", "plan", "internal", "draft", "TOOLCALL", "tool-call", "x:y"),
    **elements("table", "span", "b", "answer", "response", "script", "svg", "template", "função", "例"),
    "an element on one line before": "See <output>\n@\n</output> there.",
    "an element with a line break": "<output\n>\n@\n</output>",
    "an element that ends with a blank": "<output>\n@\n</output >",
    "an element in another": "<a>\n<b>\n</a>\n@\n</b>",
    "an element twice": "<div>\n<div>\nx\n</div>\n@\n</div>",
    "an element closed too late": "<a>\n@\n\nand so on\n\n</a>",
    "code that is not closed": "<code>@\n",
    "code in pre": '<pre><code class="language-xml">\n@\n</code></pre>',
    "pre on its line": "<pre>@</pre>",
    "pre in capitals": "<PRE>\n@\n</PRE>",
    "an element that is not closed": "<example>\n@",
    "an element of reasoning that is not closed": "<analysis>\nI could do it.\n@",
    "an element with attributes that is not closed": "So:\n<pre class='x'>\n\n@\n\nand so on",
    "a comment": "<!--\n@\n-->",
    "a comment that is not closed": "<!-- not yet\n@",
    "CDATA": "<![CDATA[\n@\n]]>",
    "a quotation of a forum": "[quote=bob]\n@\n[/quote]",
    "code of a forum": "[code]\n@\n[/code]",
    "a mention of another tag": "In <PATCHES> there is\n@\n</PATCHES>",
}

THOUGHTS: Final = {
    **elements("think", "thinking", "thoughts", "thought", "reasoning", "reasoning_content", "seed:think", "THINK"),
    **elements("think ", 'thinking type="a"', "antthinking", "inner_monologue", "chain_of_thought"),
    "brackets of thoughts": "[THINK]\n@\n[/THINK]\nok",
    "brackets of thoughts in small letters": "[think]\n@\n[/think]\nok",
    "brackets of thoughts that are not closed": "[THINK]\n@",
    "triangles": "◁think▷\n@\n◁/think▷\nok",
    "triangles that are not closed": "◁think▷\n@",
    "the channel of analysis": (
        "<|channel|>analysis<|message|>\n@\n<|end|><|start|>assistant<|channel|>final<|message|>ok"
    ),
    "the channel of analysis alone": "<|channel|>analysis<|message|>\n@\n<|end|>",
    "the channel of comments": "<|channel|>commentary<|message|>\n@",
    "signs of thoughts": "<|thinking|>\n@\n<|/thinking|>",
    "signs of thoughts of another kind": "<|begin_of_thought|>\n@\n<|end_of_thought|>\nok",
    "signs of thoughts of Cohere": "<|START_THINKING|>\n@\n<|END_THINKING|>ok",
    "thoughts that are not closed": "<think>\nplan\n@",
    "thoughts closed by another name": "<think>a</thinking>\n@",
    "thoughts in thoughts": "<think><think>a</think>\n@\n</think>",
    "thoughts that only end": "plan\n@\n</think>\nok",
    "thoughts that only end, later": "@\n\nWait, </think> hmm",
    "brackets of thoughts that only end": "plan\n@\n[/THINK]\nok",
    "triangles that only end": "plan\n@\n◁/think▷ok",
    "an analysis that only ends": "plan\n@\n<|channel|>final<|message|>ok",
    "thoughts with a line break in the tag": "<think\n>\n@\n</think>",
    "thoughts behind thoughts": "<think>a</think>\n<think>\n@\n</think>",
    "thoughts that end inside a fence": "<think>\n```\n@\n```\n</think>",
}

PLACES: Final = {
    "code by four blanks": "Example:\n\n    @",
    "code by a tab": "Example:\n\n\t@",
    "a sentence on its line": "Done. @",
    "a list on its line": "- @",
    "a line separator before it": "hello\u2028@",
    "a vertical tab before it": "hello\x0b@",
    "a next line before it": "hello\x85@",
    "a backslash before it": "\\@",
    "bold letters": "**@**",
    "a plus, as in a diff": "+@",
    "a prompt of a shell": "$ @",
    "a table": "| @ |",
    "a heading": "# @",
    "text behind it": "@ is what I would write, but I will not.",
    "a full stop behind it": "@.",
    "a quotation mark behind it": '@"',
    "a line separator behind it": "@\u2028and more",
    "a backtick behind it": "@`",
    "a fence that begins behind it": "@\n```\nand so on",
    "three backticks in a line behind it": "@\nas in ``` there",
    "its end in a fence behind it": "@\n```\nmore\n¤\n```",
    "its end in a quotation behind it": "@\n> more ¤",
    "its end in a comment behind it": "@\n<!-- x\n¤\n-->",
    "its end in thoughts behind it": "@\n<think>x ¤",
    "its end in backticks behind it": "@\nIt ends with `¤`.",
    "its end once more": "@\n¤",
    "its end once more after many lines": "@\n\na\nb\n\nc\n¤ d",
    "its end with a blank in it": "@\nmore\n</ ¶>",
}

GOOD: Final = {
    "nothing": "@",
    **{f"an invisible U+{ord(sign):04X}": f"{sign}@{sign}" for sign in "\ufeff\u200b\u200c\u200d\u2060\xad\u200e"},
    "a no-break space": "\xa0@\xa0\n",
    "a wide space": "\u3000@",
    "a byte order mark in the prose": "\ufeffSo:\n\u200b\n@\n\u200b",
    "prose before and after": "I look at it first.\n\n@\n\nThen I go on.",
    "prose right before and after": "I look at it first:\n@\nThen I go on.",
    "blanks behind it": "@  \t\n",
    "CRLF in the prose": "So.\r\n\r\n@\r\n\r\nDone.",
    "a list before": "- one\n- two\n\n@",
    "a heading before": "## Step 1\n\n@",
    "bold lines": "**Step 1:**\n@\n**Step 2** comes then.",
    "a ruler before and after": "---\n\n@\n\n---",
    "a fence before": "```py\nx = 1\n```\n@",
    "a fence with a quotation before": "```\n> x\n```\n@",
    "two fences before": "```py\nx\n```\n\n~~~\ny\n~~~\n\n@",
    "a fence in a list before": "- so:\n  ```\n  x\n  ```\n\n@",
    "a fence after": "@\n\nIt was:\n\n```py\nx = 1\n```\n",
    "inline code": "Use `x` and ``y ` z``, and ```w``` too.\n@",
    "a quotation before": "> He said it.\n\n@",
    "thoughts before": "<think>I could do it.</think>\n@",
    "thoughts on its line": "<think>I could do it.</think>@",
    "thoughts and a blank on its line": "<think>\nI could do it.\n</think> @",
    "two thoughts on its line": "<think>a</think><think>b</think>@",
    "thoughts that only end": "I could do it.\n</think>\n\n@",
    "thoughts that only end on its line": "I could do it.</think>@",
    "brackets of thoughts before": "[THINK]Hm.[/THINK]@",
    "triangles before": "◁think▷Hm.◁/think▷\n@",
    "the final channel": (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>@<|return|>"
    ),
    "thoughts with an open fence": "<think>\n```\nx\n</think>\n@",
    "thoughts with a block": "<think>I could write\n@\nhere</think>\n\n@",
    "a comment before": "<!-- x -->\n@",
    "an element before": "<b>Now</b> I do it, <i>really</i>.\n@",
    "a closed example before": "<example>\nx\n</example>\n\n@",
    "generics in prose": "A List<String> and a Vec<T>, if a <b and c> d.\n@",
    "addresses in prose": "See <https://a.b/c> and <mailto:x>.\n@",
    "an empty element": "First.<br/>\n<hr>\n@",
    "a wrapper": "<function_calls>\n@\n</function_calls>",
    "another wrapper": "<tool_calls>@</tool_calls>".replace(">@<", ">\n@\n<"),
    "a sign of the end": "@<|im_end|>",
    "a sign of the end on a line": "@\n</s>",
    "a sign of the beginning": "<|im_start|>assistant\n@",
    "a stray backtick before": "It's the user`s file.\n\n@",
    "an apostrophe and quotes": 'It\'s the user\'s "file".\n@\n"Done" comes then.',
    "a link": "See [the docs](https://a.b) and [x].\n@",
    "a check list": "- [x] one\n- [ ] two\n\n@",
    "globs": "All of src/*.py and tests/**/*.py:\n@",
    "dollars": "It costs $5, or $$.\n@",
    "a wide indentation in prose": "So\n        far.\n@",
}

INDENTED: Final = {
    "three blanks": "   @",
    "a list item": "1. Look at it\n   @",
    "a list item with a blank line": "- Look at it\n\n  @",
}
"""Places where a block runs if its text does not depend on the indentation of its lines."""

EXACT: Final[tuple[ProtocolName, ...]] = ("patch", "rewrite")
SHOWING: Final = {"fence": FENCES, "element": ELEMENTS, "thought": THOUGHTS, "place": PLACES}


def put(around: str, block: str) -> str:
    """Put the block at `@`, with its lines indented like the first. `¤` is its end tag, `¶` its name."""
    end = block.rpartition("\n")[2]
    around = around.replace("¤", end).replace("¶", end.strip("</>"))
    line = around.partition("@")[0].rpartition("\n")[2]
    margin = line if not line.strip(" \t") else ""
    return around.replace("@", indent(block, margin)[len(margin) :])


ROWS: Final = (
    *(  # no block runs, regardless of how the reply ended
        Row(name=f"{protocol} shown by {kind}: {name}", text=put(around, block), wants=Withheld(), ended=True)
        for protocol, (block, _) in BLOCKS.items()
        for kind, arounds in SHOWING.items()
        for name, around in arounds.items()
    ),
    *(  # exactly the block runs
        Row(name=f"{protocol} meant: {name}", text=put(around, block), wants=runs, ended=True)
        for protocol, (block, runs) in BLOCKS.items()
        for name, around in (GOOD if protocol in EXACT else GOOD | INDENTED).items()
    ),
    *(  # the content of an indented file is ambiguous
        Row(
            name=f"{name} indented: {where}",
            text=put(around, BLOCKS[name][0]),
            wants=refuses("is indented"),
            ended=True,
        )
        for name in EXACT
        for where, around in INDENTED.items()
    ),
)
