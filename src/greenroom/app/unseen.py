"""Characters that nobody sees, and that a terminal or a model obeys all the same."""

from __future__ import annotations

import re
from typing import Final

UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Control characters but tabs and line ends, what turns text around, and the invisible copy of ASCII."""


def seen(text: str) -> str:
    """The text without them."""
    return UNSEEN.sub("", text)
