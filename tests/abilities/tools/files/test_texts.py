"""Encodings, line ends and final newlines are kept; what is no text is refused."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as some

from greenroom.abilities.tools.files.edits import Edit, Misfit, done, fitted
from greenroom.abilities.tools.files.text import Flat, Unreadable, decoded
from tests.abilities.tools.files.desk import Desk

UTF16 = codecs.BOM_UTF16_LE


def le(text: str) -> bytes:
    return UTF16 + text.encode("utf-16-le")


def be(text: str) -> bytes:
    return codecs.BOM_UTF16_BE + text.encode("utf-16-be")


def sig(text: str) -> bytes:
    return codecs.BOM_UTF8 + text.encode()


KEPT = [
    ("unix", b"a\nold\nc\n", b"a\nnew\nmore\nc\n"),
    ("windows", b"a\r\nold\r\nc\r\n", b"a\r\nnew\r\nmore\r\nc\r\n"),
    ("mixed, on a unix line", b"a\r\nold\nc\r\n", b"a\r\nnew\nmore\nc\r\n"),
    ("mixed, on a windows line", b"a\nold\r\nc\n", b"a\nnew\r\nmore\r\nc\n"),
    ("no final newline", b"a\r\nold", b"a\r\nnew\r\nmore"),
    ("old mac", b"a\rold\rc", b"a\rnew\nmore\rc"),
    ("utf-8 with a mark", sig("ü\nold\n"), sig("ü\nnew\nmore\n")),
    ("utf-16 le", le("ü\r\nold\r\n"), le("ü\r\nnew\r\nmore\r\n")),
    ("utf-16 be", be("ü\nold"), be("ü\nnew\nmore")),
    ("beyond the first plane", "😀\nold\n".encode(), "😀\nnew\nmore\n".encode()),
    ("form feeds and other breaks", "a\x0cold\u2028c\n".encode(), "a\x0cnew\nmore\u2028c\n".encode()),
]


@pytest.mark.parametrize(("before", "after"), [case[1:] for case in KEPT], ids=[case[0] for case in KEPT])
async def test_a_patch_keeps_encoding_line_ends_and_the_missing_newline(
    desk: Desk, before: bytes, after: bytes
) -> None:
    path = desk.put("a.txt", before)
    await desk.patch("a.txt", {"search": "old", "replace": "new\nmore"})
    assert path.read_bytes() == after


async def test_search_with_plain_line_ends_finds_windows_lines_and_the_other_way_round(desk: Desk) -> None:
    path = desk.put("a.txt", b"a\r\nb\r\nc\r\n")
    await desk.patch("a.txt", {"search": "a\nb\n", "replace": "x\ny\n"})
    assert path.read_bytes() == b"x\r\ny\r\nc\r\n"
    path = desk.put("b.txt", b"a\nb\nc\n")
    await desk.patch("b.txt", {"search": "a\r\nb\r\n", "replace": "x\r\ny\r\n"})
    assert path.read_bytes() == b"x\ny\nc\n"


async def test_the_last_line_is_found_without_its_end_and_stays_without(desk: Desk) -> None:
    path = desk.put("a.txt", b"a\nb")
    await desk.patch("a.txt", {"search": "a\nb\n", "replace": "x\ny\n"})
    assert path.read_bytes() == b"x\ny"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\n", b"x\r\ny\r\n"),
        (b"a\nb\n", b"x\ny\n"),
        (b"a\r\nb\r\nc\n", b"x\r\ny\r\n"),
        (b"one line", b"x\ny\n"),
        (sig("a\n"), sig("x\ny\n")),
        (le("a\r\n"), le("x\r\ny\r\n")),
        (be("a\n"), be("x\ny\n")),
    ],
)
async def test_a_rewrite_keeps_encoding_and_line_ends(desk: Desk, before: bytes, after: bytes) -> None:
    path = desk.put("a.txt", before)
    await desk.works("read_code", file="a.txt")
    await desk.works("rewrite", file="a.txt", content="x\ny\n")
    assert path.read_bytes() == after


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"MZ\x00\x01", "is a binary file"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "is UTF-32"),
        (b"\x00\x00\xfe\xff", "is UTF-32"),
        (b"caf\xe9\n", "is not UTF-8 (at byte 3)"),
        (b"\x00caf\xe9\n", "is a binary file"),
        (le("a") + b"x", "is not UTF-16-LE"),
        (UTF16 + b"\x00\xd8a\x00", "is not UTF-16-LE"),
        (codecs.BOM_UTF8 + b"\xff", "is not UTF-8 (at byte 3)"),
        ("Привет\n".encode("utf-16-le"), "is a binary file"),
    ],
)
@pytest.mark.parametrize("tool", ["read_code", "patch", "rewrite"])
async def test_what_is_no_text_is_refused_and_not_touched(desk: Desk, tool: str, raw: bytes, why: str) -> None:
    path = desk.put("a.bin", raw)
    edits = [{"search": "a", "replace": "b"}]
    more: dict[str, dict[str, object]] = {"read_code": {}, "patch": {"edits": edits}, "rewrite": {"content": "x"}}
    reason, said = await desk.fails(tool, file="a.bin", **more[tool])
    assert path.read_bytes() == raw
    assert reason == "not_text" or tool == "rewrite"
    assert why in said or tool == "rewrite"


def test_a_text_that_its_encoding_cannot_hold_is_refused() -> None:
    with pytest.raises(Unreadable, match="cannot be written as utf-16-le"):
        decoded(le("a"), "a.txt").encoded("\ud800", "a.txt")


TEXTS = some.text(some.sampled_from("ab\n\r\x0c\u2028 "), max_size=40)


@given(
    TEXTS, some.text(some.sampled_from("ab\n"), min_size=1, max_size=4).filter(str.strip), some.text("xy\n", max_size=4)
)
def test_everything_around_a_change_stays_byte_for_byte(content: str, search: str, replace: str) -> None:
    flat = Flat(content)
    try:
        spans = fitted(flat, [Edit(search=search, replace=replace)])
    except Misfit:
        places = [at for at in range(len(flat.text)) if flat.text.startswith(search, at)]
        assert len(places) != 1 or search == replace
        return
    (span,) = spans
    head, tail = content[: flat.original_at(span.start)], content[flat.original_at(span.end) :]
    made = done(flat, spans)
    assert made.startswith(head)
    assert made.endswith(tail)
    middle = made[len(head) : len(made) - len(tail)]
    assert middle.replace("\r\n", "\n") == span.replace
    assert (head + content[len(head) : len(content) - len(tail)] + tail) == content


@given(TEXTS)
def test_a_flat_text_leads_back_to_the_original(content: str) -> None:
    flat = Flat(content)
    assert flat.text == content.replace("\r\n", "\n")
    for place in range(len(flat.text)):
        at = flat.original_at(place)
        assert content[at] == flat.text[place] or content[at : at + 2] == "\r\n"
    assert flat.original_at(len(flat.text)) == len(content)
    starts = [flat.line_start(number) for number in range(1, flat.lines + 1)]
    assert [flat.line_of(start) for start in starts] == list(range(1, flat.lines + 1))
