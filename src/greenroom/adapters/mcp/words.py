"""Strangers' words before anybody reads them: nothing unseen is left in them, and they are not longer than useful."""

from __future__ import annotations

import re
from typing import Final

from greenroom.core.base.text import seen

INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0100-\U000e01ef\ud800-\udfff]"
)
"""What has no shape of its own: a second text can be hidden in it. Results keep it (emoji need it), orders do not."""

NOTE: Final = "[… {left} characters are left out …]"


def plain(text: str) -> str:
    """The text without anything that a person would not see."""
    return INVISIBLE.sub("", seen(text))


def is_plain(text: str) -> bool:
    """Whether there is nothing of that kind in it."""
    return plain(text) == text


def brief(text: str, most: int) -> str:
    """The text in about so many characters: its beginning and its end, and how much is missing between."""
    if len(text) <= most:
        return text
    tail = most // 5
    return f"{text[: most - tail]}\n{NOTE.format(left=len(text) - most)}\n{text[-tail:]}"


def one_line(text: str, most: int = 300) -> str:
    """The same as part of a sentence."""
    words = " ".join(plain(text).split())
    return words if len(words) <= most else f"{words[:most]}…"
