"""Thoughts inside the text: what stands between <think> and </think> at its very beginning is not the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

TAGS: Final = ("<think>", "<thinking>", "<reasoning>")


class Piece(NamedTuple):
    """A piece of text, and whether it was only thought."""

    text: str
    thought: bool


class Thinking:
    """Takes text in pieces, torn anywhere, and says which of it was thought."""

    def __init__(self) -> None:
        self._held = ""
        self._close: str | None = None
        self._begun = False
        self._answers = False
        self._trims = False

    @property
    def over(self) -> bool:
        """Whether all that comes now is the answer, as it comes."""
        return self._answers and not self._trims

    def feed(self, text: str) -> Iterator[Piece]:
        """The pieces that are decided now."""
        if self._answers:
            yield from self._answer(text)
            return
        self._held += text
        if not self._begun and not self._begin():
            return
        if self._close is None:
            held, self._held = self._held, ""
            yield from self._answer(held)
        else:
            yield from self._think(self._close)

    def end(self) -> Iterator[Piece]:
        """What was held back."""
        if self._held:
            yield Piece(self._held, thought=self._close is not None)
        self._held = ""

    def _begin(self) -> bool:
        """Whether it is decided how the text begins."""
        start = self._held.lstrip()
        for tag in TAGS:
            if start.startswith(tag):
                self._close, self._held, self._begun = f"</{tag[1:]}", start[len(tag) :], True
                return True
        if any(tag.startswith(start) for tag in TAGS):
            return False
        self._begun = True
        return True

    def _think(self, close: str) -> Iterator[Piece]:
        thought, found, rest = self._held.partition(close)
        if found:
            if thought:
                yield Piece(thought, thought=True)
            self._held, self._trims = "", True
            yield from self._answer(rest)
            return
        keep = _overlap(thought, close)
        self._held = thought[len(thought) - keep :]
        if len(thought) > keep:
            yield Piece(thought[: len(thought) - keep], thought=True)

    def _answer(self, text: str) -> Iterator[Piece]:
        """The empty lines between a thought and the answer belong to neither."""
        self._answers = True
        text = text.lstrip("\n") if self._trims else text
        if text:
            self._trims = False
            yield Piece(text, thought=False)


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of the text may be the beginning of the tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if tag.startswith(text[-size:])), 0)
