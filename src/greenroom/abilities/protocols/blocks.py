"""Blocks as the scanner finds them in a reply, not yet read."""

from __future__ import annotations

from collections.abc import Callable

from greenroom.core.base.records import record


@record
class End:
    """Where a body and its block end. `sure`: the place is beyond doubt; `tagged`: an end tag stands there."""

    stop: int
    after: int
    sure: bool
    tagged: bool


@record
class Block:
    """A block that is meant to be run: the inside of its opening tag, its raw body, and how well its end is known.

    `clear` says that nothing stands behind it on its last line, `indent` how far its opening tag is from its margin.
    """

    tag: str
    attributes: str
    body: str
    start: int
    after: int
    line: int
    sure: bool
    tagged: bool
    clear: bool = True
    indent: int = 0

    @property
    def whole(self) -> bool:
        """Whether it is all there, as far as its form tells."""
        return self.clear and (self.sure or self.tagged)


Ender = Callable[[str, int, int], End]


@record
class Scan:
    """All blocks, why they are in doubt whatever is in them, what else was said, and a hint for the model."""

    blocks: tuple[Block, ...]
    doubt: str
    said: str
    hint: str


def flat(text: str) -> str:
    """The same text with every end of line a line feed, every character where it was: only to look at."""
    return text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text
