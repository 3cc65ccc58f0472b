"""Find the blocks of a reply that should run, where each block ends, and its raw text.

The scanner skips reasoning, fenced code, inline code and unknown elements. Any other line that begins with a known tag
starts a block. This module does not parse XML: each protocol parses its own bodies.

One line break after an opening tag and one before the closing tag belong to the tags. Everything else belongs to the
text, byte for byte. `<![CDATA[…]]>` around the whole text escapes anything that looks like a tag.
"""

from __future__ import annotations

import re
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

_END_TOKEN: Final = r"(?:<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|call)\|>|</s>|<eos>|<end_of_turn>)"
_TRAILING_TOKENS: Final = re.compile(rf"(?:{_END_TOKEN}\s*+)++\Z")
_LINE_REST: Final = re.compile(rf"(?:[ \t]|</?(?:{'|'.join(WRAPPER_TAGS)})>|{_END_TOKEN})*+$", re.MULTILINE)
_CLOSING: Final = re.compile(r"</([^\W\d][\w.:-]*+)\s*+>")
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
        rf"|(?P<thought>{'|'.join(_REASONING)})"
        rf"|(?P<thought_end>{'|'.join(_REASONING.values())})"
        r"|(?P<element><(?P<slash>/?)(?P<name>[^\W\d][\w.:-]*+)(?:[\s/][^<>]*+)?>)",
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
def _compile_misspelt_pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    """Compile the pattern of near misses of these tags, and of forms that other systems use, at the start of a line."""
    word = "(?i:" + "|".join(re.escape(tag).replace("_", "[ _-]?") + "S?" for tag in tags) + ")"
    return re.compile(
        rf"^[ \t]*+(?:(?:[*_]{{1,3}}<|\\<|<[ \t|]*+|＜|&lt;|[\[{{(]|`{{3,}}+|~{{3,}}+)[ \t]*+(?P<word>{word})"
        r"(?=[\s>\])}|＞&/:=]|\Z)/?[>\])}]?"
        rf"|(?P<label>{word})[ \t]*+:\s*+\{{|(?P<foreign>{_FOREIGN_CALL}))",
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
        self._aligned_text = align_newlines(text)
        self._end_finders = end_finders
        self._tags = tuple(end_finders)
        self._last_close = {found[1].lower(): found.start() for found in _CLOSING.finditer(self._aligned_text)}
        self._blocks: list[Block] = []
        self._block_count = 0
        self._adjacent_at = -1
        self._reasoning_spans: list[tuple[int, int]] = []
        self._code_spans: list[tuple[int, int]] = []
        self._open_elements: dict[str, int] = {}
        self._mentioned_tag = ""
        self._unrun_block: tuple[str, str] | None = None
        self._doubt = ""

    def scan(self) -> BlockScan:
        at, events, adjacent = 0, _compile_event_pattern(self._tags), _compile_adjacent_pattern(self._tags)
        steps = {
            "open": self._read_block,
            "code": self._skip_inline_code,
            "fence": self._skip_fence,
            "thought": self._skip_reasoning,
            "thought_end": self._end_reasoning,
            "element": self._note_element,
        }
        while self._block_count < MAX_BLOCKS:
            found = adjacent.match(self._aligned_text, at) if at == self._adjacent_at else None
            found = found or events.search(self._aligned_text, at)
            if found is None:
                break
            at = steps[str(found.lastgroup)](found)
        hint = "" if self._blocks else self._render_hint()
        cuts = (*self._reasoning_spans, *((block.start, block.after) for block in self._blocks))
        said = _remove_spans(self._text, cuts).strip()
        return BlockScan(blocks=tuple(self._blocks), doubt=self._find_doubt(), said=said, hint=hint)

    def _read_block(self, found: re.Match[str]) -> int:
        tag, start, body = found["tag"], found.start(), found.end()
        self._block_count += 1
        indent = 0 if start == self._adjacent_at else len(found["indent"])
        end = self._end_finders[tag](self._aligned_text, body, indent)
        around = next((name for name in self._open_elements if self._last_close.get(name, -1) >= end.after), None)
        if around is not None:
            self._note_unrun_block(tag, f"inside <{around}>")
            return end.after if end.tagged else body
        block = Block(
            tag=tag,
            attributes=(found["attributes"] or "").strip(),
            body=self._text[body : end.stop],
            start=start,
            after=end.after,
            line=self._aligned_text.count("\n", 0, start) + 1,
            sure=end.sure,
            tagged=end.tagged,
            clear=bool(
                _LINE_REST.match(self._aligned_text, end.after)
                or _compile_adjacent_pattern(self._tags).match(self._aligned_text, end.after)
            ),
            indent=indent,
        )
        self._blocks.append(block)
        self._adjacent_at = end.after
        return end.after

    def _skip_inline_code(self, found: re.Match[str]) -> int:
        self._code_spans.append(found.span())
        return found.end()

    def _skip_fence(self, found: re.Match[str]) -> int:
        """Return the end of the closing fence line, or of the reply if the fence is never closed."""
        start, run = found.start(), found["run"]
        close = re.compile(rf"^[ \t>]*+{run[0]}{{{len(run)},}}+[ \t]*+$", re.MULTILINE).search(
            self._aligned_text, found.end()
        )
        if close is None and self._blocks:
            self._doubt = "a code fence behind it is not closed, so it may have begun in the block or before."
        end = close.end() if close else len(self._aligned_text)
        self._code_spans.append((found.end(), end))
        self._note_unrun_block_within(start, end, "inside a code fence")
        return end

    def _skip_reasoning(self, found: re.Match[str]) -> int:
        start = found.start()
        opening = next(opening for opening in _REASONING if re.match(opening, found[0]))
        name = re.match(r"<([\w.:-]++)", found[0])
        closing = rf"(?i:</{re.escape(name[1])}\s*+>)" if name else _REASONING[opening]
        close = re.compile(closing).search(self._aligned_text, found.end())
        end = close.end() if close else len(self._aligned_text)
        # Reasoning that begins its line may be followed by a block on the same line.
        if start == self._adjacent_at or not self._aligned_text[max(0, start - 80) : start].rpartition("\n")[2].strip():
            self._adjacent_at = end
        self._reasoning_spans.append((start, end))
        self._note_unrun_block_within(start, end, "inside your thoughts")
        return end

    def _end_reasoning(self, found: re.Match[str]) -> int:
        """Treat everything up to here as reasoning: some templates open the reasoning themselves. A quote does not."""
        if self._aligned_text[: found.start()].rpartition("\n")[2].lstrip().startswith(">"):
            return found.end()
        if self._blocks:
            self._unrun_block = (self._blocks[0].tag, "inside your thoughts")
        self._blocks.clear()
        self._open_elements.clear()
        self._doubt = self._mentioned_tag = ""
        self._reasoning_spans = [(0, found.end())]
        self._adjacent_at = found.end()
        return found.end()

    def _note_element(self, found: re.Match[str]) -> int:
        name = found["name"].lower()
        if found["slash"]:
            if found["name"] == self._mentioned_tag:
                self._note_unrun_block(self._mentioned_tag, "not at the start of a line")
            if self._open_elements.get(name, 0) > 1:
                self._open_elements[name] -= 1
            else:
                self._open_elements.pop(name, None)
        elif not found[0].endswith("/>") and name not in WRAPPER_TAGS:
            self._open_elements[name] = self._open_elements.get(name, 0) + 1
            if found["name"] in self._end_finders:
                self._mentioned_tag = found["name"]
        return found.end()

    def _note_unrun_block(self, tag: str, place: str) -> None:
        """Remember the first complete block in a place where blocks do not run. The model gets a hint about it."""
        self._unrun_block = self._unrun_block or (tag, place)

    def _note_unrun_block_within(self, start: int, end: int, place: str) -> None:
        shown = (
            None
            if self._unrun_block
            else re.compile(f"<({'|'.join(self._tags)})[ >]").search(self._aligned_text, start, end)
        )
        if shown and self._aligned_text.find(f"</{shown[1]}", shown.end(), end) >= 0:
            self._note_unrun_block(shown[1], place)

    def _find_doubt(self) -> str:
        """Return why no block can run regardless of its content: the text after it may belong to it."""
        if not self._blocks:
            return ""
        block, *others = self._blocks
        for end in re.compile(rf"<[ \t]*+/[ \t]*+(?i:{block.tag})\b").finditer(self._aligned_text, block.after):
            is_own_half = not block.tagged and not self._aligned_text[block.after : end.start()].strip()
            if not is_own_half and not any(other.start <= end.start() < other.after for other in others):
                return (
                    f"</{block.tag}> is there more often than <{block.tag}>, so it is unclear where the block ends. "
                    f"A text that must hold </{block.tag}> goes into JSON or <![CDATA[…]]>."
                )
        return "there are too many blocks in the reply." if self._block_count >= MAX_BLOCKS else self._doubt

    def _render_hint(self) -> str:
        """Render the hint for a model that wrote something similar to a block."""
        if self._unrun_block is not None:
            tag, place = self._unrun_block
            return (
                f"The <{tag}> block in your reply was not run: it is {place}. To run it, write it again with <{tag}> "
                "at the start of a line, nothing around it, and nothing behind its end."
            )
        found = _compile_misspelt_pattern(self._tags).search(
            _remove_spans(self._aligned_text, (*self._reasoning_spans, *self._code_spans))
        )
        if found is None:
            return ""
        word = _fold_name(found["word"] or found["label"] or "tool_call")
        tag = next((tag for tag in self._tags if word in (_fold_name(tag), _fold_name(tag) + "s")), "")
        if not tag:
            return ""
        said = found[0].strip()
        return f"{said} is not a tag here, so nothing was run. Write it exactly so: <{tag}>, and at the end </{tag}>."


def align_newlines(text: str) -> str:
    """Replace every line ending with a line feed and keep all positions. Use the result only for searching."""
    return text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text


def _fold_name(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _remove_spans(text: str, cuts: Sequence[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in sorted(cuts):
        pieces.append(text[at:start])
        at = max(at, end)
    return "".join((*pieces, text[at:]))


# ---------------------------------------------------------------------------------------------- texts between tags

CDATA_OPEN: Final = "<![CDATA["
CDATA_CLOSE: Final = "]]>"

_CDATA: Final = re.compile(r"\s*+<!\[CDATA\[")
_FENCE_BEFORE: Final = re.compile(r"\s*+(?P<run>`{3,}+|~{3,}+)[^\n]*+\n")
_FENCE_BEHIND: Final = re.compile(r"\s*+(?:`{3,}+|~{3,}+)?+")


@record
class TaggedText:
    """Text between tags, and where its closing tag ended."""

    text: str
    after: int


def strip_tag_newlines(text: str) -> str:
    """Remove the line break after the opening tag and the one before the closing tag."""
    text = strip_leading_newline(text)
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
    """Wrap the text in CDATA."""
    return CDATA_OPEN + text.replace(CDATA_CLOSE, "]]" + CDATA_CLOSE + CDATA_OPEN + ">") + CDATA_CLOSE


def read_cdata(text: str, at: int) -> TaggedText | None:
    """Read the CDATA that begins here and join its sections. Return None if there is none, or it is not closed."""
    begins = _CDATA.match(text, at)
    if begins is None:
        return None
    pieces, at = [], begins.end()
    while (end := text.find(CDATA_CLOSE, at)) >= 0:
        pieces.append(text[at:end])
        at = end + len(CDATA_CLOSE)
        if not text.startswith(CDATA_OPEN, at):
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
    """Remove the CDATA or the single code fence around the body."""
    inside = read_cdata(body, 0)
    if inside is not None and not body[inside.after :].strip():
        return inside.text
    inside_fence = find_fenced_text(body)
    return body if inside_fence is None else inside_fence


def find_fenced_text(body: str) -> str | None:
    """Return the text inside the code fence around the whole body, if there is one."""
    text = body.strip()
    begin, last = _FENCE_BEFORE.match(text), text.rfind("\n")
    if begin is None or text[last + 1 :].strip() != begin["run"]:
        return None
    return text[begin.end() : last + 1]


def _compile_close_tag(tag: str) -> re.Pattern[str]:
    return re.compile(rf"\s*+</(?i:{re.escape(tag)})[ \t]*+>")


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


def find_data_end(text: str, start: int, tag: str, indent: int) -> BlockEnd:
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
