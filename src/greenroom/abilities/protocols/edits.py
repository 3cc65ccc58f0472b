"""Parse PATCH and REWRITE blocks: changes to files. The tools resolve the path and find the match.

PATCH replaces a text that occurs once (SEARCH, REPLACE), or the text between two marks (SEARCH_START, SEARCH_END,
REPLACE). RANGE restricts either to some lines. Several changes to one file each have their own DIFF. REWRITE contains
the whole file and ends with its end tag on its own line. Both have side effects, so an incomplete block is never
completed or repaired: it does not run.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from greenroom.abilities.protocols.blocks import (
    CDATA_OPEN,
    EDGES,
    GAP,
    align_newlines,
    escape_for_tag,
    find_fenced_text,
    find_line_end,
    find_text_end,
    match_end_tag,
    read_element,
    read_whole_cdata,
    strip_invisible,
    strip_leading_newline,
    strip_tag_newlines,
    wrap_in_cdata,
)
from greenroom.abilities.protocols.calls import reject_block
from greenroom.abilities.protocols.parse_result import (
    Block,
    BlockEnd,
    BlockRejection,
    CallDraft,
    ParseContext,
    ProtocolName,
)
from greenroom.abilities.protocols.strict_json import ParseError
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
PROSE_SUFFIXES: Final = frozenset({".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc"})
"""Suffixes of files that may consist of a single code fence."""

_FILE: Final = re.compile(r"""file[ \t]*=[ \t]*(?:"([^"]+)"|'([^']+)'|([^\s"'=]+))""")
_DIFF: Final = re.compile(rf"{GAP}<DIFF>")
_DIFF_END: Final = re.compile(rf"{GAP}</DIFF>")
_PART: Final = re.compile(rf"{GAP}<(RANGE|SEARCH|SEARCH_START|SEARCH_END|REPLACE)>")
_LINES: Final = re.compile(r"[ \t]*([0-9]{1,9})[ \t]*-[ \t]*([0-9]{1,9})[ \t]*")


class PatchBlocks:
    name: ProtocolName = "patch"
    tag: str = "PATCH"

    def find_end(self, text: str, start: int, indent: int) -> BlockEnd:
        """Find the end tag after the last change."""
        try:
            _, at = _read_edits(text, start)
        except ParseError:
            return evolve(find_line_end(text, start, self.tag, indent), sure=False)
        return match_end_tag(text, at, self.tag) or evolve(find_line_end(text, start, self.tag, indent), sure=False)

    def read(self, block: Block, known: ParseContext) -> CallDraft | BlockRejection:
        """Parse the changes to one file, or reject the block if they are ambiguous."""
        try:
            path = _read_path(block)
            edits, at = _read_edits(block.body, 0)
            parts = ((edit, name) for edit in edits for name in sorted(edit.keys() - {"replace", "range"}))
            for blank in (name for edit, name in parts if not str(edit[name]).strip()):
                raise ParseError(f"<{blank.upper()}> is blank.")
        except ParseError as error:
            return reject_block(self.tag, str(error), shape=PATCH_SHAPE)
        if strip_invisible(block.body[at:]):
            return reject_block(self.tag, "there is something between or behind the changes.", shape=PATCH_SHAPE)
        call = ToolCall(call_id="", name="patch", arguments={"file": path, "edits": edits})
        return CallDraft(call=call, unended=not block.sure)

    def write(self, call: ToolCall) -> str:
        """Write one DIFF per change."""
        edits = call.arguments["edits"]
        diffs = "".join(_render_diff(edit) for edit in edits) if isinstance(edits, list) else ""
        return f"<PATCH {_render_file_attribute(call)}>\n{diffs}</PATCH>"


class RewriteBlocks:
    name: ProtocolName = "rewrite"
    tag: str = "REWRITE"

    def find_end(self, text: str, start: int, indent: int) -> BlockEnd:
        """Find the first line that begins with the end tag, or the end of the CDATA."""
        return find_text_end(text, start, indent, tag=self.tag)

    def read(self, block: Block, known: ParseContext) -> CallDraft | BlockRejection:
        """Parse the file's new content, byte for byte."""
        try:
            path = _read_path(block)
        except ParseError as error:
            return reject_block(self.tag, str(error), shape=REWRITE_SHAPE)
        if not block.sure:
            return self._reject_unended(block, path)
        if block.body.lstrip().startswith(CDATA_OPEN):
            return self._read_cdata_block(block, path)
        content = strip_leading_newline(block.body)
        if content.lstrip().startswith("<REWRITE "):
            return reject_block(self.tag, "its opening tag is there twice.", shape=REWRITE_SHAPE)
        inside = None if PurePosixPath(path).suffix.lower() in PROSE_SUFFIXES else find_fenced_text(content)
        if inside is not None:
            why = f"a code fence is around the content, and would be written into {path!r}."
            return reject_block(self.tag, why, self.write(_build_rewrite_call(path, inside)))
        return CallDraft(call=_build_rewrite_call(path, content))

    def _read_cdata_block(self, block: Block, path: str) -> CallDraft | BlockRejection:
        inside = read_whole_cdata(block.body)
        if inside is None:
            why = "its CDATA does not go from the first character to the last."
            return reject_block(self.tag, why, shape=REWRITE_SHAPE)
        call = _build_rewrite_call(path, strip_leading_newline(inside))
        if CDATA_OPEN in (repaired := self.write(call)):
            return CallDraft(call=call)
        why = f"it is unclear whether the CDATA belongs to {path!r}. Send the content without it."
        return reject_block(self.tag, why, repaired)

    def write(self, call: ToolCall) -> str:
        """Write the content on its own lines, in CDATA if it would not read back unchanged otherwise."""
        content = str(call.arguments["content"])
        end = self.find_end(align_newlines(f"\n{content}</REWRITE>"), 0, 0)
        safe = end.sure and end.stop == len(content) + 1
        safe = safe and not EDGES.search(content) and not content.lstrip().startswith((CDATA_OPEN, "<REWRITE "))
        if not safe or find_fenced_text(content) is not None:
            return f"<REWRITE {_render_file_attribute(call)}>\n{wrap_in_cdata(chr(10) + content)}\n</REWRITE>"
        return f"<REWRITE {_render_file_attribute(call)}>\n{content}</REWRITE>"

    def _reject_unended(self, block: Block, path: str) -> BlockRejection:
        if not block.tagged:
            why = "</REWRITE> is missing, so the file may be cut off. Send it whole."
            return reject_block(self.tag, why, shape=REWRITE_SHAPE)
        why = "</REWRITE> is not on a line of its own, so it may be a part of the file."
        return reject_block(self.tag, why, self.write(_build_rewrite_call(path, strip_leading_newline(block.body))))


def _build_rewrite_call(path: str, content: str) -> ToolCall:
    return ToolCall(call_id="", name="rewrite", arguments={"file": path, "content": content})


def _read_path(block: Block) -> str:
    if block.indent and "\n" in align_newlines(block.body):
        raise ParseError("it is indented, and it is unclear whether the lines in it are meant to be.")
    found = _FILE.fullmatch(block.attributes)
    path = (found[1] or found[2] or found[3]).strip(" \t") if found else ""
    if not path.strip():
        raise ParseError(f'its opening tag does not name one file: <{block.tag} file="path">.')
    return path


def _render_file_attribute(call: ToolCall) -> str:
    path = str(call.arguments["file"])
    quote = "'" if '"' in path else '"'
    return f"file={quote}{path}{quote}"


def _read_edits(text: str, start: int) -> tuple[list[Data], int]:
    """Read all changes from `start`, and where they end. Raise `ParseError` with a sentence for the model."""
    if not _DIFF.match(text, start):
        edit, at = _read_edit(text, start)
        return [edit], at
    edits: list[Data] = []
    at = start
    while begin := _DIFF.match(text, at):
        edit, at = _read_edit(text, begin.end())
        over = _DIFF_END.match(text, at)
        if over is None:
            raise ParseError(f"change {len(edits) + 1} is not closed by </DIFF>.")
        edits.append(edit)
        at = over.end()
    return edits, at


def _read_edit(text: str, start: int) -> tuple[Data, int]:
    parts: dict[str, str] = {}
    at = start
    while begin := _PART.match(text, at):
        name = begin[1]
        if name in parts:
            raise ParseError(f"<{name}> is there twice; every change has its own <DIFF>.")
        part = read_element(text, begin.end(), name)
        if part is None:
            raise ParseError(f"<{name}> is not closed by </{name}>, or holds its own tag.")
        written, at = strip_tag_newlines(text[begin.end() : part.after].rpartition("</")[0]), part.after
        # CDATA that the tag does not need is a part of the file.
        is_escaped = written.count(CDATA_OPEN) > 1 or f"<{name}>" in written or f"</{name}>" in written
        parts[name] = part.text if is_escaped else written
    return _check_parts(parts), at


def _check_parts(parts: dict[str, str]) -> Data:
    names = parts.keys() - {"RANGE"}
    if names not in ({"SEARCH", "REPLACE"}, {"SEARCH_START", "SEARCH_END", "REPLACE"}):
        there = ", ".join(sorted(names)) or "nothing"
        raise ParseError(f"a change has SEARCH and REPLACE, or SEARCH_START, SEARCH_END and REPLACE, not {there}.")
    found: dict[str, object] = {name.lower(): parts[name] for name in sorted(names)}
    if "RANGE" in parts:
        text = parts["RANGE"]
        lines = _LINES.fullmatch(text.strip())
        first, last = (int(lines[1]), int(lines[2])) if lines else (0, 0)
        if not 1 <= first <= last:
            raise ParseError(f"<RANGE> is two line numbers such as 10-50, not {text.strip()[:50]!r}.")
        found["range"] = [first, last]
    return found


def _render_diff(edit: Data) -> str:
    lines = edit.get("range")
    within = f"<RANGE>{lines[0]}-{lines[1]}</RANGE>\n" if isinstance(lines, list) else ""
    order = ("search", "search_start", "search_end", "replace")
    parts = "".join(
        f"<{name.upper()}>{escape_for_tag(str(edit[name]), name.upper())}</{name.upper()}>\n"
        for name in order
        if name in edit
    )
    return f"<DIFF>\n{within}{parts}</DIFF>\n"
