"""What a model is told that wrote something like a block which is none: where it stands, or how its tag is spelt."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from greenroom.abilities.protocols.quoting import INVISIBLE

ALIKE: Final = 0.85
LONGEST: Final = 40
MOST_NAMES: Final = 50
"""Names that are compared with ours in one reply."""

FOREIGN: Final = (
    r"<function=|<invoke\s|<tool_use\b|<function_call>|<\|python_tag\|>|<\|tool_call|<｜tool|\[TOOL_CALLS\]"
)
_INVISIBLE: Final = dict.fromkeys(map(ord, INVISIBLE))


def odd(tags: Sequence[str]) -> str:
    """The pattern of what is nearly one of these tags, or another house's; it counts where it begins a line."""
    word = "(?i:" + "|".join(re.escape(tag).replace("_", "[ _-]?") + "S?" for tag in tags) + ")"
    return (
        r"(?:(?P<bracket_odd>\[)|[*_]{1,3}<|\\<|<[ \t]++|<\||＜|&lt;|[{(])[ \t]*+"
        rf"(?P<odd_word>{word})(?=[\s>\])}}|＞&/:=]|\Z)"
        rf"|(?P<odd_label>{word})[ \t]*+:\s*+\{{"
        rf"|(?P<foreign>{FOREIGN})"
    )


def near(name: str, tags: Sequence[str]) -> str:
    """The tag that somebody meant who wrote this name; empty if none."""
    if len(name) > LONGEST:
        return ""
    given = _bare(name)
    for tag in tags:
        if given == _bare(tag) or SequenceMatcher(a=given, b=_bare(tag)).ratio() >= ALIKE:
            return tag
    return ""


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", name.translate(_INVISIBLE))).lower()


def shown(tag: str, place: str) -> str:
    """For a whole block that stands where none is run."""
    return (
        f"The <{tag}> block in your reply was not run: it is {place}. "
        f"To run it, write it again with <{tag}> at the start of a line, nothing around it, and nothing behind its end."
    )


def misspelt(said: str, tag: str) -> str:
    """For what is nearly a block."""
    return f"{said} is no tag here, so nothing was run. Write it exactly so: <{tag}>, and at the end </{tag}>."
