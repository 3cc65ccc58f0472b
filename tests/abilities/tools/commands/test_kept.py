"""What is kept of an endless output: how it begins, how it ends, and how much is missing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.tools.command_output import Kept


def test_what_fits_is_kept_whole() -> None:
    kept = Kept(10, 10)
    kept.add("12345")
    kept.add("67890abcde")
    kept.end()
    assert (kept.text, kept.dropped) == ("1234567890abcde", 0)


def test_of_more_the_beginning_and_the_end_are_kept() -> None:
    kept = Kept(4, 3)
    for piece in ("ab", "cdef", "ghi", "jklm"):
        kept.add(piece)
    assert (kept.text, kept.dropped) == ("abcd\n[… 6 characters are not kept …]\nklm", 6)


def test_what_was_lost_before_is_counted() -> None:
    kept = Kept()
    kept.add("a", missing=5)
    assert kept.dropped == 5


def test_nothing_in_it_is_obeyed_even_if_it_comes_in_pieces() -> None:
    kept = Kept()
    for piece in ("a\x1b", "[3", "1mb\x1b]0;ti", "tle", "\x07c\r", "\nd", "\x1b["):
        kept.add(piece)
    kept.end()
    assert kept.text == "abc\nd["


@given(st.lists(st.text(alphabet="abc")), st.integers(0, 9), st.integers(0, 9))
def test_nothing_is_lost_uncounted(pieces: list[str], beginning: int, end: int) -> None:
    kept, whole = Kept(beginning, end), "".join(pieces)
    for piece in pieces:
        kept.add(piece)
    kept.end()
    assert kept.dropped == max(0, len(whole) - beginning - end)
    assert kept.text.startswith(whole[:beginning])
    assert not end or kept.text.endswith(whole[beginning:][-end:])
