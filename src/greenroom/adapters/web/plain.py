"""The text of a page without what steers its looks: for pages in which nothing else finds an article."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

UNSEEN: Final = frozenset({"script", "style", "noscript", "template", "svg", "head", "iframe", "object"})
BLOCKS: Final = frozenset(
    {
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "br",
            "caption",
            "dd",
            "div",
            "dl",
            "dt",
            "figcaption",
            "footer",
        ),
        *("form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "option", "p", "pre"),
        *("section", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
    }
)
_SPACES: Final = re.compile(r"[ \t\r\f\v\xa0]+")
_LINES: Final = re.compile(r" ?\n[ \n]*\n ?| ?\n ?")


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._unseen = 0
        self._in_title = False
        self._titled = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        elif tag in UNSEEN:
            self._unseen += 1
        elif tag == "body":
            self._unseen = 0  # a head that nobody has closed
        elif tag in BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title, self._titled = False, True
        elif tag in UNSEEN:
            self._unseen = max(0, self._unseen - 1)
        elif tag in BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += [] if self._titled else [data]  # drawings have titles too
        elif not self._unseen:
            self.parts.append(data)


def text_of_page(page: str) -> tuple[str, str]:
    """The title and the text of a page, however broken."""
    reader = _Text()
    reader.feed(page)
    reader.close()
    text = _SPACES.sub(" ", "".join(reader.parts))
    lined = _LINES.sub(lambda gap: "\n\n" if gap[0].count("\n") > 1 else "\n", text)
    return " ".join("".join(reader.title).split()), lined.strip()
