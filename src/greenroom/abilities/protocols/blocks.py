"""Find the blocks of a reply that should run, where each block ends, and its raw text.

One scanner decides for every protocol. It skips reasoning, code, comments and the text of other elements. Any other
line that begins with a known tag starts a block. This module does not parse XML: each protocol parses its own bodies.

Invisible characters are removed from the text that is searched, never from a body, a path or a content. One line break
after an opening tag and one before the closing tag belong to the tags, with the invisible characters between them.
Everything else belongs to the text, byte for byte. `<![CDATA[…]]>` around the whole text escapes what looks like a tag.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from greenroom.abilities.protocols.parse_result import Block, BlockEnd, BlockScan, EndFinder
from greenroom.abilities.protocols.strict_json import find_value_end
from greenroom.core.base.records import record

MAX_BLOCKS: Final = 20
"""Maximum number of blocks that are examined in one reply. Only a single block is valid."""

WRAPPER_TAGS: Final = ("function_calls", "tool_calls")
"""Tags that some models are trained to put around a call."""

EMPTY_TAGS: Final = frozenset({"br", "hr", "img", "input", "wbr", "s", "bos", "eos"})
"""Tags without an end: of HTML, and the first sign of some models."""

INVISIBLE: Final = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
"""Characters without width, as they stand in a pattern."""

GAP: Final = rf"[\s{INVISIBLE}]*+"
"""The pattern of what may stand between two tags."""

_INVISIBLE: Final = re.compile(f"[{INVISIBLE}]")
EDGES: Final = re.compile(rf"\A[{INVISIBLE}]+(?=\r?\n)|(?<=\n)[{INVISIBLE}]+\Z")
"""Invisible characters between a tag and the line break beside it."""

_OUTER: Final = re.compile(rf"\A(?:[ \t]*+\r?\n)*+[{INVISIBLE}]+|[{INVISIBLE}]+\Z")
_BLANKS: Final = dict.fromkeys((0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " ")

_THINK: Final = (
    r"(?i:(?:[\w.-]{1,40}:)?(?:think|thinking|thoughts?|thought_process|reasoning|reasoning_content|scratch_?pad"
    r"|inner_?monologue|antthinking|chain_of_thought))"
)
_REASONING: Final = {
    rf"<{_THINK}(?:\s[^<>]*+)?>": rf"</{_THINK}\s*+>",
    r"(?i:\[think\])": r"(?i:\[/think\])",
    "◁think▷": "◁/think▷",
    r"<\|(?i:(?:begin_of_|start_)?(?:thinking|thought))\|>": r"<\|(?i:(?:/|end_of_|end_)(?:thinking|thought))\|>",
    r"<\|channel\|>\s*+(?!final\b)": r"<\|channel\|>\s*+final\b[^<]*+(?:<\|message\|>)?",
}
"""How reasoning begins and ends in the text of different models."""

_SHOWN: Final = {"<!--": "-->", "<![CDATA[": "]]>", r"\begin{verbatim}": r"\end{verbatim}"}
"""What else shows a text, by how it begins and ends."""

_PATCH_PARTS: Final = "DIFF|SEARCH|SEARCH_START|SEARCH_END|REPLACE"
"""The tags within <PATCH>."""

_END_TOKEN: Final = r"(?:<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|call)\|>|</s>|<eos>|<end_of_turn>)"
_TRAILING_TOKENS: Final = re.compile(rf"(?:{_END_TOKEN}\s*+)++\Z")
_LINE_REST: Final = re.compile(rf"(?:[ \t]|</?(?:{'|'.join(WRAPPER_TAGS)})>|{_END_TOKEN})*+$", re.MULTILINE)
_CLOSING: Final = re.compile(r"[<\[]/([^\W\d][\w.:-]*+)\s*+[>\]]")
_FOREIGN_CALL: Final = (
    r"<function=|<invoke\s|<tool_use\b|<function_call>|<\|python_tag\|>|<\|tool_call|<｜tool|\[TOOL_CALLS\]"
)


@lru_cache(maxsize=64)
def _compile_event_pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    """Compile the pattern of everything that matters in a reply. The last matched group names the kind."""
    return re.compile(
        rf"^{_build_opening_pattern(tags, '[ ]{0,3}')}"
        r"|(?P<code>(?<!`)(?P<ticks>`++)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`))"
        r"|(?P<fence>(?P<run>`{3,}+|~{3,}+)(?P<info>[^\n]*+))"
        rf"|(?=<[^<]|[\[◁\\])(?:(?P<comment>{'|'.join(map(re.escape, _SHOWN))})"
        rf"|(?P<thought>{'|'.join(_REASONING)})"
        rf"|(?P<thought_end>{'|'.join(_REASONING.values())})"
        r"|(?P<element>[<\[](?P<slash>/?)(?P<name>[^\W\d][\w.:-]*+)(?:[\s/=][^<>\[\]]*+)?[>\]]))",
        re.MULTILINE,
    )


@lru_cache(maxsize=64)
def _compile_adjacent_pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    """Compile the pattern of a block directly after another block or after reasoning. It counts as its own line."""
    return re.compile(_build_opening_pattern(tags, r"[ \t]*+"))


def _build_opening_pattern(tags: Sequence[str], indent: str) -> str:
    names = "|".join(map(re.escape, tags))
    return rf"(?P<open>(?P<indent>{indent})<(?P<tag>{names})(?P<attributes>[ \t][^<>\n]*+)?>)"


@lru_cache(maxsize=64)
def _compile_damage_pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    """Compile the pattern of what is left of a damaged block: nearly a tag, at the start of a line or before a body; an
    end tag; a part of a patch; the beginning of a tag at the end of the reply; or a form that other systems use."""
    word = "(?i:" + "|".join(re.escape(tag).replace("_", "[ _-]?") + "S?" for tag in tags) + ")"
    begun = "(?:" + "|".join("(?:".join(re.escape(tag)) + ")?" * (len(tag) - 1) for tag in tags) + ")"
    part = rf"|(?:^[ \t]*+<|</)(?P<part>{_PATCH_PARTS})>" if "PATCH" in tags else ""
    sign, over = r"(?:[<＜\[{(]|&lt;)[ \t|]*+", r"(?:[>＞\])}]|&gt;)"
    return re.compile(
        rf"(?!<<)(?:^[ \t]*+(?:(?:[*_]{{0,3}}{sign}|\\<|`{{3,}}+|~{{3,}}+)[ \t]*+(?P<word>{word})"
        rf"(?=[\s>\])}}|＞&/:=]|\Z)/?{over}?"
        rf"|(?P<label>{word})(?:[ \t]++file[^\n<>]*+)?[ \t]*+(?:{over}|:\s*+\{{)|(?P<foreign>{_FOREIGN_CALL}))"
        rf"|(?:<|＜|&lt;)[ \t]*+(?P<tag>{word})(?:[ \t][^\n<>]{{0,200}}+)?{over}(?=[ \t]*+(?:$|[{{<]))"
        rf"|{sign}/[ \t]*+(?P<end>{word})\b[ \t]*+{over}?{part}|</?(?P<begun>{begun})\Z)",
        re.MULTILINE,
    )


def find_blocks(text: str, end_finders: Mapping[str, EndFinder]) -> BlockScan:
    """Find the blocks of these tags in a reply. Each end finder locates the end of a body from its start."""
    tokens = _TRAILING_TOKENS.search(text, max(0, len(text) - 200))
    return _BlockScanner(text[: tokens.start()] if tokens else text, end_finders).scan()


class _BlockScanner:
    """One pass through one reply, from left to right. It jumps over bodies and skipped text."""

    def __init__(self, text: str, end_finders: Mapping[str, EndFinder]) -> None:
        self._text = text
        self._removed = [found.start() - count for count, found in enumerate(_INVISIBLE.finditer(text))]
        self._clean = align_newlines(_INVISIBLE.sub("", text) if self._removed else text).translate(_BLANKS)
        self._end_finders = end_finders
        self._tags = tuple(end_finders)
        self._last_close = {found[1].lower(): found.start() for found in _CLOSING.finditer(self._clean)}
        self._blocks: list[Block] = []
        self._block_count = 0
        self._adjacent_at = -1
        self._block_spans: list[tuple[int, int]] = []
        self._reasoning_spans: list[tuple[int, int]] = []
        self._shown_spans: list[tuple[int, int]] = []
        self._open_elements: dict[str, int] = {}
        self._lone_elements: set[str] = set()
        self._mentioned_tag = ""
        self._unrun_block: tuple[str, str] | None = None
        self._doubt = ""

    def scan(self) -> BlockScan:
        at, events, adjacent = 0, _compile_event_pattern(self._tags), _compile_adjacent_pattern(self._tags)
        steps = {
            "open": self._read_block,
            "code": self._skip_inline_code,
            "fence": self._skip_fence,
            "comment": self._skip_comment,
            "thought": self._skip_reasoning,
            "thought_end": self._end_reasoning,
            "element": self._note_element,
        }
        while self._block_count < MAX_BLOCKS:
            found = adjacent.match(self._clean, at) if at == self._adjacent_at else None
            found = found or events.search(self._clean, at)
            if found is None:
                break
            at = steps[str(found.lastgroup)](found)
        hint = "" if self._blocks else self._render_hint()
        cuts = [self._to_raw(*span) for span in (*self._reasoning_spans, *self._block_spans)]
        said = _remove_spans(self._text, cuts).strip()
        return BlockScan(blocks=tuple(self._blocks), doubt=self._find_doubt(), said=said, hint=hint)

    def _to_raw(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of the searched text is in the reply, with the invisible characters at its edges."""
        return start + bisect_left(self._removed, start), end + bisect_right(self._removed, end)

    def _cut(self, start: int, end: int) -> str:
        start, end = self._to_raw(start, end)
        return self._text[start:end]

    def _read_block(self, found: re.Match[str]) -> int:
        tag, start, body = found["tag"], found.start(), found.end()
        self._block_count += 1
        indent = 0 if start == self._adjacent_at else self._cut(*found.span("indent")).count(" ")
        end = self._end_finders[tag](self._clean, body, indent)
        around = next((name for name in self._open_elements if self._last_close.get(name, -1) >= end.after), None)
        if around is not None:
            self._note_unrun_block(tag, f"inside <{around}>")
            return end.after if end.tagged else body
        unclosed = next((name for name in self._open_elements if name in self._lone_elements), None)
        if unclosed is not None:
            self._doubt = f"<{unclosed}> before it is not closed, so it may be a part of it. Leave <{unclosed}> out."
        clear = _LINE_REST.match(self._clean, end.after) or _compile_adjacent_pattern(self._tags).match(
            self._clean, end.after
        )
        block = Block(
            tag=tag,
            attributes=strip_invisible(self._cut(*found.span("attributes"))) if found["attributes"] else "",
            body=EDGES.sub("", self._cut(body, end.stop)),
            line=self._clean.count("\n", 0, start) + 1,
            sure=end.sure,
            tagged=end.tagged,
            clear=bool(clear),
            indent=indent,
        )
        self._blocks.append(block)
        self._block_spans.append((start, end.after))
        self._adjacent_at = end.after
        return end.after

    def _skip_inline_code(self, found: re.Match[str]) -> int:
        self._shown_spans.append(found.span())
        if self._clean.strip() == found[0]:
            self._note_unrun_block_within(*found.span(), "inside backticks", is_open=False)
        return found.end()

    def _skip(self, found: re.Match[str], closing: str, place: str) -> tuple[int, bool]:
        """Return where the text ends that begins here, and whether it is closed. If not, the reply ends in it."""
        close = re.compile(closing, re.MULTILINE).search(self._clean, found.end())
        end = close.end() if close else len(self._clean)
        if close:
            self._shown_spans.append((found.end(), end))
        self._note_unrun_block_within(found.start(), end, place, is_open=close is None)
        return end, close is not None

    def _skip_fence(self, found: re.Match[str]) -> int:
        run = found["run"]
        end, is_closed = self._skip(found, rf"^[ \t>]*+{run[0]}{{{len(run)},}}+[ \t]*+$", "inside a code fence")
        if self._blocks and not is_closed:
            self._doubt = "a code fence behind it is not closed, so it may have begun in the block or before."
        return end

    def _skip_comment(self, found: re.Match[str]) -> int:
        return self._skip(found, re.escape(_SHOWN[found[0]]), f"behind {found[0]}")[0]

    def _skip_reasoning(self, found: re.Match[str]) -> int:
        start = found.start()
        opening = next(opening for opening in _REASONING if re.match(opening, found[0]))
        name = re.match(r"<([\w.:-]++)", found[0])
        closing = rf"(?i:</{re.escape(name[1])}\s*+>)" if name else _REASONING[opening]
        end, _ = self._skip(found, closing, "inside your thoughts")
        # Reasoning that begins its line may be followed by a block on the same line.
        if self._begins_line(start):
            self._adjacent_at = end
        self._reasoning_spans.append((start, end))
        return end

    def _end_reasoning(self, found: re.Match[str]) -> int:
        """Treat everything up to here as reasoning: some templates open the reasoning themselves. A quote does not."""
        if self._clean[: found.start()].rpartition("\n")[2].lstrip().startswith(">"):
            return found.end()
        if self._blocks or self._mentioned_tag:
            tag = self._blocks[0].tag if self._blocks else self._mentioned_tag
            self._unrun_block = (tag, "inside your thoughts")
        for found_so_far in (self._blocks, self._block_spans, self._open_elements, self._lone_elements):
            found_so_far.clear()
        self._doubt = self._mentioned_tag = ""
        self._reasoning_spans = [(0, found.end())]
        self._adjacent_at = found.end()
        return found.end()

    def _note_element(self, found: re.Match[str]) -> int:
        name = found["name"].lower()
        if found["slash"]:
            if self._open_elements.get(name, 0) > 1:
                self._open_elements[name] -= 1
            else:
                self._open_elements.pop(name, None)
        elif not found[0].endswith(("/>", "/]")) and name not in WRAPPER_TAGS:
            self._open_elements[name] = self._open_elements.get(name, 0) + 1
            if found["name"] in self._end_finders and found[0][0] == "<" and name in self._last_close:
                self._mentioned_tag = found["name"]
            rest = self._clean[found.end() : found.end() + 80].partition("\n")[0].strip()
            if found[0][0] == "<" and name not in EMPTY_TAGS and not rest and self._begins_line(found.start()):
                self._lone_elements.add(name)
        return found.end()

    def _begins_line(self, at: int) -> bool:
        """Return whether nothing but reasoning is before this position on its line."""
        return not self._clean[max(0, at - 80, self._adjacent_at) : at].rpartition("\n")[2].strip()

    def _note_unrun_block(self, tag: str, place: str) -> None:
        """Remember the first block in a place where blocks do not run. The model gets a hint about it."""
        self._unrun_block = self._unrun_block or (tag, place)

    def _note_unrun_block_within(self, start: int, end: int, place: str, *, is_open: bool) -> None:
        """Note a block that begins a line or has an end. In what is never closed, every opening tag counts."""
        tags = "|".join((*self._tags, _PATCH_PARTS) if "PATCH" in self._tags else self._tags)
        opening = re.compile(rf"(?P<line>^[ \t>]*+)?<(?P<tag>{tags})[ >]", re.MULTILINE)
        shown = None if self._unrun_block else opening.search(self._clean, start, end)
        if shown and (
            is_open or shown["line"] is not None or self._clean.find(f"</{shown['tag']}", shown.end(), end) >= 0
        ):
            self._note_unrun_block(shown["tag"] if shown["tag"] in self._tags else "PATCH", place)

    def _find_doubt(self) -> str:
        """Return why no block can run regardless of its content: the text after it may belong to it."""
        if not self._blocks:
            return ""
        block, (_, after), others = self._blocks[0], self._block_spans[0], self._block_spans[1:]
        for end in re.compile(rf"<[ \t]*+/[ \t]*+(?i:{block.tag})\b").finditer(self._clean, after):
            is_own_half = not block.tagged and not self._clean[after : end.start()].strip()
            if not is_own_half and not any(start <= end.start() < stop for start, stop in others):
                return (
                    f"</{block.tag}> is there more often than <{block.tag}>, so it is unclear where the block ends. "
                    f"A text that must hold </{block.tag}> goes into JSON or <![CDATA[…]]>."
                )
        return "there are too many blocks in the reply." if self._block_count >= MAX_BLOCKS else self._doubt

    def _render_hint(self) -> str:
        """Render the hint for a model that wrote something similar to a block."""
        said = _remove_spans(self._clean, self._reasoning_spans).strip()
        visible = _remove_spans(self._clean, (*self._reasoning_spans, *self._shown_spans)) if said else self._clean
        found = _compile_damage_pattern(self._tags).search(visible)
        word = str(found[str(found.lastgroup)]) if found and not found["foreign"] else "tool_call"
        if self._unrun_block or self._mentioned_tag or (word in self._tags and found and found["tag"]):
            tag, place = self._unrun_block or (self._mentioned_tag or word, "not at the start of a line")
            return (
                f"The <{tag}> block in your reply was not run: it is {place}. To run it, write it again with <{tag}> "
                "at the start of a line, nothing around it, and nothing behind its end."
            )
        if found and found.lastgroup == "part":
            return f'{found[0].strip()} is outside of <PATCH file="path"> and </PATCH>, so nothing was run.'
        tag = next((tag for tag in self._tags if _fold_name(tag).startswith(_fold_name(word).removesuffix("s"))), "")
        if found is None or not tag:
            return ""
        form = f"<{tag}>, and at the end </{tag}>"
        return f"{found[0].strip()} is not a tag here, so nothing was run. Write it exactly so: {form}."


def align_newlines(text: str) -> str:
    """Replace every line ending with a line feed and keep all positions. Use the result only for searching."""
    return text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text


def strip_invisible(text: str) -> str:
    """Remove white space and invisible characters at both ends."""
    return re.sub(rf"\A{GAP}|[\s{INVISIBLE}]+\Z", "", text)


def _fold_name(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _remove_spans(text: str, cuts: Sequence[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in sorted(cuts):
        pieces.append(text[at:start])
        at = max(at, end)
    return "".join((*pieces, text[at:]))


CDATA_OPEN: Final = "<![CDATA["
CDATA_CLOSE: Final = "]]>"

_CDATA: Final = re.compile(rf"{GAP}<!\[CDATA\[")
_FENCE_BEFORE: Final = re.compile(r"\s*+(?P<run>`{3,}+|~{3,}+)[^\n]*+\n")
_FENCE_BEHIND: Final = re.compile(r"\s*+(?:`{3,}+|~{3,}+)?+")


@record
class TaggedText:
    """Text between tags, and where its closing tag ended."""

    text: str
    after: int


def strip_tag_newlines(text: str) -> str:
    """Remove the line break after the opening tag and the one before the closing tag."""
    text = strip_leading_newline(EDGES.sub("", text))
    return text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")


def strip_leading_newline(text: str) -> str:
    """Remove the line break after the opening tag."""
    return text.removeprefix("\r\n") if text.startswith("\r\n") else text.removeprefix("\n")


def add_tag_newlines(text: str) -> str:
    """Add the line breaks that `strip_tag_newlines` removes. A text without line breaks stays unchanged."""
    if "\n" not in text:
        return text
    return "\n" + text + ("" if text.endswith("\r") else "\n")


def normalize_newlines(text: str) -> str:
    """Replace every line ending with a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def wrap_in_cdata(text: str) -> str:
    return CDATA_OPEN + text.replace(CDATA_CLOSE, "]]" + CDATA_CLOSE + CDATA_OPEN + ">") + CDATA_CLOSE


def read_cdata(text: str, at: int) -> TaggedText | None:
    """Read the CDATA that begins here; `]]]]><![CDATA[>` in it is `]]>`. Return None if it is missing or not closed."""
    begins = _CDATA.match(text, at)
    if begins is None:
        return None
    pieces, at = [], begins.end()
    while (end := text.find(CDATA_CLOSE, at)) >= 0:
        pieces.append(text[at:end])
        at = end + len(CDATA_CLOSE)
        if not (pieces[-1].endswith("]]") and text.startswith(CDATA_OPEN + ">", at)):
            return TaggedText(text="".join(pieces), after=at)
        at += len(CDATA_OPEN)
    return None


def read_element(text: str, at: int, tag: str) -> TaggedText | None:
    """Read the raw text up to the closing tag. Return None if the closing tag is ambiguous: the text is not closed,
    continues after its CDATA, or opens its own tag again."""
    if _CDATA.match(text, at):
        inside = read_cdata(text, at)
        close = _compile_close_tag(tag).match(text, inside.after) if inside else None
        return TaggedText(text=strip_tag_newlines(inside.text), after=close.end()) if inside and close else None
    end = text.find(f"</{tag}>", at)
    if end < 0 or text.find(f"<{tag}>", at, end) >= 0:
        return None
    return TaggedText(text=strip_tag_newlines(text[at:end]), after=end + len(tag) + 3)


def escape_for_tag(text: str, tag: str) -> str:
    """Wrap the text in CDATA if this tag could not hold it unambiguously."""
    inside = add_tag_newlines(text)
    doubtful = f"</{tag}>" in inside or f"<{tag}>" in inside or inside.lstrip().startswith(CDATA_OPEN)
    return wrap_in_cdata(inside) if doubtful else inside


def strip_wrapper(body: str) -> str:
    """Remove the CDATA or the single code fence around the body, and what is invisible at its ends."""
    inside = read_whole_cdata(body)
    inside_fence = find_fenced_text(body) if inside is None else inside
    return _OUTER.sub("", body) if inside_fence is None else inside_fence


def read_whole_cdata(text: str) -> str | None:
    """Return the text in the CDATA if nothing else is there, or None."""
    inside = read_cdata(text, 0)
    return inside.text if inside is not None and not strip_invisible(text[inside.after :]) else None


def find_fenced_text(body: str) -> str | None:
    """Return the text inside the code fence around the whole body, if there is one."""
    text = body.strip()
    begin, last = _FENCE_BEFORE.match(text), text.rfind("\n")
    if begin is None or text[last + 1 :].strip() != begin["run"]:
        return None
    return text[begin.end() : last + 1]


def _compile_close_tag(tag: str) -> re.Pattern[str]:
    return re.compile(rf"{GAP}</(?i:{re.escape(tag)})[ \t]*+>")


def match_end_tag(text: str, at: int, tag: str) -> BlockEnd | None:
    """Return the end of a block whose body ends at `at`, if only its end tag follows."""
    close = _compile_close_tag(tag).match(text, at)
    return None if close is None else BlockEnd(stop=at, after=close.end(), sure=True, tagged=True)


def find_line_end(text: str, start: int, tag: str, indent: int) -> BlockEnd:
    """Find the end tag on its own line, which is certain; else the first end tag; else the start of the next block."""
    margin, name = rf"^[ \t]{{0,{indent}}}", re.escape(tag)
    following = re.compile(rf"{margin}<{name}(?:[ \t][^<>\n]*+)?>", re.MULTILINE).search(text, start)
    limit = following.start() if following else len(text)
    line = re.compile(rf"{margin}</{name}[ \t]*+>", re.MULTILINE).search(text, start, limit)
    if line:
        return BlockEnd(stop=line.start(), after=line.end(), sure=True, tagged=True)
    close = re.compile(rf"</{name}[ \t]*+>").search(text, start, limit)
    if close:
        return BlockEnd(stop=close.start(), after=close.end(), sure=False, tagged=True)
    return BlockEnd(stop=limit, after=limit, sure=False, tagged=False)


def find_cdata_end(text: str, start: int, tag: str) -> BlockEnd | None:
    """Find the end of a body that begins with CDATA."""
    inside = read_cdata(text, start)
    return None if inside is None else match_end_tag(text, inside.after, tag)


def find_text_end(text: str, start: int, indent: int, *, tag: str) -> BlockEnd:
    """Find the end of raw text: the end of its CDATA, or the end tag."""
    return find_cdata_end(text, start, tag) or find_line_end(text, start, tag, indent)


def find_data_end(text: str, start: int, indent: int, *, tag: str) -> BlockEnd:
    """Find the end of JSON or YAML. JSON shows its own end, so it may contain or lack the end tag."""
    end = find_cdata_end(text, start, tag)
    if end is not None:
        return end
    fence = _FENCE_BEFORE.match(text, start)
    over = find_value_end(text, fence.end() if fence else start)
    if over is None:
        return find_line_end(text, start, tag, indent)
    behind = _FENCE_BEHIND.match(text, over)
    over = behind.end() if fence and behind else over
    loose = find_line_end(text, over, tag, indent)
    if loose.tagged:
        return match_end_tag(text, over, tag) or loose
    return BlockEnd(stop=over, after=over, sure=True, tagged=False)
