"""What a body is: said by its server, and looked at. A server may be wrong, or lie."""

from __future__ import annotations

import re
from typing import Final, Literal

from greenroom.core.ports.web import WebFault

Kind = Literal["html", "pdf", "text"]

LOOKED_AT: Final = 4096
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = re.compile(
    r"text/.+|(application|image)/([\w.+-]+\+)?(xml|json|yaml|toml)|message/.+"
    r"|application/(x-)?(javascript|ecmascript|ndjson|jsonlines|sh|python|tex|yaml|sql|graphql|rtf)"
)
_PDF: Final = frozenset({"application/pdf", "application/x-pdf"})
_UNSAID: Final = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/download"})
_TAG: Final = re.compile(
    rb"\s*+(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s++html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
"""A text of two bytes per letter begins with one of these, and is full of zeros."""


def kind_of(said: str, data: bytes) -> Kind:
    """What it is; `WebFault` for what is no text: images, archives, programs."""
    begin = data[:LOOKED_AT]
    if begin.lstrip()[:5] == b"%PDF-":
        return "pdf"
    if said in _PDF:
        raise WebFault("broken", "Its server calls it a PDF, but it is none.")
    if said not in _UNSAID and said not in _HTML and not _TEXT.fullmatch(said):
        raise _refused(said)
    if b"\0" in begin and not begin.startswith(_MARKS):
        raise _refused(said)
    return "html" if said in _HTML or (said in {*_UNSAID, "text/plain"} and _TAG.match(begin)) else "text"


def _refused(said: str) -> WebFault:
    what = f"of the type {said[:80]!r}" if said else "no text"
    return WebFault("kind", f"It is {what}. Pages, PDFs and texts can be read; images, archives and programs cannot.")
