"""Data in a message: fenced, labelled, and before the person's own words, so that those come last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.base.text import fenced
from greenroom.core.ports.packs import Pack

PACK: Final = Pack("greenroom.app.talks.prompts")
MEGABYTE: Final = 1_000_000
MOST: Final = MEGABYTE
"""Bytes of one message with all that is in it."""


@record
class Attached:
    """A text and what it is: a file by its name, or (without one) what was piped in."""

    text: str
    name: str = ""


def message(words: str, attached: Sequence[Attached] = (), *, language: str = "") -> str:
    """The whole message. `WorldFault` for one that is too long for anybody."""
    parts = [*(labelled(one, language) for one in attached), words]
    whole = "\n\n".join(part for part in parts if part)
    size = len(whole.encode())
    if size > MOST:
        raise WorldFault(f"That is {size / MEGABYTE:.1f} MB of text; a message may have 1 MB. Leave something out.")
    return whole


def labelled(one: Attached, language: str = "") -> str:
    """The text in a fence that nothing in it can close, under what it is."""
    label = PACK.render(language, "file" if one.name else "stdin", {"name": one.name})
    return PACK.render(language, "data", {"label": label, "text": fenced(one.text)})


def interrupted(words: str, *, language: str = "") -> str:
    """What is said to somebody who was stopped in the middle of something else."""
    return PACK.render(language, "interrupted", {"text": words})
