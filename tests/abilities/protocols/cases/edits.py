"""Patches and whole files, well and badly written."""

from typing import Final

from tests.abilities.protocols.house import Refuses, Row, Runs, Says, offers, refuses


def patch(inside: str, attributes: str = ' file="a.py"') -> str:
    return f"<PATCH{attributes}>\n{inside}\n</PATCH>"


def diff(search: str, replace: str) -> str:
    return f"<DIFF>\n<SEARCH>{search}</SEARCH>\n<REPLACE>{replace}</REPLACE>\n</DIFF>"


def patches(*edits: dict[str, object], file: str = "a.py") -> Runs:
    return Runs(tool="patch", arguments={"file": file, "edits": list(edits)})


def one(search: str, replace: str, **more: object) -> dict[str, object]:
    return {"search": search, "replace": replace, **more}


def rewrite(content: str, attributes: str = ' file="a.py"') -> str:
    return f"<REWRITE{attributes}>\n{content}</REWRITE>"


def rewrites(content: str, file: str = "a.py") -> Runs:
    return Runs(tool="rewrite", arguments={"file": file, "content": content})


STRETCH: Final = "<SEARCH_START>a</SEARCH_START>\n<SEARCH_END>z</SEARCH_END>\n<REPLACE>m</REPLACE>"
ONE: Final = diff("a", "b")

PATCHES: Final[dict[str, tuple[str, Runs | Refuses]]] = {
    "plain": (patch(ONE), patches(one("a", "b"))),
    "without DIFF": (patch("<SEARCH>a</SEARCH>\n<REPLACE>b</REPLACE>"), patches(one("a", "b"))),
    "on one line": (f'<PATCH file="a.py">{ONE}</PATCH>'.replace("\n", ""), patches(one("a", "b"))),
    "lines": (patch(diff("\n  a\n  b\n", "\n  c\n")), patches(one("  a\n  b", "  c"))),
    "blank lines at both ends": (patch(diff("\n\na\n\n", "\nb\n")), patches(one("\na\n", "b"))),
    "CRLF": (patch(diff("\na\nb\n", "c")).replace("\n", "\r\n"), patches(one("a\r\nb", "c"))),
    "less and ampersand": (patch(diff("a<b && c", "a>b")), patches(one("a<b && c", "a>b"))),
    "other tags": (
        patch(diff("<p>x</p>", "<TOOL_CALL>{}</TOOL_CALL>")),
        patches(one("<p>x</p>", "<TOOL_CALL>{}</TOOL_CALL>")),
    ),
    "its own end tag": (patch(diff("</PATCH>", "x")), patches(one("</PATCH>", "x"))),
    "its own end tag on a line": (patch(diff("\n</PATCH>\n", "x")), patches(one("</PATCH>", "x"))),
    "CDATA": (
        patch(diff("<![CDATA[</SEARCH>]]>", "<![CDATA[\n<REPLACE>\n]]>")),
        patches(one("</SEARCH>", "<REPLACE>")),
    ),
    **{
        f"CDATA that is a part of {file}": (
            patch(diff("<![CDATA[a]]>", "<![CDATA[\nb\n]]>"), f" file={file}"),
            patches(one("<![CDATA[a]]>", "<![CDATA[\nb\n]]>"), file=file),
        )
        for file in ("a.XML", "a.xsd", "a.csproj", "a.vue", "a.py", "a")
    },
    "CDATA on lines of its own": (
        patch(diff("\n<![CDATA[a]]>\n", "\n  <![CDATA[b]]>\n")),
        patches(one("<![CDATA[a]]>", "  <![CDATA[b]]>")),
    ),
    "CDATA around CDATA": (
        patch(diff("<![CDATA[<![CDATA[a]]]]><![CDATA[>]]>", "<![CDATA[x <![CDATA[b]]>")),
        patches(one("<![CDATA[a]]>", "x <![CDATA[b")),
    ),
    "CDATA that a page needs": (
        patch(diff("a", "<![CDATA[<REPLACE>]]>"), ' file="a.xml"'),
        patches(one("a", "<REPLACE>"), file="a.xml"),
    ),
    "CDATA in the text of a page": (
        patch(diff("<b><![CDATA[a]]></b>", "<b>a</b>"), ' file="a.xml"'),
        patches(one("<b><![CDATA[a]]></b>", "<b>a</b>"), file="a.xml"),
    ),
    "two sections of CDATA": (patch(diff("<![CDATA[a]]><![CDATA[b]]>", "c")), refuses("not closed by </SEARCH>")),
    "an invisible sign between the tags": (
        patch(diff("a", "b")).replace("\n", "\u200b\n"),
        patches(one("a", "b")),
    ),
    "an invisible sign on the lines of the tags": (
        patch(diff("\u200b\na\n", "\ufeff\nb\n\u200b")),
        patches(one("a", "b")),
    ),
    "an invisible sign in the path and the texts": (
        patch(diff("a\u200b", "\ufeffb"), ' file="a\u200b.py"'),
        patches(one("a\u200b", "\ufeffb"), file="a\u200b.py"),
    ),
    "an empty REPLACE": (patch(diff("a", "")), patches(one("a", ""))),
    "a fence in it": (patch(diff("\n```\nx\n```\n", "y")), patches(one("```\nx\n```", "y"))),
    "several changes": (patch(f"{ONE}\n{diff('c', 'd')}"), patches(one("a", "b"), one("c", "d"))),
    "a stretch": (
        patch(f"<DIFF>\n{STRETCH}\n</DIFF>"),
        patches({"search_start": "a", "search_end": "z", "replace": "m"}),
    ),
    "a stretch within lines": (
        patch(f"<DIFF>\n<RANGE>10-50</RANGE>\n{STRETCH}\n</DIFF>"),
        patches({"search_start": "a", "search_end": "z", "replace": "m", "range": [10, 50]}),
    ),
    "one place within lines": (
        patch("<RANGE> 3 - 3 </RANGE><SEARCH>a</SEARCH><REPLACE>b</REPLACE>"),
        patches(one("a", "b", range=[3, 3])),
    ),
    "a path in single quotes": (patch(ONE, " file='a b.py'"), patches(one("a", "b"), file="a b.py")),
    "a path without quotes": (patch(ONE, " file=src/a.py"), patches(one("a", "b"), file="src/a.py")),
    "a Chinese path": (patch(ONE, ' file="源.py"'), patches(one("a", "b"), file="源.py")),
    "no path": (patch(ONE, ""), refuses("does not name one file")),
    "a blank path": (patch(ONE, ' file=" "'), refuses("does not name one file")),
    "an empty path": (patch(ONE, ' file=""'), refuses("does not name one file")),
    "a path under another name": (patch(ONE, ' path="a.py"'), refuses("does not name one file")),
    "two paths": (patch(ONE, ' file="a.py" file="b.py"'), refuses("does not name one file")),
    "an end tag missing": (f'<PATCH file="a.py">\n{ONE}\n', refuses("</PATCH> is missing")),
    "cut off behind a change": (
        patch(f"{ONE}\n<DIFF>\n<SEARCH>c").removesuffix("\n</PATCH>"),
        refuses("not closed by </SEARCH>"),
    ),
    "cut off in REPLACE": (
        '<PATCH file="a.py">\n<DIFF><SEARCH>a</SEARCH><REPLACE>b',
        refuses("not closed by </REPLACE>"),
    ),
    "cut off behind REPLACE": (
        '<PATCH file="a.py">\n<DIFF><SEARCH>a</SEARCH><REPLACE>b</REPLACE>',
        refuses("change 1 is not closed by </DIFF>"),
    ),
    "empty": (patch(""), refuses("not nothing")),
    "a unified diff": (patch("--- a.py\n+++ a.py\n@@ -1 +1 @@\n-a\n+b"), refuses("not nothing")),
    "no REPLACE": (patch("<DIFF><SEARCH>a</SEARCH></DIFF>"), refuses("not SEARCH.")),
    "no SEARCH": (patch("<DIFF><REPLACE>a</REPLACE></DIFF>"), refuses("not REPLACE.")),
    "no SEARCH_END": (
        patch("<SEARCH_START>a</SEARCH_START><REPLACE>b</REPLACE>"),
        refuses("not REPLACE, SEARCH_START."),
    ),
    "both forms": (patch(f"<SEARCH>a</SEARCH>{STRETCH}"), refuses("REPLACE, SEARCH, SEARCH_END, SEARCH_START.")),
    "a blank SEARCH": (patch(diff(" \n", "b")), refuses("<SEARCH> is blank")),
    "two changes without DIFF": (
        patch("<SEARCH>a</SEARCH><REPLACE>b</REPLACE><SEARCH>c</SEARCH><REPLACE>d</REPLACE>"),
        refuses("<SEARCH> is there twice"),
    ),
    "SEARCH in a text of SEARCH": (
        patch(diff("<SEARCH>a</SEARCH>", "b")),
        refuses("<SEARCH> is not closed", "own tag"),
    ),
    "text between": (patch("<SEARCH>a</SEARCH> becomes <REPLACE>b</REPLACE>"), refuses("not SEARCH.")),
    "text behind a change": (patch(f"{ONE}\nThat is it."), refuses("between or behind")),
    "lines that are none": (
        patch("<RANGE>x</RANGE><SEARCH>a</SEARCH><REPLACE>b</REPLACE>"),
        refuses("such as 10-50, not 'x'"),
    ),
    "lines backwards": (patch("<RANGE>5-3</RANGE><SEARCH>a</SEARCH><REPLACE>b</REPLACE>"), refuses("not '5-3'")),
    "line nought": (patch("<RANGE>0-3</RANGE><SEARCH>a</SEARCH><REPLACE>b</REPLACE>"), refuses("not '0-3'")),
    "small letters": (patch("<search>a</search><replace>b</replace>"), refuses("not nothing")),
    "an end tag too many": (patch(ONE) + "\n</PATCH>", refuses("more often than")),
}

REWRITES: Final[dict[str, tuple[str, Runs | Refuses]]] = {
    "plain": (rewrite("x = 1\n"), rewrites("x = 1\n")),
    "several lines": (rewrite("a\n\n  b\n"), rewrites("a\n\n  b\n")),
    "a blank line first": (rewrite("\na\n"), rewrites("\na\n")),
    "content behind the tag": ('<REWRITE file="a.py">x\n</REWRITE>', rewrites("x\n")),
    "an empty file": (rewrite(""), rewrites("")),
    "CRLF": (rewrite("a\nb\n").replace("\n", "\r\n"), rewrites("a\r\nb\r\n")),
    "less and ampersand": (rewrite("if a<b && c:\n"), rewrites("if a<b && c:\n")),
    "its end tag within a line": (
        rewrite("# ends with </REWRITE> as always\n"),
        rewrites("# ends with </REWRITE> as always\n"),
    ),
    "its end tag indented": (rewrite("a\n  </REWRITE>\n"), rewrites("a\n  </REWRITE>\n")),
    "its opening tag within a line": (rewrite("x <REWRITE file=b> y\n"), rewrites("x <REWRITE file=b> y\n")),
    "other blocks": (rewrite("<TOOL_CALL>\n{}\n</TOOL_CALL>\n"), rewrites("<TOOL_CALL>\n{}\n</TOOL_CALL>\n")),
    "thoughts": (rewrite("<think>\n"), rewrites("<think>\n")),
    "an open fence": (rewrite("```\nx\n"), rewrites("```\nx\n")),
    "CDATA": (rewrite("<![CDATA[\n</REWRITE>\n]]>\n"), rewrites("</REWRITE>\n")),
    "CDATA without a line break at the end": (rewrite("<![CDATA[a]]>\n"), rewrites("a")),
    "two sections of CDATA": (rewrite("<![CDATA[a]]><![CDATA[b]]>\n"), refuses("CDATA does not go from")),
    "a byte order mark behind the tag": ('<REWRITE file="a.py">\ufeff\nx\n\u200b</REWRITE>', rewrites("x\n")),
    "its opening tag twice": (rewrite(' <REWRITE file="a.py">\nx\n'), refuses("its opening tag is there twice")),
    "a wide space in the path": (rewrite("x\n", ' file="\xa0a.py"'), rewrites("x\n", file="\xa0a.py")),
    "a byte order mark in the content": (rewrite("\ufeffx\u200b\n"), rewrites("\ufeffx\u200b\n")),
    **{
        f"CDATA that {file} does not need": (
            rewrite("<![CDATA[\na\n]]>\n", f" file={file}"),
            offers("unclear whether the CDATA belongs to", file),
        )
        for file in ("a.xml", "a.vue", "a.py")
    },
    "CDATA with a fence": (rewrite("<![CDATA[\n```\na\n```\n]]>\n"), rewrites("```\na\n```\n")),
    "CDATA in two sections": (rewrite("<![CDATA[a]]]]><![CDATA[>]]>\n"), rewrites("a]]>")),
    "CDATA later on": (rewrite("a\n<![CDATA[b]]>\n"), rewrites("a\n<![CDATA[b]]>\n")),
    "a fence in a text file": (rewrite("```\na\n```\n", ' file="a.md"'), rewrites("```\na\n```\n", file="a.md")),
    "a fence around the content": (rewrite("```python\nx = 1\n```\n"), offers("code fence", "'a.py'")),
    "an end tag missing": ('<REWRITE file="a.py">\nx = 1\n', refuses("</REWRITE> is missing")),
    "the end tag behind the text": ('<REWRITE file="a.py">\nx = 1</REWRITE>', offers("not on a line of its own")),
    "everything on one line": ('<REWRITE file="a.py">x = 1</REWRITE>', offers("not on a line of its own")),
    "CDATA not closed": (rewrite("<![CDATA[\na\n"), refuses("CDATA does not go from")),
    "text behind CDATA": (rewrite("<![CDATA[\na\n]]>\nb\n"), refuses("CDATA does not go from")),
    "no path": (rewrite("a\n", ""), refuses("does not name one file")),
    "an unknown attribute": (rewrite("a\n", ' file="a.py" mode="w"'), refuses("does not name one file")),
    "its end tag on a line": (rewrite("a\n</REWRITE>\nb\n"), refuses("more often than")),
    "its opening tag on a line": (rewrite('a\n<REWRITE file="b">\nb\n'), refuses("only one operation")),
}

OUTSIDE: Final = Says(hint='outside of <PATCH file="path">')
LOST: Final[dict[str, tuple[str, Says]]] = {
    "a change": (ONE, OUTSIDE),
    "a change behind a sentence": (f"I change it:\n\n  {ONE}\nDone.", OUTSIDE),
    "a change on the line of a sentence": ("Now: <DIFF><SEARCH>a</SEARCH><REPLACE>b</REPLACE></DIFF>", OUTSIDE),
    "without DIFF": ("<SEARCH>a</SEARCH>\n<REPLACE>b</REPLACE>", OUTSIDE),
    "a stretch": (STRETCH, OUTSIDE),
    "cut off": ("<SEARCH_START>a\nb", OUTSIDE),
    "a change in a fence": (
        f"```xml\n{ONE}\n```",
        Says(hint="<PATCH> block in your reply was not run: it is inside a"),
    ),
    "a fence of a diff": ("```diff\n-a\n+b\n```", Says()),
    "words": ("Search: a. (Diff) [search] The <SEARCH> tag, `</DIFF>` and <diff>.", Says()),
}

ROWS: Final = (
    *(
        Row(name=f"no patch: {name}", text=text, wants=wants, protocols=("patch",))
        for name, (text, wants) in LOST.items()
    ),
    Row(name="no patch: without the protocol", text=ONE, wants=Says(), protocols=("rewrite",)),
    *(
        Row(name=f"patch: {name}", text=text, wants=wants, protocols=("patch",))
        for name, (text, wants) in PATCHES.items()
    ),
    *(
        Row(name=f"rewrite: {name}", text=text, wants=wants, protocols=("rewrite",))
        for name, (text, wants) in REWRITES.items()
    ),
    *(
        Row(
            name=f"{tool} of a model that stopped: {name}",
            text=text,
            wants=wants,
            protocols=("patch", "rewrite"),
            ended=True,
        )
        for tool, table in (("patch", PATCHES), ("rewrite", REWRITES))
        for name, (text, wants) in table.items()
        if "cut off" in name or "missing" in name
    ),
)
