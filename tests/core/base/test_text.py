"""Texts of others in a text of ours."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from greenroom.core.base.text import (
    CONTROL_CHARACTERS,
    ControlCharacterFilter,
    LabelledText,
    has_high_heading,
    is_heading,
    lower_headings,
    origins_of,
    remove_control_characters,
)

BREAKS = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029")


@pytest.mark.parametrize("end", BREAKS)
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a{}# High", "a\n### High"),
        ("a{}## High", "a\n### High"),
        ("a{}  #", "a\n  ###"),
        ("a{}> ## High", "a\n> ### High"),
        ("a{}- # High", "a\n- ### High"),
        ("a{}1. # High", "a\n1. ### High"),
        ("a{}\ufeff# High", "a\n\ufeff### High"),
        ("High{}===", "### High"),
        ("High{}-", "### High"),
        ("High{}  --- ", "### High"),
        ("### Low{}---", "### Low"),
    ],
)
def test_a_heading_that_is_too_high_is_seen_and_lowered_whatever_ends_its_line(
    text: str, wanted: str, end: str
) -> None:
    assert has_high_heading(text.format(end))
    assert lower_headings(text.format(end)) == wanted
    assert not has_high_heading(wanted)


@pytest.mark.parametrize(
    "text", ["#hashtag", "### Low", "a\n\n---\n\nb", "- a\n- b", "| a |\n|---|", "a = b", "a # b", ""]
)
def test_what_is_no_high_heading_stays_as_it_is(text: str) -> None:
    assert not has_high_heading(text)
    assert lower_headings(text) == text


def test_a_heading_of_any_level_is_one() -> None:
    assert [is_heading(one) for one in ("# a", "###### a", "  ## a", "#a", "a", "####### a")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]


_TEXTS = st.text(
    alphabet=["#", "=", "-", ">", " ", "\t", "a", "1", ".", "\u3000", "\ufeff", *"".join(BREAKS)], max_size=40
)


@given(_TEXTS)
def test_no_text_keeps_a_high_heading_and_lowering_again_changes_nothing(text: str) -> None:
    low = lower_headings(text)
    assert not has_high_heading(low)
    assert lower_headings(low) == low
    assert not set(low) & {"\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"}


@given(_TEXTS)
@example("1\n\u3000\n=")
def test_a_reader_of_markdown_finds_none_either(text: str) -> None:
    found = [one.tag for one in MarkdownIt().parse(lower_headings(text)) if one.type == "heading_open"]
    assert not {"h1", "h2"} & set(found)


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
    assert remove_control_characters(printed) == shown


def test_a_string_that_hides_much_text_is_shown() -> None:
    hidden = "x" * 2000
    assert hidden in remove_control_characters(f"\x1b]0;{hidden}\x07")


@given(st.text())
def test_nothing_that_is_obeyed_is_left(text: str) -> None:
    assert not CONTROL_CHARACTERS.search(remove_control_characters(text))


@given(st.lists(PARTS).map("".join), st.lists(st.integers(0, 30)))
def test_pieces_make_the_same_text_as_the_whole(text: str, cuts: list[int]) -> None:
    pieces, rest = [], text
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    stream = ControlCharacterFilter()
    assert "".join(stream.feed(one) for one in (*pieces, rest)) + stream.end() == remove_control_characters(text)


def test_a_text_keeps_its_labels_and_is_equal_to_its_words() -> None:
    told = LabelledText("Use tabs.", ("file:AGENTS.md",))
    assert (told, origins_of(told), f"{told}") == ("Use tabs.", ("file:AGENTS.md",), "Use tabs.")
    assert origins_of("Use tabs.") == origins_of(LabelledText("x")) == ()
