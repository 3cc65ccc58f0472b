"""Find the blocks of a reply that are meant to be run, where each ends, and the raw text in it.

Reasoning, fenced code and inline code are skipped; what is in another element is not ours. Everything else that begins
a line with one of our tags is a block. This is no XML parser: what a body says is read by its protocol.

One line break right behind an opening tag and one right before the closing tag belong to the tags, all else to the
text, byte for byte. `<![CDATA[…]]>` around the whole text makes room for what would otherwise look like a tag.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from greenroom.abilities.protocols.jsons import value_end
from greenroom.abilities.protocols.outcome import Block, End, Ender, Scan
from greenroom.core.base.records import record

MOST_BLOCKS: Final = 20
"""Blocks that are looked at in one reply: one would have been right."""

WRAPPERS: Final = ("function_calls", "tool_calls")
"""What some models are trained to put around a call that they mean."""

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
"""How the reasoning of models begins in a text, and how it ends."""

_TOKEN: Final = r"(?:<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|call)\|>|</s>|<eos>|<end_of_turn>)"
_TOKENS_LEFT: Final = re.compile(rf"(?:{_TOKEN}\s*+)++\Z")
_LINE_REST: Final = re.compile(rf"(?:[ \t]|</?(?:{'|'.join(WRAPPERS)})>|{_TOKEN})*+$", re.MULTILINE)
_CLOSING: Final = re.compile(r"</([^\W\d][\w.:-]*+)\s*+>")
_FOREIGN: Final = (
    r"<function=|<invoke\s|<tool_use\b|<function_call>|<\|python_tag\|>|<\|tool_call|<｜tool|\[TOOL_CALLS\]"
)


@lru_cache(maxsize=64)
def _events(tags: tuple[str, ...]) -> re.Pattern[str]:
    """All that means something in a reply; the last group that matched says what it is."""
    return re.compile(
        rf"^{_opening(tags, '[ ]{0,3}')}"
        r"|(?P<code>(?<!`)(?P<ticks>`++)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`))"
        r"|(?P<fence>(?P<run>`{3,}+|~{3,}+)(?P<info>[^\n]*+))"
        rf"|(?P<thought>{'|'.join(_REASONING)})"
        rf"|(?P<thought_end>{'|'.join(_REASONING.values())})"
        r"|(?P<element><(?P<slash>/?)(?P<name>[^\W\d][\w.:-]*+)(?:[\s/][^<>]*+)?>)",
        re.MULTILINE,
    )


@lru_cache(maxsize=64)
def _adjacent(tags: tuple[str, ...]) -> re.Pattern[str]:
    """A block right behind another one, or behind reasoning: as good as on a line of its own."""
    return re.compile(_opening(tags, r"[ \t]*+"))


def _opening(tags: Sequence[str], indent: str) -> str:
    names = "|".join(map(re.escape, tags))
    return rf"(?P<open>(?P<indent>{indent})<(?P<tag>{names})(?P<attributes>[ \t][^<>\n]*+)?>)"


@lru_cache(maxsize=64)
def _misspelt(tags: tuple[str, ...]) -> re.Pattern[str]:
    """What is nearly one of these tags, or a form that other systems use, at the start of a line."""
    word = "(?i:" + "|".join(re.escape(tag).replace("_", "[ _-]?") + "S?" for tag in tags) + ")"
    return re.compile(
        rf"^[ \t]*+(?:(?:[*_]{{1,3}}<|\\<|<[ \t|]*+|＜|&lt;|[\[{{(]|`{{3,}}+|~{{3,}}+)[ \t]*+(?P<word>{word})"
        r"(?=[\s>\])}|＞&/:=]|\Z)/?[>\])}]?"
        rf"|(?P<label>{word})[ \t]*+:\s*+\{{|(?P<foreign>{_FOREIGN}))",
        re.MULTILINE,
    )


def find_blocks(text: str, enders: Mapping[str, Ender]) -> Scan:
    """Look through a reply for blocks of these tags; each ender says where the body ends that begins at a place."""
    tokens = _TOKENS_LEFT.search(text, max(0, len(text) - 200))
    return _Walk(text[: tokens.start()] if tokens else text, enders).run()


class _Walk:
    """One pass through one reply, from left to right: bodies and what is skipped are jumped over."""

    def __init__(self, text: str, enders: Mapping[str, Ender]) -> None:
        self._text = text
        self._flat = flat(text)
        self._enders = enders
        self._tags = tuple(enders)
        self._last_close = {found[1].lower(): found.start() for found in _CLOSING.finditer(self._flat)}
        self._blocks: list[Block] = []
        self._looked = 0
        self._adjacent_at = -1
        self._thoughts: list[tuple[int, int]] = []
        self._code: list[tuple[int, int]] = []
        self._opened: dict[str, int] = {}
        self._mentioned = ""
        self._shown: tuple[str, str] | None = None
        self._doubt = ""

    def run(self) -> Scan:
        at, events, adjacent = 0, _events(self._tags), _adjacent(self._tags)
        steps = {
            "open": self._open,
            "code": self._skip_inline_code,
            "fence": self._skip_fence,
            "thought": self._skip_thought,
            "thought_end": self._end_thought,
            "element": self._note_element,
        }
        while self._looked < MOST_BLOCKS:
            found = adjacent.match(self._flat, at) if at == self._adjacent_at else None
            found = found or events.search(self._flat, at)
            if found is None:
                break
            at = steps[str(found.lastgroup)](found)
        hint = "" if self._blocks else self._hint()
        cuts = (*self._thoughts, *((block.start, block.after) for block in self._blocks))
        said = _without(self._text, cuts).strip()
        return Scan(blocks=tuple(self._blocks), doubt=self._find_doubt(), said=said, hint=hint)

    def _open(self, found: re.Match[str]) -> int:
        tag, start, body = found["tag"], found.start(), found.end()
        self._looked += 1
        indent = 0 if start == self._adjacent_at else len(found["indent"])
        end = self._enders[tag](self._flat, body, indent)
        around = next((name for name in self._opened if self._last_close.get(name, -1) >= end.after), None)
        if around is not None:
            self._show(tag, f"inside <{around}>")
            return end.after if end.tagged else body
        block = Block(
            tag=tag,
            attributes=(found["attributes"] or "").strip(),
            body=self._text[body : end.stop],
            start=start,
            after=end.after,
            line=self._flat.count("\n", 0, start) + 1,
            sure=end.sure,
            tagged=end.tagged,
            clear=bool(_LINE_REST.match(self._flat, end.after) or _adjacent(self._tags).match(self._flat, end.after)),
            indent=indent,
        )
        self._blocks.append(block)
        self._adjacent_at = end.after
        return end.after

    def _skip_inline_code(self, found: re.Match[str]) -> int:
        self._code.append(found.span())
        return found.end()

    def _skip_fence(self, found: re.Match[str]) -> int:
        """Up to a line of at least as many of its signs; without one, up to the end of the reply."""
        start, run = found.start(), found["run"]
        close = re.compile(rf"^[ \t>]*+{run[0]}{{{len(run)},}}+[ \t]*+$", re.MULTILINE).search(self._flat, found.end())
        if close is None and self._blocks:
            self._doubt = "a code fence behind it is not closed, so it may have begun in the block or before."
        end = close.end() if close else len(self._flat)
        self._code.append((found.end(), end))
        self._show_within(start, end, "inside a code fence")
        return end

    def _skip_thought(self, found: re.Match[str]) -> int:
        start = found.start()
        opening = next(opening for opening in _REASONING if re.match(opening, found[0]))
        name = re.match(r"<([\w.:-]++)", found[0])
        closing = rf"(?i:</{re.escape(name[1])}\s*+>)" if name else _REASONING[opening]
        close = re.compile(closing).search(self._flat, found.end())
        end = close.end() if close else len(self._flat)
        # Reasoning that begins its line, and what follows it there: nothing else stands on that line.
        if start == self._adjacent_at or not self._flat[max(0, start - 80) : start].rpartition("\n")[2].strip():
            self._adjacent_at = end
        self._thoughts.append((start, end))
        self._show_within(start, end, "inside your thoughts")
        return end

    def _end_thought(self, found: re.Match[str]) -> int:
        """Some templates begin the reasoning themselves: then all up to here is reasoning, and none of it is run."""
        if self._blocks:
            self._shown = (self._blocks[0].tag, "inside your thoughts")
        self._blocks.clear()
        self._opened.clear()
        self._doubt = self._mentioned = ""
        self._thoughts = [(0, found.end())]
        self._adjacent_at = found.end()
        return found.end()

    def _note_element(self, found: re.Match[str]) -> int:
        name = found["name"].lower()
        if found["slash"]:
            if found["name"] == self._mentioned:
                self._show(self._mentioned, "not at the start of a line")
            if self._opened.get(name, 0) > 1:
                self._opened[name] -= 1
            else:
                self._opened.pop(name, None)
        elif not found[0].endswith("/>") and name not in WRAPPERS:
            self._opened[name] = self._opened.get(name, 0) + 1
            if found["name"] in self._enders:
                self._mentioned = found["name"]
        return found.end()

    def _show(self, tag: str, place: str) -> None:
        """A whole block stands where none is run; the model is told of the first one."""
        self._shown = self._shown or (tag, place)

    def _show_within(self, start: int, end: int, place: str) -> None:
        shown = None if self._shown else re.compile(f"<({'|'.join(self._tags)})[ >]").search(self._flat, start, end)
        if shown and self._flat.find(f"</{shown[1]}", shown.end(), end) >= 0:
            self._show(shown[1], place)

    def _find_doubt(self) -> str:
        """Why no block can be run, whatever is in it: what follows may be a part of it."""
        if not self._blocks:
            return ""
        block, *others = self._blocks
        for end in re.compile(rf"<[ \t]*+/[ \t]*+(?i:{block.tag})\b").finditer(self._flat, block.after):
            is_own_half = not block.tagged and not self._flat[block.after : end.start()].strip()
            if not is_own_half and not any(other.start <= end.start() < other.after for other in others):
                return (
                    f"</{block.tag}> is there more often than <{block.tag}>, so nobody can tell where the block ends. "
                    f"A text that must hold </{block.tag}> goes into JSON or <![CDATA[…]]>."
                )
        return "there are too many blocks in the reply." if self._looked >= MOST_BLOCKS else self._doubt

    def _hint(self) -> str:
        """What a model is told that wrote something like a block which is none."""
        if self._shown is not None:
            tag, place = self._shown
            return (
                f"The <{tag}> block in your reply was not run: it is {place}. To run it, write it again with <{tag}> "
                "at the start of a line, nothing around it, and nothing behind its end."
            )
        found = _misspelt(self._tags).search(_without(self._flat, (*self._thoughts, *self._code)))
        if found is None:
            return ""
        word = _bare(found["word"] or found["label"] or "tool_call")
        tag = next((tag for tag in self._tags if word in (_bare(tag), _bare(tag) + "s")), "")
        if not tag:
            return ""
        said = found[0].strip()
        return f"{said} is no tag here, so nothing was run. Write it exactly so: <{tag}>, and at the end </{tag}>."


def flat(text: str) -> str:
    """The same text with every end of line a line feed, every character where it was: only to look at."""
    return text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _without(text: str, cuts: Sequence[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in sorted(cuts):
        pieces.append(text[at:start])
        at = max(at, end)
    return "".join((*pieces, text[at:]))


# ---------------------------------------------------------------------------------------------- texts between tags

OPEN: Final = "<![CDATA["
CLOSE: Final = "]]>"

_CDATA: Final = re.compile(r"\s*+<!\[CDATA\[")
_FENCE_BEFORE: Final = re.compile(r"\s*+(?P<run>`{3,}+|~{3,}+)[^\n]*+\n")
_FENCE_BEHIND: Final = re.compile(r"\s*+(?:`{3,}+|~{3,}+)?+")


@record
class Piece:
    """Text that was cut out, and where its closing tag ended."""

    text: str
    after: int


def unframed(text: str) -> str:
    """Without the line break behind the opening tag and the one before the closing tag."""
    text = led(text)
    return text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")


def led(text: str) -> str:
    """Without the line break behind the opening tag."""
    return text.removeprefix("\r\n") if text.startswith("\r\n") else text.removeprefix("\n")


def framed(text: str) -> str:
    """The text with the line breaks that `unframed` takes away again: none, if it has none itself."""
    if "\n" not in text:
        return text
    return "\n" + text + ("" if text.endswith("\r") else "\n")


def lines(text: str) -> str:
    """The text with every end of line a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def wrapped(text: str) -> str:
    """The text inside CDATA."""
    return OPEN + text.replace(CLOSE, "]]" + CLOSE + OPEN + ">") + CLOSE


def sections(text: str, at: int) -> Piece | None:
    """The CDATA that begins here, its sections joined; None if there is none or it does not end."""
    begins = _CDATA.match(text, at)
    if begins is None:
        return None
    pieces, at = [], begins.end()
    while (end := text.find(CLOSE, at)) >= 0:
        pieces.append(text[at:end])
        at = end + len(CLOSE)
        if not text.startswith(OPEN, at):
            return Piece(text="".join(pieces), after=at)
        at += len(OPEN)
    return None


def element(text: str, at: int, tag: str) -> Piece | None:
    """The raw text up to the closing tag; None if nobody can tell which one that is.

    So it is for a text that is not closed, that goes on behind its CDATA, or that opens its own tag again.
    """
    if _CDATA.match(text, at):
        inside = sections(text, at)
        close = _close(tag).match(text, inside.after) if inside else None
        return Piece(text=unframed(inside.text), after=close.end()) if inside and close else None
    end = text.find(f"</{tag}>", at)
    if end < 0 or text.find(f"<{tag}>", at, end) >= 0:
        return None
    return Piece(text=unframed(text[at:end]), after=end + len(tag) + 3)


def safe(text: str, tag: str) -> str:
    """The text as it can stand in this tag: in CDATA, if it could be mistaken otherwise."""
    inside = framed(text)
    doubtful = f"</{tag}>" in inside or f"<{tag}>" in inside or inside.lstrip().startswith(OPEN)
    return wrapped(inside) if doubtful else inside


def bare(body: str) -> str:
    """The body without the CDATA or the one code fence around it."""
    inside = sections(body, 0)
    if inside is not None and not body[inside.after :].strip():
        return inside.text
    inside_fence = fenced(body)
    return body if inside_fence is None else inside_fence


def fenced(body: str) -> str | None:
    """What is inside the code fence around all of it, if there is one."""
    text = body.strip()
    begin, last = _FENCE_BEFORE.match(text), text.rfind("\n")
    if begin is None or text[last + 1 :].strip() != begin["run"]:
        return None
    return text[begin.end() : last + 1]


def _close(tag: str) -> re.Pattern[str]:
    return re.compile(rf"\s*+</(?i:{re.escape(tag)})[ \t]*+>")


def closed(text: str, at: int, tag: str) -> End | None:
    """The end of a block whose body is over at `at`, if nothing but its end tag follows."""
    close = _close(tag).match(text, at)
    return None if close is None else End(stop=at, after=close.end(), sure=True, tagged=True)


def line_end(text: str, start: int, tag: str, indent: int) -> End:
    """The end at a line of its own, which is sure; else at the first end tag; else before the next block."""
    margin, name = rf"^[ \t]{{0,{indent}}}", re.escape(tag)
    following = re.compile(rf"{margin}<{name}(?:[ \t][^<>\n]*+)?>", re.MULTILINE).search(text, start)
    limit = following.start() if following else len(text)
    line = re.compile(rf"{margin}</{name}[ \t]*+>", re.MULTILINE).search(text, start, limit)
    if line:
        return End(stop=line.start(), after=line.end(), sure=True, tagged=True)
    close = re.compile(rf"</{name}[ \t]*+>").search(text, start, limit)
    if close:
        return End(stop=close.start(), after=close.end(), sure=False, tagged=True)
    return End(stop=limit, after=limit, sure=False, tagged=False)


def cdata_end(text: str, start: int, tag: str) -> End | None:
    """The end behind the CDATA that the body begins with."""
    inside = sections(text, start)
    return None if inside is None else closed(text, inside.after, tag)


def data_end(text: str, start: int, tag: str, indent: int) -> End:
    """The end of JSON or YAML. JSON shows its own end, so it may hold the end tag, and the end tag may be missing."""
    end = cdata_end(text, start, tag)
    if end is not None:
        return end
    fence = _FENCE_BEFORE.match(text, start)
    over = value_end(text, fence.end() if fence else start)
    if over is None:
        return line_end(text, start, tag, indent)
    behind = _FENCE_BEHIND.match(text, over)
    over = behind.end() if fence and behind else over
    loose = line_end(text, over, tag, indent)
    if loose.tagged:
        return closed(text, over, tag) or loose
    return End(stop=over, after=over, sure=True, tagged=False)
