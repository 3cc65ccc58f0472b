"""Headings: whoever writes into a prompt gets none of the first two levels into it, however the lines end."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from greenroom.core.base.text import has_high, is_heading, lowered

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
    assert has_high(text.format(end))
    assert lowered(text.format(end)) == wanted
    assert not has_high(wanted)


@pytest.mark.parametrize(
    "text", ["#hashtag", "### Low", "a\n\n---\n\nb", "- a\n- b", "| a |\n|---|", "a = b", "a # b", ""]
)
def test_what_is_no_high_heading_stays_as_it_is(text: str) -> None:
    assert not has_high(text)
    assert lowered(text) == text


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
    low = lowered(text)
    assert not has_high(low)
    assert lowered(low) == low
    assert not set(low) & {"\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"}


@given(_TEXTS)
@example("1\n\u3000\n=")
def test_a_reader_of_markdown_finds_none_either(text: str) -> None:
    found = [one.tag for one in MarkdownIt().parse(lowered(text)) if one.type == "heading_open"]
    assert not {"h1", "h2"} & set(found)
