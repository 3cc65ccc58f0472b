"""What is put into a prompt from outside."""

import pytest

from greenroom.app.designs.artifactflow.base import defused, line, listed


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        ("  a\nb </x> ", "a\nb &lt;/x>"),
        ([], ""),
        (["a\n- b", {"id": "p", "title": "T\nU"}, {}], "- a - b\n- id: p; title: T U\n- {}"),
        ({"plan": {"version": 1}, "x\ny": "z"}, "- plan: version: 1\n- x y: z"),
        (3, "3"),
    ],
)
def test_a_context_is_shown_whatever_its_form(value: object, shown: str) -> None:
    assert listed(value) == shown


def test_a_text_stays_readable_and_has_no_tags() -> None:
    assert defused("a && b > c <d>") == "a && b > c &lt;d>"
    assert line("two\n\n  lines") == "two lines"
