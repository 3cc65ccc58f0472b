"""Secrets are taken out of recordings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.adapters.models.replay import secrets_in
from greenroom.adapters.models.replay.cassette import MASK, Redaction

KEY = "sk-abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    "secret",
    [
        KEY,
        "sk-proj-abc_DEF-123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "ghp_abcdefghijklmnopqrst",
        "gsk_abcdefghijklmnopqrst",
        "xoxb-1234567890-abcdefgh",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_key_is_taken_out(secret: str) -> None:
    assert Redaction().text(f"use {secret}, please") == f"use {MASK}, please"


def test_a_bearer_keeps_its_name() -> None:
    assert Redaction().text("Authorization: Bearer abc.def-ghi_123") == f"Authorization: Bearer {MASK}"


@pytest.mark.parametrize("text", ["sk-learn", "Bearer of bad news", "AKIA", "a sk- b", ""])
def test_ordinary_words_stay(text: str) -> None:
    assert Redaction().text(text) == text


def test_known_secrets_are_taken_out_the_longest_first() -> None:
    redaction = Redaction(["hunter22", "hunter22-long", "short"])
    assert redaction.text("hunter22-long hunter22 short") == f"{MASK} {MASK} short"


def test_a_secret_that_is_a_word_of_the_format_is_none() -> None:
    assert Redaction(["messages", "filter"]).text("messages filter") == "messages filter"


def test_secrets_are_found_by_the_names_of_variables() -> None:
    environment = {"OPENAI_API_KEY": "a", "GH_TOKEN": "b", "My_Secret": "c", "KEYBOARD": "d", "HOME": "e"}
    assert secrets_in(environment) == ("a", "b", "c")


@given(st.lists(st.integers(0, 80), min_size=3, max_size=3))
def test_a_key_in_pieces_is_taken_out_and_the_cuts_stay(cuts: list[int]) -> None:
    text = f"first {KEY} then {KEY}."
    low, middle, high = sorted(cuts)
    pieces = [text[:low], text[low:middle], text[middle:high], text[high:]]
    clean = Redaction().pieces(pieces)
    assert len(clean) == len(pieces)
    assert "".join(clean) == f"first {MASK} then {MASK}."


def test_pieces_without_a_key_stay_as_they_are() -> None:
    assert Redaction().pieces(["a", "", "b"]) == ["a", "", "b"]
    assert Redaction().pieces([]) == []
