"""The message catalogues of organisations: the same phrases in both languages, with the same gaps."""

import re

import pytest

from greenroom.app.organisation.words import CATALOGUE, Catalogue, commands, nobody, refused
from greenroom.interfaces.cli.display import words as phrases

GAP = re.compile(r"\{(\w+)")
TABLES = {
    CATALOGUE: ("charter", "founding", "input", "commands", "refusals", "hints", "notices", "instructions"),
    phrases.CATALOGUE: ("room", "team", "standing", "columns", "picture", "reasons"),
}
OWN_WORDS = {"unreadable", "place", "must_be", "must_be_model", "no_key", "misnamed", "no_model", "no_tool", "meant"}
"""Phrases in which Chinese says itself what English takes from elsewhere."""


@pytest.mark.parametrize("catalogue", TABLES)
def test_every_phrase_is_there_in_both_languages_with_the_same_gaps(catalogue: Catalogue) -> None:
    for table in TABLES[catalogue]:
        english, chinese = catalogue.table(table, "en"), catalogue.table(table, "zh")
        assert english.keys() == chinese.keys()
        for name in english:
            if name not in OWN_WORDS and not name.startswith("unfit_"):
                assert {*GAP.findall(english[name])} == {*GAP.findall(chinese[name])}, name


def test_every_command_takes_the_same_in_both_languages() -> None:
    assert {name for name, about in commands("en").items() if "  " in about} == {
        name for name, about in commands("zh").items() if "  " in about
    }


def test_a_region_speaks_its_language_and_an_unknown_language_is_english() -> None:
    assert commands("zh-CN") == commands("zh")
    assert commands("fr") == commands("") == commands("en")


def test_a_refusal_says_what_there_is_also_when_that_is_nothing() -> None:
    assert refused("unknown_group", "there", "en", name="us", there="").rejected.hint == "There are: none."
    assert "现有：无。" in str(refused("unknown_group", "there", "zh", name="us", there=""))


@pytest.mark.parametrize(("name", "near"), [("Ben", "ben"), ("\u0441\u043e\u0440\u0430", "copa")])
def test_an_agent_whose_name_looks_like_it_is_offered(name: str, near: str) -> None:
    assert nobody(name, ("wu", "ben", "copa"), "en").rejected.hint == f"Did you mean {near!r}?"
    assert nobody("eve", ("wu", "ben"), "en").rejected.hint == "There are: ben, wu."
