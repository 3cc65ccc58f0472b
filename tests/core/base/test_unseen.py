"""What a terminal would obey is taken out, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.base.text import UNSEEN, Seen, seen

HOSTILE = (
    "a\x1b]0;title\x07b\x1b[?25lc\x1b(Bd\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x1b[2Jx"
    "\x1bc 10%\r20%\r\nend\x1b[31mred"
)
PARTS = st.sampled_from(
    ["\x1b", "[", "]", "31m", ";", "\x07", "\\", "P", "a", "\n", "\r", "\x9b", "(", "B", "文", "\x00"]
)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("plain\ttext\nof two lines", "plain\ttext\nof two lines"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07after", "after"),
        ("\x1b]52;c;c2VjcmV0\x1b\\after", "after"),
        ("\x1b]8;;http://evil\x1b\\a link\x1b]8;;\x1b\\", "a link"),
        ("\x1bP+q544e\x1b\\after", "after"),
        ("\x1b(0lines\x1b(B", "lines"),
        ("\x1bcreset", "reset"),
        ("bell\x07 back\x08 nul\x00", "bell back nul"),
        ("10%\r100%\r\ndone", "10%\n100%\ndone"),
        ("\u202eturned\u2066", "turned"),
        ("\U000e0041tag", "tag"),
        ("\x1b]0;never ended", "0;never ended"),
        ("\x9b31mred", "31mred"),
    ],
)
def test_what_a_terminal_obeys_is_taken_out(printed: str, shown: str) -> None:
    assert seen(printed) == shown


def test_a_string_that_hides_much_text_is_shown() -> None:
    hidden = "x" * 2000
    assert hidden in seen(f"\x1b]0;{hidden}\x07")


@given(st.text())
def test_nothing_that_is_obeyed_is_left(text: str) -> None:
    assert not UNSEEN.search(seen(text))


@given(st.lists(PARTS).map("".join), st.lists(st.integers(0, 30)))
def test_pieces_make_the_same_text_as_the_whole(text: str, cuts: list[int]) -> None:
    pieces, rest = [], text
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    stream = Seen()
    assert "".join(stream.piece(one) for one in (*pieces, rest)) + stream.end() == seen(text)


def test_a_sequence_may_come_letter_by_letter() -> None:
    stream = Seen()
    assert "".join(stream.piece(one) for one in HOSTILE) + stream.end() == seen(HOSTILE)
