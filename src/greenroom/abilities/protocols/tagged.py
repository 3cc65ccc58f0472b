"""Answers between tags of their own: what stands in them, as text or as JSON. Nothing here is a call of a tool."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, Literal

from greenroom.abilities.protocols.blocks import Block, End, Ender
from greenroom.abilities.protocols.bodies import bare, cdata_end, data_end, line_end, sections, unframed
from greenroom.abilities.protocols.jsons import Malformed, Unreadable, decode, encodable, shape
from greenroom.abilities.protocols.mending import LONGEST, mended
from greenroom.abilities.protocols.scanner import scan
from greenroom.core.ports.reading import Datum

Kind = Literal["text", "data"]


def _data(text: str, start: int, indent: int, *, tag: str) -> End:
    return data_end(text, start, tag, indent)


def _text(text: str, start: int, indent: int, *, tag: str) -> End:
    return cdata_end(text, start, tag) or line_end(text, start, tag, indent)


_ENDS: Final = {"data": _data, "text": _text}


def tagged(text: str, tags: Mapping[str, Kind]) -> dict[str, tuple[str, ...]]:
    """The bodies of all blocks of these tags, in their order; `Unreadable` with a whole sentence for the model.

    What is only thought, quoted or shown is no block, and what is cut off is none either.
    """
    enders: dict[str, Ender] = {tag: partial(_ENDS[kind], tag=tag) for tag, kind in tags.items()}
    if not encodable(text):
        raise Unreadable("Your reply holds half a character. Send it again.")
    found = scan(text, enders)
    if found.hint:
        raise Unreadable(found.hint)
    if found.doubt:
        raise Unreadable(f"Your reply cannot be read: {found.doubt}")
    for block in found.blocks:
        if not block.tagged and not block.sure:
            raise Unreadable(
                f"</{block.tag}> is missing, so <{block.tag}> may not be whole. Send it again, and end it."
            )
    return {tag: tuple(_body(one) for one in found.blocks if one.tag == tag) for tag in tags}


def _body(block: Block) -> str:
    inside = sections(block.body, 0)
    whole = inside is not None and not block.body[inside.after :].strip()
    return unframed(inside.text if inside is not None and whole else block.body).strip()


def parsed(body: str) -> Datum:
    """The JSON of a body; `Unreadable` with a whole sentence for the model. One code fence around it is no matter."""
    text = bare(body).strip()
    if not text:
        raise Unreadable("It is empty.")
    try:
        return Datum(value=decode(text))
    except Malformed as error:
        return Datum(value=_guessed(text, error), repaired=f"its JSON is not valid ({error})")
    except Unreadable as error:
        raise Unreadable(f"Its JSON cannot be used: {error}.") from None


def _guessed(text: str, error: Malformed) -> object:
    """What was meant, if its mistakes leave no doubt about that."""
    try:
        return mended(text)
    except Unreadable as guess:
        if len(text) > LONGEST or shape(text) == "cut off":
            raise Unreadable(f"It is cut off, or a quote is missing ({error}). Send it again, whole.") from None
        why = guess if "twice" in str(guess) else error
        raise Unreadable(f"Its JSON cannot be read ({why}).") from None
