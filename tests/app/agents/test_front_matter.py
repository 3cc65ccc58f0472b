"""Front matter: plain YAML, read and written."""

from __future__ import annotations

import pytest

from greenroom.app.agents.front_matter import UnsupportedYaml, parse_yaml_keys


def test_words_stay_words_and_numbers_are_numbers() -> None:
    text = 'a: no\nb: 1:30\nc: 2026-01-01\nd: true\ne: ~\nf: -3\ng: 1.5e2\nh: "7"\ni: .inf\nj: 0x10\nk: [1, x]'
    assert parse_yaml_keys(text).values == {
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


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a: 1\nb: &x [1]\nc: *x", 2, "aliases"),
        ("a: *x", 1, "aliases"),
        ("a: !!python/name:os.system x", 1, "tags"),
        ("a: 1\n? [b]\n: 2", 2, "a key must be a word"),
        ("a: 1\n\na: 2", 3, "`a` is defined twice, first in line 1. Keep one of them"),
        ("b:\n  a: 1\n  a: 2", 3, "`b.a` is defined twice, first in line 2"),
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
    with pytest.raises(UnsupportedYaml) as fault:
        parse_yaml_keys(text)
    assert why in str(fault.value)
    assert fault.value.line == line


# Reaches no line that other tests do not, and to be measured takes it twice as long.
