"""PATCH and REWRITE: changes of files. Here they are only read; the path and the match are their tools' business.

PATCH replaces what occurs once (SEARCH, REPLACE) or a stretch between two marks (SEARCH_START, SEARCH_END, REPLACE), on
request only within the lines of RANGE; several changes of one file stand in a DIFF each. REWRITE is the whole file, and
ends with its end tag on a line of its own. Both change the world, so neither is ever completed or mended: a block that
is not whole is not run.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from greenroom.abilities.protocols.blocks import (
    OPEN,
    cdata_end,
    closed,
    element,
    fenced,
    flat,
    led,
    line_end,
    safe,
    sections,
    wrapped,
)
from greenroom.abilities.protocols.calls import not_run
from greenroom.abilities.protocols.jsons import Unreadable
from greenroom.abilities.protocols.outcome import Block, Draft, End, Known, NotRun, ProtocolName
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.model import ToolCall

PATCH_SHAPE: Final = (
    'It looks so: <PATCH file="path"><DIFF><SEARCH>old</SEARCH><REPLACE>new</REPLACE></DIFF></PATCH>. '
    "A text that holds its own closing tag goes into <![CDATA[…]]>."
)
REWRITE_SHAPE: Final = (
    'It looks so: <REWRITE file="path">, the whole content on the lines below, and </REWRITE> on a line of its own. '
    "Content that holds such a line goes into <![CDATA[…]]>."
)
PROSE: Final = frozenset({".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc"})
"""Files that may well be one code fence from the first line to the last."""

_FILE: Final = re.compile(r"""file[ \t]*=[ \t]*(?:"([^"]+)"|'([^']+)'|([^\s"'=]+))""")
_DIFF: Final = re.compile(r"\s*+<DIFF>")
_DIFF_END: Final = re.compile(r"\s*+</DIFF>")
_PART: Final = re.compile(r"\s*+<(RANGE|SEARCH|SEARCH_START|SEARCH_END|REPLACE)>")
_LINES: Final = re.compile(r"[ \t]*([0-9]{1,9})[ \t]*-[ \t]*([0-9]{1,9})[ \t]*")


class PatchBlocks:
    """Reads and writes them."""

    name: ProtocolName = "patch"
    tag: str = "PATCH"

    def end(self, text: str, start: int, indent: int) -> End:
        """Behind the last change, where the end tag must be."""
        try:
            _, at = _edits(text, start)
        except Unreadable:
            return evolve(line_end(text, start, self.tag, indent), sure=False)
        return closed(text, at, self.tag) or evolve(line_end(text, start, self.tag, indent), sure=False)

    def read(self, block: Block, known: Known) -> Draft | NotRun:
        """The changes of one file, if they can be told apart."""
        try:
            path = _path(block)
            edits, at = _edits(block.body, 0)
        except Unreadable as error:
            return not_run(self.tag, str(error), shape=PATCH_SHAPE)
        if block.body[at:].strip():
            return not_run(self.tag, "there is something between or behind the changes.", shape=PATCH_SHAPE)
        call = ToolCall(call_id="", name="patch", arguments={"file": path, "edits": edits})
        return Draft(call=call, unended=not block.sure)

    def write(self, call: ToolCall) -> str:
        """One DIFF per change."""
        edits = call.arguments["edits"]
        diffs = "".join(_diff(edit) for edit in edits) if isinstance(edits, list) else ""
        return f"<PATCH {_attribute(call)}>\n{diffs}</PATCH>"


class RewriteBlocks:
    """Reads and writes them."""

    name: ProtocolName = "rewrite"
    tag: str = "REWRITE"

    def end(self, text: str, start: int, indent: int) -> End:
        """At the first line that begins with the end tag, or behind the CDATA."""
        return cdata_end(text, start, self.tag) or line_end(text, start, self.tag, indent)

    def read(self, block: Block, known: Known) -> Draft | NotRun:
        """The file's new content, byte for byte."""
        try:
            path = _path(block)
        except Unreadable as error:
            return not_run(self.tag, str(error), shape=REWRITE_SHAPE)
        if not block.sure:
            return self._unended(block, path)
        if block.body.lstrip().startswith(OPEN):
            return self._of_cdata(block, path)
        content = led(block.body)
        inside = None if PurePosixPath(path).suffix.lower() in PROSE else fenced(content)
        if inside is not None:
            why = f"a code fence is around the content, and would be written into {path!r}."
            return not_run(self.tag, why, self.write(_rewrite(path, inside)))
        return Draft(call=_rewrite(path, content))

    def _of_cdata(self, block: Block, path: str) -> Draft | NotRun:
        cdata = sections(block.body, 0)
        if cdata is None or block.body[cdata.after :].strip():
            return not_run(self.tag, "its CDATA does not go from the first character to the last.", shape=REWRITE_SHAPE)
        return Draft(call=_rewrite(path, led(cdata.text)))

    def write(self, call: ToolCall) -> str:
        """The content on lines of its own, in CDATA if it would not come back otherwise."""
        content = str(call.arguments["content"])
        end = self.end(flat(f"\n{content}</REWRITE>"), 0, 0)
        safe = end.sure and end.stop == len(content) + 1
        if not safe or content.lstrip().startswith(OPEN) or fenced(content) is not None:
            return f"<REWRITE {_attribute(call)}>\n{wrapped(chr(10) + content)}\n</REWRITE>"
        return f"<REWRITE {_attribute(call)}>\n{content}</REWRITE>"

    def _unended(self, block: Block, path: str) -> NotRun:
        if not block.tagged:
            why = "</REWRITE> is missing, so the file may be cut off. Send it whole."
            return not_run(self.tag, why, shape=REWRITE_SHAPE)
        why = "</REWRITE> is not on a line of its own, so it may be a part of the file."
        return not_run(self.tag, why, self.write(_rewrite(path, led(block.body))))


def _rewrite(path: str, content: str) -> ToolCall:
    return ToolCall(call_id="", name="rewrite", arguments={"file": path, "content": content})


def _path(block: Block) -> str:
    if block.indent and "\n" in flat(block.body):
        raise Unreadable("it is indented, and nobody can tell whether the lines in it are meant to be.")
    found = _FILE.fullmatch(block.attributes)
    path = (found[1] or found[2] or found[3]).strip() if found else ""
    if not path:
        raise Unreadable(f'its opening tag does not name one file: <{block.tag} file="path">.')
    return path


def _attribute(call: ToolCall) -> str:
    path = str(call.arguments["file"])
    quote = "'" if '"' in path else '"'
    return f"file={quote}{path}{quote}"


def _edits(text: str, start: int) -> tuple[list[Data], int]:
    """All changes that are written here, and where they are over; `Unreadable` with a sentence for the model."""
    if not _DIFF.match(text, start):
        edit, at = _edit(text, start)
        return [edit], at
    edits: list[Data] = []
    at = start
    while begin := _DIFF.match(text, at):
        edit, at = _edit(text, begin.end())
        over = _DIFF_END.match(text, at)
        if over is None:
            raise Unreadable(f"change {len(edits) + 1} is not closed by </DIFF>.")
        edits.append(edit)
        at = over.end()
    return edits, at


def _edit(text: str, start: int) -> tuple[Data, int]:
    parts: dict[str, str] = {}
    at = start
    while begin := _PART.match(text, at):
        name = begin[1]
        if name in parts:
            raise Unreadable(f"<{name}> is there twice; every change has its own <DIFF>.")
        part = element(text, begin.end(), name)
        if part is None:
            raise Unreadable(f"<{name}> is not closed by </{name}>, or holds its own tag.")
        parts[name], at = part.text, part.after
    return _checked(parts), at


def _checked(parts: dict[str, str]) -> Data:
    names = parts.keys() - {"RANGE"}
    if names not in ({"SEARCH", "REPLACE"}, {"SEARCH_START", "SEARCH_END", "REPLACE"}):
        there = ", ".join(sorted(names)) or "nothing"
        raise Unreadable(f"a change has SEARCH and REPLACE, or SEARCH_START, SEARCH_END and REPLACE, not {there}.")
    blank = next((name for name in sorted(names - {"REPLACE"}) if not parts[name].strip()), None)
    if blank:
        raise Unreadable(f"<{blank}> is blank.")
    found: dict[str, object] = {name.lower(): parts[name] for name in sorted(names)}
    if "RANGE" in parts:
        found["range"] = _lines(parts["RANGE"])
    return found


def _lines(text: str) -> list[int]:
    lines = _LINES.fullmatch(text.strip())
    first, last = (int(lines[1]), int(lines[2])) if lines else (0, 0)
    if not 1 <= first <= last:
        raise Unreadable(f"<RANGE> is two line numbers such as 10-50, not {text.strip()[:50]!r}.")
    return [first, last]


def _diff(edit: Data) -> str:
    lines = edit.get("range")
    within = f"<RANGE>{lines[0]}-{lines[1]}</RANGE>\n" if isinstance(lines, list) else ""
    order = ("search", "search_start", "search_end", "replace")
    parts = "".join(
        f"<{name.upper()}>{safe(str(edit[name]), name.upper())}</{name.upper()}>\n" for name in order if name in edit
    )
    return f"<DIFF>\n{within}{parts}</DIFF>\n"
