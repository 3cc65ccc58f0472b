"""What is typed while a job goes on, key by key."""

import pytest

from greenroom.cli.render.questions import LONGEST, TypedLine, in_words


@pytest.mark.parametrize(
    ("keys", "done", "left"),
    [
        (b"keep it\r", ["keep it"], ""),
        (b"one\ntwo\nthr", ["one", "two"], "thr"),
        (b"keepp\x7f it\r", ["keep it"], ""),
        (b"all wrong\x15right\r", ["right"], ""),
        (b"two words\x17", [], "two"),
        (b"\x1b[A\x1b[Dstill here\x1bOP", [], "still here"),
        (b"  \r\r\n", [], ""),
        ("保留 CSV\r".encode(), ["保留 CSV"], ""),
        (b"a\x00\x07b", [], "ab"),
        (b"x" * (LONGEST + 9), [], "x" * LONGEST),
    ],
)
def test_keys_become_lines(keys: bytes, done: list[str], left: str) -> None:
    line = TypedLine()
    assert line.take(keys) == done
    assert line.text == left


def test_a_sign_that_comes_in_two_pieces_is_one() -> None:
    line, sign = TypedLine(), "留".encode()
    assert line.take(sign[:1]) == []
    assert line.take(sign[1:]) == []
    assert line.text == "留"


def test_a_question_is_broken_between_words_and_what_is_quoted_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    told = in_words("coder wants to use a very long tool\n  | quoted words of an agent, as long as they are\n[n] no: ")
    assert told.splitlines() == [
        "coder wants to use a",
        "very long tool",
        "  | quoted words of an agent, as long as they are",
        "[n] no: ",
    ]
