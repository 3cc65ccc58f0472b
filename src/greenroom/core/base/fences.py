"""Fences: text from outside in a prompt, in a block that nothing in it can close."""

from __future__ import annotations

import re
from typing import Final

_TICKS: Final = re.compile(r"`{3,}")


def fence(text: str) -> str:
    """Backticks, more than the text has anywhere in a row."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=2)
    return "`" * (longest + 1)


def fenced(text: str) -> str:
    """The text in its fence."""
    marks = fence(text)
    return f"{marks}\n{text.rstrip(chr(10))}\n{marks}"
