"""Parsing apart: what is made of pages and PDFs, and that nothing of it harms the house."""

from __future__ import annotations

import asyncio
import io
import json
import os
import resource
import signal
import sys
from pathlib import Path

import psutil
import pypdf
import pytest

from greenroom.adapters.web import page_parser
from greenroom.adapters.web.page_fetcher import UNREADABLE, parse_document
from greenroom.adapters.web.page_parser import extract_page_text
from greenroom.core.ports.web import WebFault
from tests.adapters.web.papers import assembled, pdf

PAGE = "<html><head><title> A\n title </title></head><body><p>Hello</p></body></html>"


def test_plain_text_has_the_lines_of_the_page() -> None:
    head, rest = (
        "<head><title>T</title><style>x{}</style></head>",
        "<p>two&amp;  three<br>four</p><p></p>\n<ul><li>five",
    )
    assert extract_page_text(f"{head}<body><h1>One</h1>{rest}") == ("T", "One\n\ntwo& three\nfour\n\nfive")


def test_a_head_that_nobody_closed_hides_nothing() -> None:
    assert (
        extract_page_text("<head><meta><body><svg><title>no</title></svg>seen<title>late</title></script>")[1] == "seen"
    )


def test_a_page_is_parsed_with_and_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert page_parser.parse_page(PAGE.encode(), "http://a/") == {"title": "A title", "text": "Hello", "note": ""}
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    found = page_parser.parse_page(PAGE.encode(), "http://a/")
    assert found["text"] == "Hello"
    assert "web]'" in found["note"]


def test_a_pdf_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    assert "web]'" in page_parser.parse_pdf(pdf("x"), "")["error"]


def test_a_long_pdf_is_read_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_parser, "MAX_PDF_PAGES", 2)
    found = page_parser.parse_pdf(pdf("one", "two", "three"), "")
    assert found["text"] == "[page 1]\none\n\n[page 2]\ntwo"
    assert found["note"] == "The first 2 of 3 pages."
    monkeypatch.setattr(page_parser, "MAX_TEXT_CHARS", 2)
    assert page_parser.parse_pdf(pdf("one", "two"), "")["note"] == "The first 1 of 2 pages."


def test_a_locked_pdf_is_said_to_be_locked() -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("secret")))
    writer.encrypt("password", algorithm="RC4-128")
    locked = io.BytesIO()
    writer.write(locked)
    assert "password" in page_parser.parse_pdf(locked.getvalue(), "")["error"]


@pytest.mark.parametrize(
    "data",
    [
        b"%PDF-",
        pdf("x")[:200],
        assembled(["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R] /Count 1 >>", "<< >>"]),
        assembled(["<< /Type /Catalog /Pages 9 0 R >>", "<< >>"]),
        assembled(["[1 2 3]", "(x)"]),
    ],
)
def test_a_damaged_pdf_is_said_to_be_damaged(data: bytes) -> None:
    assert page_parser.parse_pdf(data, "")["error"].startswith("It is a PDF")


def test_it_reads_what_comes_in_and_writes_what_it_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page_parser, "confine", lambda: None)
    monkeypatch.setattr(sys, "argv", ["parsing", "html", "http://a/"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PAGE.encode())))
    page_parser.main()
    assert json.loads(capsys.readouterr().out)["title"] == "A title"


def test_it_takes_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: dict[int, tuple[int, int]] = {}
    alarms: list[int] = []
    monkeypatch.setattr(resource, "setrlimit", lambda what, bound: limits.update({what: bound}))
    monkeypatch.setattr(signal, "alarm", alarms.append)
    page_parser.confine()
    assert limits[resource.RLIMIT_CPU] == (page_parser.MAX_CPU_SECONDS, page_parser.MAX_CPU_SECONDS)
    assert limits[resource.RLIMIT_FSIZE] == (0, 0)
    assert alarms == [page_parser.MAX_CPU_SECONDS]
    assert (resource.RLIMIT_AS in limits) == (sys.platform == "linux")


@pytest.mark.parametrize(
    "program",
    [
        "while True: pass",
        "import os; os.abort()",
        "import sys; sys.exit(3)",
        "import greenroom.adapters.web.page_parser as p; p.confine(); x = bytearray(2**31)",
    ],
    ids=["hangs", "dies", "fails", "eats memory"],
)
async def test_a_parser_that_comes_to_nothing_is_a_fault(program: str) -> None:
    before = children()
    with pytest.raises(WebFault) as raised:
        await parse_document("html", PAGE.encode(), "http://a/", seconds=1.5, program=("-c", program))
    assert str(raised.value) == UNREADABLE
    assert children() == before


async def test_a_parser_that_nobody_waits_for_is_dead(tmp_path: Path) -> None:
    begun, before = tmp_path / "begun", children()
    os.mkfifo(begun)
    program = ("-c", f"open({str(begun)!r}, 'w').close()\nimport time; time.sleep(60)")
    task = asyncio.create_task(parse_document("html", b"", "http://a/", seconds=60, program=program))
    await asyncio.wait_for(asyncio.to_thread(begun.read_bytes), 10)
    assert len(children()) == len(before) + 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children() == before


def children() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if one.status() != psutil.STATUS_ZOMBIE]
