"""What an agent keeps for good: taken from its reply, with headings of the third level at most, each thing once."""

from __future__ import annotations

import re
from typing import Final

_HEADING: Final = re.compile(r"^([ \t]*)#{1,2}(?!#)(?=\s|$)", re.MULTILINE)
_ANY: Final = re.compile(r"[ \t]*#{1,6}(?:\s|$)")
_UNDERLINED: Final = re.compile(r"^(?P<text>[^\s#>|\-=][^\n]*)\n[ \t]{0,3}(?:=+|-{2,})[ \t]*$", re.MULTILINE)
_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n")


def kept(said: str, known: str) -> str:
    """What is new in what the agent wants to keep, as it may stand in its memory; empty when nothing is."""
    old = {_bare(one) for one in _paragraphs(known)}
    lines = {_bare(line) for line in known.splitlines()}
    fresh: list[str] = []
    for one in _paragraphs(demoted(said)):
        new = "\n".join(line for line in one.splitlines() if _is_heading(line) or _bare(line) not in lines)
        if _bare(new) and _bare(one) not in old and not all(map(_is_heading, new.splitlines())):
            fresh.append(new.strip())
            old.add(_bare(one))
    return "\n\n".join(fresh)


def demoted(text: str) -> str:
    """The text with no heading above the third level: those above are the prompt's own."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _HEADING.sub(r"\1###", _UNDERLINED.sub(r"### \g<text>", lines)).strip()


def _paragraphs(text: str) -> list[str]:
    return [one.strip("\n") for one in _PARAGRAPHS.split(text) if one.strip()]


def _bare(text: str) -> str:
    return " ".join(text.split())


def _is_heading(line: str) -> bool:
    return _ANY.match(line) is not None or not line.strip()
