"""Encodings, line ends and final newlines are kept; binary files are refused."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from greenroom.abilities.tools.files.edits import Edit, EditMismatch, apply_spans, locate_edits
from greenroom.abilities.tools.files.text import NormalizedText, NotTextError, decode_text
from greenroom.core.ports.executor import Outcome
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
    with pytest.raises(NotTextError, match="cannot be written as utf-16-le"):
        decode_text(le("a"), "a.txt").encode("\ud800", "a.txt")


TEXTS = some.text(some.sampled_from("ab\n\r\x0c\u2028 "), max_size=40)


@given(
    TEXTS, some.text(some.sampled_from("ab\n"), min_size=1, max_size=4).filter(str.strip), some.text("xy\n", max_size=4)
)
def test_everything_around_a_change_stays_byte_for_byte(content: str, search: str, replace: str) -> None:
    flat = NormalizedText(content)
    try:
        spans = locate_edits(flat, [Edit(search=search, replace=replace)])
    except EditMismatch:
        places = [at for at in range(len(flat.text)) if flat.text.startswith(search, at)]
        assert len(places) != 1 or search == replace
        return
    (span,) = spans
    head, tail = content[: flat.to_original(span.start)], content[flat.to_original(span.end) :]
    made = apply_spans(flat, spans)
    assert made.startswith(head)
    assert made.endswith(tail)
    middle = made[len(head) : len(made) - len(tail)]
    assert middle.replace("\r\n", "\n") == span.replace
    assert (head + content[len(head) : len(content) - len(tail)] + tail) == content


@given(TEXTS)
def test_a_flat_text_leads_back_to_the_original(content: str) -> None:
    flat = NormalizedText(content)
    assert flat.text == content.replace("\r\n", "\n")
    for place in range(len(flat.text)):
        at = flat.to_original(place)
        assert content[at] == flat.text[place] or content[at : at + 2] == "\r\n"
    assert flat.to_original(len(flat.text)) == len(content)
    starts = [flat.find_line_start(number) for number in range(1, flat.lines + 1)]
    assert [flat.find_line(start) for start in starts] == list(range(1, flat.lines + 1))


EDITS = [{"search": "old", "replace": "new"}]
WAYS = ("patch", "rewrite", "several")
BESIDE = b"beside old\n"


def _nothing(_: Path) -> None:
    """It stays as it is."""


def _link_in(path: Path) -> None:
    path.rename(path.with_name("real.txt"))
    path.symlink_to("real.txt")


def _link_out(path: Path) -> None:
    path.rename(path.parents[1] / "outside.txt")
    path.symlink_to("../outside.txt")


def _link_round(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@dataclass(frozen=True)
class Odd:
    """A file as it is read, what happens to it then, and what an edit makes of it: `after`, or the reason why not.

    With `again` it is read once more, as it is then.
    """

    before: bytes
    happens: Callable[[Path], object] = _nothing
    after: bytes = b""
    reasons: tuple[str, ...] = ()
    again: bool = False


TABLE = {
    "one word": Odd(b"old", after=b"new"),
    "not utf-8": Odd(b"caf\xe9 old\n", reasons=("not_text", "changed")),
    "binary": Odd(b"\x00\x01old", reasons=("not_text", "changed")),
    "read-only": Odd(b"old\n", lambda path: path.chmod(0o444), reasons=("read_only",)),
    "vanished": Odd(b"old\n", Path.unlink, reasons=("missing",)),
    "linked in the workspace": Odd(b"old\n", _link_in, after=b"new\n", again=True),
    "linked out of it": Odd(b"old\n", _link_out, reasons=("outside",)),
    "linked to itself": Odd(b"old\n", _link_round, reasons=("outside",)),
    "edited by somebody since it was read": Odd(
        b"old\n", lambda path: path.write_bytes(b"theirs, old\n"), reasons=("changed",)
    ),
    "a folder by now": Odd(b"old\n", _folder, reasons=("kind",)),
    "a pipe by now": Odd(b"old\n", _pipe, reasons=("kind",)),
}

CASES = [(name, way) for name in TABLE for way in WAYS if (name, way) != ("vanished", "rewrite")]
"""A rewrite makes a file where there is none."""


async def edited(desk: Desk, way: str, odd: Odd) -> Outcome:
    """Edit `odd.txt` in this way; of several files it is the last one."""
    if way == "rewrite":
        return await desk.call("rewrite", file="odd.txt", content=odd.after.decode() or "new\n")
    if way == "patch":
        return await desk.call("patch", file="odd.txt", edits=EDITS)
    files = [{"file": name, "edits": EDITS} for name in ("beside.txt", "odd.txt")]
    return await desk.call("patch", files=files)


def contents(root: Path) -> dict[str, bytes]:
    """All there is in the workspace."""
    files = [one for one in root.rglob("*") if one.is_file() and not one.is_symlink()]
    return {one.relative_to(root).as_posix(): one.read_bytes() for one in files}


@pytest.mark.req("AG-66", "AG-68")
@pytest.mark.parametrize(("name", "way"), CASES)
async def test_an_odd_file_is_edited_right_or_refused_with_the_reason(desk: Desk, name: str, way: str) -> None:
    odd = TABLE[name]
    path = desk.put("odd.txt", odd.before)
    desk.put("beside.txt", BESIDE)
    await desk.call("read_code", file="odd.txt")
    odd.happens(path)
    if odd.again:
        await desk.call("read_code", file="odd.txt")
    before = contents(desk.root)
    outcome = await edited(desk, way, odd)
    after = contents(desk.root)
    if odd.after:
        assert outcome.state == "finished", outcome.error
        assert path.read_bytes() == odd.after
        assert after.get("beside.txt") == (b"beside new\n" if way == "several" else BESIDE)
    else:
        assert outcome.state == "failed"
        assert (outcome.result or {})["reason"] in odd.reasons
        assert outcome.error
        assert after == before
    assert set(after) <= {"odd.txt", "beside.txt", "real.txt"}, "nothing is left behind"
