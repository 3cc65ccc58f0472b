"""A text that knows where its words come from. Whoever only wants the text has it as every other one."""

from __future__ import annotations

from typing import Self


class Labelled(str):
    """With the labels (`core/state/origin.py`) of what strangers have written of it."""

    __slots__ = ("origins",)
    origins: tuple[str, ...]

    def __new__(cls, text: str, origins: tuple[str, ...] = ()) -> Self:
        """The text, from there."""
        made = super().__new__(cls, text)
        made.origins = origins
        return made


def origins_of(text: str) -> tuple[str, ...]:
    """Where a text comes from, if it knows."""
    return text.origins if isinstance(text, Labelled) else ()
