"""Several lines that are one input."""

import pytest

from greenroom.app.conversation.typed import joined, unfinished


@pytest.mark.parametrize(
    ("text", "more", "whole"),
    [
        ("one", False, "one"),
        ("", False, ""),
        ("one \\", True, "one "),
        ("one\\\ntwo", False, "one\ntwo"),
        ("one\\\ntwo\\", True, "one\ntwo"),
        ("C:\\\\", False, "C:\\\\"),
        ('"""', True, ""),
        ('"""\none\n\ntwo\\', True, "one\n\ntwo\\"),
        ('"""\none\n\ntwo\n"""', False, "one\n\ntwo"),
        ('say """hi"""', False, 'say """hi"""'),
    ],
)
def test_a_backslash_and_quotes_hold_lines_together(text: str, more: bool, whole: str) -> None:
    assert (unfinished(text), joined(text)) == (more, whole)
