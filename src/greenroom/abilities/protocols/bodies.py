"""Raw text between tags: where it ends, what wraps it, and which line breaks belong to it.

One line break right behind an opening tag and one right before the closing tag belong to the tags, all else to the
text, byte for byte. `<![CDATA[…]]>` around the whole text makes room for what would otherwise look like a tag.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from greenroom.abilities.protocols.jsons import value_end
from greenroom.abilities.protocols.outcome import End
from greenroom.core.base.records import record

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


# ---------------------------------------------------------------------------------------------- where a block ends


@lru_cache(maxsize=256)
def _close(tag: str) -> re.Pattern[str]:
    return re.compile(rf"\s*+</(?i:{re.escape(tag)})[ \t]*+>")


@lru_cache(maxsize=256)
def _line(tag: str, indent: int) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]{{0,{indent}}}</{re.escape(tag)}[ \t]*+>", re.MULTILINE)


@lru_cache(maxsize=256)
def _next(tag: str, indent: int) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]{{0,{indent}}}<{re.escape(tag)}(?:[ \t][^<>\n]*+)?>", re.MULTILINE)


def closed(text: str, at: int, tag: str) -> End | None:
    """The end of a block whose body is over at `at`, if nothing but its end tag follows."""
    close = _close(tag).match(text, at)
    return None if close is None else End(stop=at, after=close.end(), sure=True, tagged=True)


def line_end(text: str, start: int, tag: str, indent: int) -> End:
    """The end at a line of its own, which is sure; else at the first end tag; else before the next block."""
    following = _next(tag, indent).search(text, start)
    limit = following.start() if following else len(text)
    line = _line(tag, indent).search(text, start, limit)
    if line:
        return End(stop=line.start(), after=line.end(), sure=True, tagged=True)
    close = re.compile(rf"</{re.escape(tag)}[ \t]*+>").search(text, start, limit)
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
