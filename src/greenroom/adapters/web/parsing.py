"""Pages and PDFs as text. It runs in a process of its own, because strangers wrote what is parsed: `python -m` this.

What is to be read comes in on stdin, what was read goes out on stdout as JSON. It dies of too much time or memory
alone, also when nobody is left who waits for it.
"""

from __future__ import annotations

import io
import json
import re
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from typing import Final

from greenroom.core.base.errors import how_to_install

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


MEMORY: Final = 2**30
SECONDS: Final = 30
MOST: Final = 5_000_000
"""Characters of text; a PDF can have more than it has bytes."""

PAGES: Final = 1_000
EXTRA: Final = how_to_install("web")

Parsed = Mapping[str, str]


def page(data: bytes, url: str) -> Parsed:
    """A page as Markdown without what surrounds its article; all its text where there is no article."""
    source = data.decode(errors="replace")
    title, plain = text_of_page(source)
    try:
        import trafilatura
    except ModuleNotFoundError:
        return {"title": title, "text": plain, "note": f"Plain text; for clean Markdown install the extra: {EXTRA}."}
    text = trafilatura.extract(source, url=url, output_format="markdown", include_links=True, favor_recall=True)
    return {"title": title, "text": text or plain, "note": ""}


def pdf(data: bytes, _: str) -> Parsed:
    """The text of a PDF, page by page."""
    try:
        import pypdf
    except ModuleNotFoundError:
        return {"error": f"It is a PDF. To read those, install an extra: {EXTRA}."}
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "It is a PDF that is locked with a password."}
        count = len(reader.pages)
        parts, size = [], 0
        for number in range(min(count, PAGES)):
            parts.append(str(reader.pages[number].extract_text()))
            size += len(parts[-1])
            if size > MOST:
                break
        title = str(reader.metadata.get("/Title") or "") if reader.metadata else ""
    except (pypdf.errors.PyPdfError, ValueError, TypeError, KeyError, AttributeError, IndexError, ArithmeticError):
        return {"error": "It is a PDF that cannot be read: it is damaged, or made in an unusual way."}
    note = f"The first {len(parts)} of {count} pages." if len(parts) < count else ""
    text = "\n\n".join(f"[page {number}]\n{one.strip()}" for number, one in enumerate(parts, start=1))
    if not any(map(str.strip, parts)):
        return {"error": f"It is a PDF of {count} pages without any text in it: pictures of pages, perhaps."}
    return {"title": " ".join(title.split()), "text": text, "note": note}


PARSERS: Final[Mapping[str, Callable[[bytes, str], Parsed]]] = {"html": page, "pdf": pdf}


def confine() -> None:
    """No more than this much time and memory, and no file of any size."""
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main() -> None:
    """Parse what comes in as what the first word says, found at the second."""
    confine()
    kind, url = sys.argv[1:3]
    parsed = PARSERS[kind](sys.stdin.buffer.read(), url)
    cut = {name: value[:MOST] for name, value in parsed.items()}
    sys.stdout.write(json.dumps(cut))


if __name__ == "__main__":
    main()
