"""What a person types while a job goes on, key by key, and lines of stdin."""

import asyncio
import os

import pytest

from greenroom.app.conversation.chat_input import TextInput, WakeInput
from greenroom.cli.interactive.lines import PlainLines
from greenroom.cli.render.questions import MAX_LINE_CHARS, TypedLine, wrap_question


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
        (b"x" * (MAX_LINE_CHARS + 9), [], "x" * MAX_LINE_CHARS),
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
    told = wrap_question(
        "coder wants to use a very long tool\n  | quoted words of an agent, as long as they are\n[n] no: "
    )
    assert told.splitlines() == [
        "coder wants to use a",
        "very long tool",
        "  | quoted words of an agent, as long as they are",
        "[n] no: ",
    ]


async def test_news_between_two_lines_of_a_text_take_nothing_away_from_it() -> None:
    reading, writing = os.pipe()
    lines, news = PlainLines(reading), asyncio.Event()
    news.set()
    os.write(writing, b'"""\nDo NOT delete the files.\n')
    assert {await lines.read_text("› ", news) for _ in range(1000)} == {WakeInput()}
    news.clear()
    os.write(writing, b'Delete the caches.\n"""\n')
    os.close(writing)
    assert await lines.read_text("› ", news) == TextInput(text='"""\nDo NOT delete the files.\nDelete the caches.\n"""')
