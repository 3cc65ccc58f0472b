"""The rule for long results: whole where it can be read later, thirty lines of either end where it is read now."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.unseen import seen
from greenroom.core.ports.tool import SHOWN, WHOLE

ENDS: Final = 30
"""Lines that are shown of the beginning, and of the end."""

WORDS: Final = 700
"""Bytes for what is said about what is left out."""


def presented(text: str, handle: str, shown: int = SHOWN) -> dict[str, object]:
    """The part of a result that a tool's text makes: `output`, and of a long one `whole`. Nothing in it is obeyed.

    `handle` is the id of the step whose result it is.
    """
    return shaped(seen(text), handle, shown)


def shaped(text: str, handle: str, shown: int = SHOWN) -> dict[str, object]:
    """The same for text in which nothing unseen is left."""
    if len(text) <= shown and len(text.encode(errors="replace")) <= shown:
        return {"output": text}
    return {"output": _ends(text, handle, max(shown - WORDS, WORDS)), WHOLE: text}


def _ends(text: str, handle: str, room: int) -> str:
    """Its first and last lines, within so many bytes."""
    count = lines_of(text)
    if count <= 2 * ENDS:
        lines = text.splitlines()
        told = "\n".join(cut(line, room // count) for line in lines)
        return f"{told}\n[… Long lines are cut. {_how_to(handle, 1)} …]"
    head, tail = _first(text, ENDS), _last(text, ENDS)
    bound = room // (2 * ENDS)
    missing = len(text) - len("\n".join((*head, *tail)))
    between = (
        f"[… {count - 2 * ENDS} of {count} lines ({missing} characters) are left out. {_how_to(handle, ENDS + 1)} …]"
    )
    return "\n".join((*(cut(line, bound) for line in head), between, *(cut(line, bound) for line in tail)))


def _how_to(handle: str, line: int) -> str:
    return (
        f'read_output(handle="{handle}", from_line={line}) reads on, '
        f'read_output(handle="{handle}", pattern="error") finds lines.'
    )


def lines_of(text: str) -> int:
    """How many lines it has; what comes after the last line end counts if it is anything."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def cut(line: str, most: int) -> str:
    """A line of so many bytes at most (and what is said about the rest): its beginning, and some of its end."""
    if 4 * len(line) <= most:
        return line
    data = line.encode(errors="replace")
    if len(data) <= most:
        return line
    back = most // 4
    begin, end = data[: most - back].decode(errors="ignore"), data[len(data) - back :].decode(errors="ignore")
    return f"{begin}[… {len(data) - most} bytes …]{end}"


def _first(text: str, number: int) -> list[str]:
    """Its first lines. The text may be very long, and is not taken apart for it."""
    place = 0
    for _ in range(number):
        place = text.find("\n", place) + 1
    return text[: place - 1].split("\n")


def _last(text: str, number: int) -> list[str]:
    end = len(text) - 1 if text.endswith("\n") else len(text)
    place = end
    for _ in range(number):
        place = text.rfind("\n", 0, place)
    return text[place + 1 : end].split("\n")
