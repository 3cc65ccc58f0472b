"""What an agent keeps for good: taken from its reply, with headings of the third level at most, each thing once."""

from __future__ import annotations

import re
from typing import Final

from greenroom.core.base.headings import is_heading, lowered, underlines

_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n")


def kept(said: str, known: str) -> str:
    """What is new in what the agent wants to keep, as it may stand in its memory; empty when nothing is."""
    old = {_bare(one) for one in _paragraphs(known)}
    lines = {_bare(line) for line in known.splitlines()}
    fresh: list[str] = []
    for one in _paragraphs(lowered(said)):
        new = "\n".join(line for line in one.splitlines() if _is_empty(line) or _bare(line) not in lines)
        if _bare(new) and _bare(one) not in old and not all(map(_is_empty, new.splitlines())):
            fresh.append(new.strip())
            old.add(_bare(one))
    return _below(known, "\n\n".join(fresh))


def _below(known: str, text: str) -> str:
    """The text without lines that would make a heading of what the agent knows last."""
    while underlines(known, text):
        text = text.partition("\n")[2].lstrip()
    return text


def _paragraphs(text: str) -> list[str]:
    return [one.strip("\n") for one in _PARAGRAPHS.split(text) if one.strip()]


def _bare(text: str) -> str:
    return " ".join(text.split())


def _is_empty(line: str) -> bool:
    """Whether a line says nothing by itself."""
    return is_heading(line) or not line.strip()
