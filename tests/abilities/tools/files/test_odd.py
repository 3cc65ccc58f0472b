"""Odd files, one by one, under every way of editing: right to the byte, or refused with the reason and untouched.

Files of 50 megabytes are in `test_trouble`: they take their time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from greenroom.core.ports.executor import Outcome
from tests.abilities.tools.files.desk import Desk
from tests.abilities.tools.files.test_texts import be, le, sig

EDITS = [{"search": "old", "replace": "new"}]
WAYS = ("patch", "rewrite", "several")
BESIDE = b"beside old\n"


def _nothing(_: Path) -> None:
    """It stays as it is."""


def _read_only(path: Path) -> None:
    path.chmod(0o444)


def _vanish(path: Path) -> None:
    path.unlink()


def _link_in(path: Path) -> None:
    path.rename(path.with_name("real.txt"))
    path.symlink_to("real.txt")


def _link_out(path: Path) -> None:
    path.rename(path.parents[1] / "outside.txt")
    path.symlink_to("../outside.txt")


def _link_round(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _edited(path: Path) -> None:
    path.write_bytes(b"somebody's old\n")


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
    happens: Callable[[Path], None] = _nothing
    after: bytes = b""
    reasons: tuple[str, ...] = ()
    again: bool = False


TABLE = {
    "windows line ends": Odd(b"a\r\nold\r\n", after=b"a\r\nnew\r\n"),
    "mixed line ends": Odd(b"a\r\nold\nc\r\n", after=b"a\r\nnew\nc\r\n"),
    "utf-16, little end first": Odd(le("ü\r\nold\r\n"), after=le("ü\r\nnew\r\n")),
    "utf-16, big end first": Odd(be("ü\nold\n"), after=be("ü\nnew\n")),
    "utf-8 with a mark": Odd(sig("ü old\n"), after=sig("ü new\n")),
    "no final newline": Odd(b"a\nold", after=b"a\nnew"),
    "one word": Odd(b"old", after=b"new"),
    "not utf-8": Odd(b"caf\xe9 old\n", reasons=("not_text", "changed")),
    "binary": Odd(b"\x00\x01old", reasons=("not_text", "changed")),
    "read-only": Odd(b"old\n", _read_only, reasons=("read_only",)),
    "vanished": Odd(b"old\n", _vanish, reasons=("missing",)),
    "linked in the workspace": Odd(b"old\n", _link_in, after=b"new\n", again=True),
    "linked out of it": Odd(b"old\n", _link_out, reasons=("outside",)),
    "linked to itself": Odd(b"old\n", _link_round, reasons=("outside",)),
    "edited by somebody since it was read": Odd(b"old\n", _edited, reasons=("changed",)),
    "a folder by now": Odd(b"old\n", _folder, reasons=("kind",)),
    "a pipe by now": Odd(b"old\n", _pipe, reasons=("kind",)),
}

ANEW = ("mixed line ends", "vanished")
"""What a rewrite makes of these is something new: one kind of line ends, a file where there is none."""

CASES = [(name, way) for name in TABLE for way in WAYS if way != "rewrite" or name not in ANEW]


async def edited(desk: Desk, way: str, odd: Odd) -> Outcome:
    """Edit `odd.txt` in this way; of several files it is the last one."""
    if way == "rewrite":
        content = odd.before.replace(b"old", b"new") if odd.after else b"new\n"
        text = next(text for text in _texts(odd.after or content))
        return await desk.call("rewrite", file="odd.txt", content=text)
    if way == "patch":
        return await desk.call("patch", file="odd.txt", edits=EDITS)
    files = [{"file": name, "edits": EDITS} for name in ("beside.txt", "odd.txt")]
    return await desk.call("patch", files=files)


def _texts(raw: bytes) -> Iterator[str]:
    """What a model would write: plain text with plain line ends."""
    for encoding in ("utf-8-sig", "utf-16"):
        with suppress(UnicodeDecodeError):
            yield raw.decode(encoding).replace("\r\n", "\n")


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
