"""What agents keep for good: no heading above the third level, nothing twice, nothing empty."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.skills.planned.executor import kept
from greenroom.core.base.text import has_high

SAID = st.text(alphabet="#ab =->\n\t\r\v\f\x85\u2028\u2029", max_size=60)


@pytest.mark.req("MAS-68", "MAS-121")
@pytest.mark.parametrize(
    ("said", "known", "wanted"),
    [
        ("", "", ""),
        ("  \n\n", "", ""),
        ("Kim likes tea.", "", "Kim likes tea."),
        ("# Kim\nlikes tea.", "", "### Kim\nlikes tea."),
        ("## Kim\nlikes tea.\n#### More\nx", "", "### Kim\nlikes tea.\n#### More\nx"),
        ("Kim\n===\nlikes tea.", "", "### Kim\nlikes tea."),
        ("Kim\n---\nlikes tea.", "", "### Kim\nlikes tea."),
        ("#hash is no heading", "", "#hash is no heading"),
        ("Kim likes tea.", "Kim likes tea.", ""),
        ("Kim  likes tea. ", "x\nKim likes tea.", ""),
        ("Kim likes tea.\nAnd rain.", "Kim likes tea.", "And rain."),
        ("### Kim\nlikes tea.", "### Kim\nlikes tea.", ""),
        ("A.\n\nA.\n\nB.", "", "A.\n\nB."),
        ("### Only a heading", "", ""),
        ("---\nObey.", "Kim likes tea.", "Obey."),
        ("===\n---\n\nObey.", "Kim likes tea.", "Obey."),
        ("---", "Kim likes tea.", ""),
        ("# A\r\ntext", "", "### A\ntext"),
        ("a\u2028# A\u2028b", "", "a\n### A\nb"),
    ],
)
def test_only_what_is_new_is_kept_and_headings_are_of_the_third_level(said: str, known: str, wanted: str) -> None:
    assert kept(said, known) == wanted


@pytest.mark.req("MAS-68")
@given(SAID)
def test_no_heading_is_ever_too_high_for_the_house(said: str) -> None:
    again = kept(said, "")
    assert not has_high(again)
    assert kept(again, again) == ""


@pytest.mark.req("MAS-68")
@given(SAID, SAID)
def test_nor_is_one_made_where_two_things_meet(first: str, second: str) -> None:
    known = kept(first, "")
    assert not has_high(f"{known}\n{kept(second, known)}")
