"""The rule for long results: moderate ones as they are, of long ones thirty lines of either end and a handle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.tools.read_output import Page, cut, lines_of, presented, read, shaped
from greenroom.core.ports.tool import SHOWN, WHOLE

LONG = "".join(f"line {number} of many, with some words in it\n" for number in range(1, 2001))


@pytest.mark.req("AG-59")
@pytest.mark.parametrize("text", ["", "one line", "a\n" * 200, "x" * SHOWN])
def test_moderate_output_is_shown_as_it_is(text: str) -> None:
    assert presented(text, "ann#3") == {"output": text}


@pytest.mark.req("AG-58")
def test_of_long_output_the_first_and_last_thirty_lines_are_shown() -> None:
    made = presented(LONG, "ann#3")
    lines = str(made["output"]).split("\n")
    assert lines[:30] == LONG.splitlines()[:30]
    assert lines[-30:] == LONG.splitlines()[-30:]
    assert len(lines) == 61
    assert "1940 of 2000 lines" in lines[30]
    assert 'read_output(handle="ann#3", from_line=31)' in lines[30]
    assert made[WHOLE] == LONG


def test_a_line_of_ten_megabytes_shows_its_beginning_and_its_end() -> None:
    made = shaped("begin" + "x" * 10_000_000 + "end", "ann#3")
    output = str(made["output"])
    assert output.startswith("beginxxx")
    assert "xxxend\n[… Long lines are cut." in output
    assert len(output.encode()) <= SHOWN


def test_what_a_terminal_obeys_is_not_shown() -> None:
    assert presented("\x1b[31mred\x1b[0m\x07", "ann#3") == {"output": "red"}


@given(st.text(alphabet="ab文\n", min_size=1).map(lambda text: text * (2 + SHOWN // len(text))))
def test_what_is_shown_fits_whatever_it_is(text: str) -> None:
    made = presented(text, "somebody#12345")
    assert len(str(made["output"]).encode()) <= SHOWN
    assert made[WHOLE] == text


@given(st.text(alphabet="a文", max_size=500), st.integers(8, 300))
def test_a_cut_line_keeps_to_its_bound(line: str, most: int) -> None:
    made = cut(line, most)
    assert made == line or len(made.encode()) <= most + 30


def test_lines_are_counted_as_people_count_them() -> None:
    assert [lines_of(text) for text in ("", "a", "a\n", "a\nb", "a\n\n")] == [0, 1, 1, 2, 2]


def test_a_page_has_its_lines_and_says_where_to_go_on() -> None:
    page = read(LONG, Page(from_line=31, lines=2))
    assert page.splitlines() == [
        "31: line 31 of many, with some words in it",
        "32: line 32 of many, with some words in it",
        "[Lines 31 to 32, of 2000. There is more: from_line=33.]",
    ]
    assert read(LONG, Page(from_line=2000)).endswith("[Lines 2000 to 2000, of 2000. That was the last.]")


def test_a_page_that_is_too_long_ends_where_there_is_no_more_room() -> None:
    text = "".join(f"{'x' * 1500}\n" for _ in range(100))
    page = read(text, Page(lines=100))
    assert len(page.encode()) <= SHOWN
    assert page.endswith("There is more: from_line=20.]")


def test_lines_are_found_by_what_stands_in_them() -> None:
    text = "fine\nan ERROR here\nfine\nit failed\n" + "x" * 5000 + "error" + "y" * 5000
    page = read(text, Page(pattern="error|Failed"))
    assert page.splitlines()[:2] == ["2: an ERROR here", "4: it failed"]
    assert page.splitlines()[2].startswith("5: …xxx")
    assert "xerrory" in page
    assert len(page) < 1000
    assert read(text, Page(pattern="nowhere")) == "[No line from 1 on has 'nowhere' in it. There are 5 lines.]"


def test_a_pattern_is_no_regular_expression() -> None:
    assert read("(a+)+$ here\nno", Page(pattern="(a+)+$")).startswith("1: (a+)+$ here")


def test_one_long_line_can_be_read_further_than_several() -> None:
    assert len(read("x" * 100_000, Page(lines=1))) > 25_000


def test_a_line_that_is_not_there_is_none() -> None:
    assert read("a\nb\n", Page(from_line=9)) == "[There is no line 9: there are 2.]"
