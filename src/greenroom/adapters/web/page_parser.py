"""Convert pages and PDFs to text. This runs in a separate process (`python -m`), because the input is untrusted.

The document comes from stdin, and the result goes to stdout as JSON. The process ends itself when it uses too much time
or memory, even if its parent is gone.
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

from greenroom.core.ports.installation import how_to_install

HIDDEN_TAGS: Final = frozenset({"script", "style", "noscript", "template", "svg", "head", "iframe", "object"})
BLOCK_TAGS: Final = frozenset(
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


class _PageText(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._hidden_depth = 0
        self._in_title = False
        self._has_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        elif tag in HIDDEN_TAGS:
            self._hidden_depth += 1
        elif tag == "body":
            self._hidden_depth = 0  # the head was not closed
        elif tag in BLOCK_TAGS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title, self._has_title = False, True
        elif tag in HIDDEN_TAGS:
            self._hidden_depth = max(0, self._hidden_depth - 1)
        elif tag in BLOCK_TAGS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += [] if self._has_title else [data]  # SVG images have titles too
        elif not self._hidden_depth:
            self.parts.append(data)


def extract_page_text(page: str) -> tuple[str, str]:
    """Return the title and text of a page, even if it is malformed."""
    reader = _PageText()
    reader.feed(page)
    reader.close()
    text = _SPACES.sub(" ", "".join(reader.parts))
    lined = _LINES.sub(lambda gap: "\n\n" if gap[0].count("\n") > 1 else "\n", text)
    return " ".join("".join(reader.title).split()), lined.strip()


MAX_MEMORY_BYTES: Final = 2**30
MAX_CPU_SECONDS: Final = 30
MAX_TEXT_CHARS: Final = 5_000_000
"""Longest text in characters. A PDF can contain more characters than bytes."""

MAX_PDF_PAGES: Final = 1_000

Parsed = Mapping[str, str]


def parse_page(data: bytes, url: str) -> Parsed:
    """Convert the article of a page to Markdown; without an article, return all its text."""
    source = data.decode(errors="replace")
    title, plain = extract_page_text(source)
    try:
        import trafilatura
    except ModuleNotFoundError:
        return {
            "title": title,
            "text": plain,
            "note": f"Plain text; for clean Markdown install the extra: {how_to_install('web')}.",
        }
    text = trafilatura.extract(source, url=url, output_format="markdown", include_links=True, favor_recall=True)
    return {"title": title, "text": text or plain, "note": ""}


def parse_pdf(data: bytes, _: str) -> Parsed:
    """Return the text of a PDF, page by page."""
    try:
        import pypdf
    except ModuleNotFoundError:
        return {"error": f"It is a PDF. To read those, install an extra: {how_to_install('web')}."}
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "It is a PDF that is locked with a password."}
        count = len(reader.pages)
        parts, size = [], 0
        for number in range(min(count, MAX_PDF_PAGES)):
            parts.append(str(reader.pages[number].extract_text()))
            size += len(parts[-1])
            if size > MAX_TEXT_CHARS:
                break
        title = str(reader.metadata.get("/Title") or "") if reader.metadata else ""
    except (pypdf.errors.PyPdfError, ValueError, TypeError, KeyError, AttributeError, IndexError, ArithmeticError):
        return {"error": "It is a PDF that cannot be read: it is damaged, or made in an unusual way."}
    note = f"The first {len(parts)} of {count} pages." if len(parts) < count else ""
    text = "\n\n".join(f"[page {number}]\n{part.strip()}" for number, part in enumerate(parts, start=1))
    if not any(map(str.strip, parts)):
        return {"error": f"It is a PDF of {count} pages without any text in it: pictures of pages, perhaps."}
    return {"title": " ".join(title.split()), "text": text, "note": note}


PARSERS: Final[Mapping[str, Callable[[bytes, str], Parsed]]] = {"html": parse_page, "pdf": parse_pdf}


def confine() -> None:
    """Limit time and memory, and forbid writing files."""
    signal.alarm(MAX_CPU_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


def main() -> None:
    """Parse stdin. The first argument is the kind, the second its address."""
    confine()
    kind, url = sys.argv[1:3]
    parsed = PARSERS[kind](sys.stdin.buffer.read(), url)
    sys.stdout.write(json.dumps({name: value[:MAX_TEXT_CHARS] for name, value in parsed.items()}))


if __name__ == "__main__":
    main()
