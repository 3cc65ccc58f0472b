"""Front matter: plain YAML, read and written."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from greenroom.app.agents.front_matter import NotPlain, dump, read_keys


def test_words_stay_words_and_numbers_are_numbers() -> None:
    text = 'a: no\nb: 1:30\nc: 2026-01-01\nd: true\ne: ~\nf: -3\ng: 1.5e2\nh: "7"\ni: .inf\nj: 0x10\nk: [1, x]'
    assert read_keys(text).values == {
        "a": "no",
        "b": "1:30",
        "c": "2026-01-01",
        "d": True,
        "e": None,
        "f": -3,
        "g": 150.0,
        "h": "7",
        "i": ".inf",
        "j": "0x10",
        "k": [1, "x"],
    }


def test_every_key_has_its_line() -> None:
    keys = read_keys("# first\na: 1\n\nb:\n  c: 2  # a comment\n  d: {e: 3}\n")
    assert keys.lines == {"a": 2, "b": 4, "b.c": 5, "b.d": 6, "b.d.e": 6}
    assert keys.values["b"] == {"c": 2, "d": {"e": 3}}


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_nothing_is_no_keys(text: str) -> None:
    assert read_keys(text).values == {}


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a: 1\nb: &x [1]\nc: *x", 2, "aliases"),
        ("a: *x", 1, "aliases"),
        ("a: !!python/name:os.system x", 1, "tags"),
        ("a: 1\n? [b]\n: 2", 2, "a key must be a word"),
        ("a: 1\n\na: 2", 3, "`a` is there twice, first in line 1. Keep one of them"),
        ("b:\n  a: 1\n  a: 2", 3, "`b.a` is there twice, first in line 2"),
        ("a: 1\nb: c: d", 2, 'Put a text with ": " in it in quotes'),
        ("a:\n\t- b", 2, "cannot start any token"),
        ("just words", 1, "there are no keys in it"),
        ("a: 1\n---\nb: 2", 2, "document"),
        ("a: \x01", 1, "characters are not allowed"),
        ("a: " + "[" * 60 + "]" * 60, 1, "nested too deeply"),
        ("a: " + "[" * 5000, 1, "nested too deeply"),
    ],
)
def test_what_is_not_plain_is_said_with_its_line(text: str, line: int, why: str) -> None:
    with pytest.raises(NotPlain) as fault:
        read_keys(text)
    assert why in str(fault.value)
    assert fault.value.line == line


# Reaches no line that other tests do not, and to be measured takes it twice as long.
@pytest.mark.no_cover
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])))
def test_what_is_written_is_read_again(text: str) -> None:
    written = dump(text)
    assert "\n" not in written
    assert yaml.safe_load(f"a: {written}  # c") == {"a": text} or text in ("yes", "no", "on", "off", "y", "n")
    assert read_keys(f"a: [{written}, {written}]  # c").values == {"a": [text, text]}
