"""Characters that nobody sees, and that a terminal or a model obeys all the same: taken out of what strangers print.

What they stand around stays, every word of it: nothing is hidden because somebody wrapped it into an escape sequence.
"""

from __future__ import annotations

import re
from typing import Final

UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Control characters but tabs and line ends, what turns text around, and the invisible copy of ASCII."""

LONGEST: Final = 1024
"""Characters of an escape sequence. What is longer is text that hides behind one."""

ESCAPES: Final = re.compile(
    r"""\x1b(?: \[[0-?]{0,64}[ -/]{0,8}[@-~]                        # colours, cursor, screen
            | [\]PX^_][^\x07\x1b\x9c\n]{0,1024}(?:\x07|\x1b\\|\x9c)  # titles, links, the clipboard
            | [ -/]{1,8}[0-~]                                      # character sets
            | [0-Z\\-~]                                            # all that is short
        )""",
    re.VERBOSE,
)

UNENDED: Final = re.compile(
    r"""(?: \r
          | \x1b(?: \[[0-?]{0,64}[ -/]{0,8} | [\]PX^_][^\x07\x1b\x9c\n]{0,1024}\x1b? | [ -/]{0,8} )
        )\Z""",
    re.VERBOSE,
)
"""The beginning of a sequence that what comes next may end."""


def seen(text: str) -> str:
    """The text without them; a carriage return alone ends a line, so that nothing is written over."""
    if not UNSEEN.search(text):
        return text
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return UNSEEN.sub("", ESCAPES.sub("", lines))


class Seen:
    """The same for text that comes in pieces: a sequence may begin in one and end in the next."""

    def __init__(self) -> None:
        self._rest = ""

    def piece(self, text: str) -> str:
        """What of this piece, and of what was held back, is known to be text."""
        text = self._rest + text
        unended = UNENDED.search(text, max(0, len(text) - LONGEST - 4))
        known = len(text) if unended is None else unended.start()
        self._rest = text[known:]
        return seen(text[:known])

    def end(self) -> str:
        """What was held back: nothing will end it any more."""
        rest, self._rest = self._rest, ""
        return seen(rest)
