"""Bytes as text: by a mark at their beginning, by what the server says, by what the page says, and else as UTF-8."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final

LOOKED_AT: Final = 4096
LAST: Final = "cp1252"
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_IN_PAGE: Final = re.compile(rb"""(?:charset|encoding)\s*+=\s*+["']?+\s*+([\w.:-]{2,40})""", re.IGNORECASE)
_CHARSET: Final = re.compile(
    r"utf-(8|16|16-le|16-be|32)|iso8859-\d+|cp\d+|koi8-[ru]|mac-\w+|gb\w+|big5\w*|euc_\w+|shift_jis\w*|iso2022_jp\w*|johab|hz"
)
"""Codecs are for many things; these are for text."""

_WIDER: Final = {"iso8859-1": LAST, "ascii": LAST, "gb2312": "gb18030", "gbk": "gb18030", "utf-7": "utf-8"}
"""What is said to be the left is in truth the right, as browsers have it; UTF-7 is only used to deceive."""


def text_of(data: bytes, said: str | None) -> str:
    """The text, in the first charset in which all of it makes sense; what makes none in any is marked."""
    names = list(dict.fromkeys(_names(data, said)))
    for name in names:
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            continue
    return data.decode(names[0], errors="replace")


def _names(data: bytes, said: str | None) -> Iterator[str]:
    yield from (name for mark, name in _MARKS if data.startswith(mark))
    in_page = _IN_PAGE.search(data[:LOOKED_AT])
    for one in (said, in_page[1].decode("ascii") if in_page else None):
        if name := _known(one):
            yield name
    yield "utf-8"
    yield LAST


def _known(name: str | None) -> str:
    """The codec of this name, if it is one for text."""
    try:
        codec = codecs.lookup((name or "").strip("\"' "))
    except (LookupError, ValueError):
        return ""
    return _WIDER.get(codec.name, codec.name if _CHARSET.fullmatch(codec.name) else "")
