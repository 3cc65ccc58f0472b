"""The classifier by rules: right where it is sure, often enough sure, and never surprised by a text."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.teamwork.classify import classify, find_language
from tests.speed import is_soon

HERE = Path(__file__).parent


@pytest.mark.req("RC-123")
@pytest.mark.parametrize(("language", "right", "answered"), [("en", 0.94, 0.4), ("zh", 0.95, 0.5)])
def test_requests_that_were_never_learned_are_answered_right(language: str, right: float, answered: float) -> None:
    letters = {"B": "bug-fix", "D": "documentation", "F": "feature-development", "R": "refactoring", "T": "testing"}
    lines = [line.split(" ", 1) for line in (HERE / "requests_held_out.txt").read_text("utf-8").splitlines()]
    rows = [
        ({letters[letter] for letter in kinds.strip("-")}, classify(text.replace("\\n", "\n")))
        for kinds, text in lines
        if find_language(text) == language
    ]
    sure = [types == set(found.types) for types, found in rows if found.is_sure]
    assert len(rows) > 250
    assert sum(sure) >= right * len(sure)
    assert len(sure) >= answered * len(rows)


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("fix the docs", "documentation"),
        ("fix the doc generator", "bug-fix"),
        ("add a bug report form", "feature-development"),
        ("add tests for the bug tracker", "testing"),
        ("refactor the tests of the parser", "refactoring"),
        ("修复文档", "documentation"),
        ("修复文档生成器的崩溃", "bug-fix"),
        ("重构订单模块，不改变行为", "refactoring"),
        ("添加一个提交 bug 的表单", "feature-development"),
    ],
)
def test_the_object_decides_and_not_a_word(text: str, types: str) -> None:
    found = classify(text)
    assert found.is_sure
    assert found.types == (types,)


@pytest.mark.parametrize(
    "text", ["", "fix", "improve the code", "make it better", "优化一下", "你好", "Fix the tests", "Change the colours"]
)
def test_no_type_is_sure_in_a_vague_request(text: str) -> None:
    found = classify(text)
    assert not found.is_sure or not found.types


def test_a_guess_names_what_the_request_talks_about() -> None:
    assert classify("Our tests are a mess").types in (("testing",), ("refactoring",))
    assert classify("hello there").types == ()


def test_questions_about_facts_ask_for_nothing() -> None:
    for text in ("How do I run the tests?", "Who wrote the parser?", "这个项目用的是什么数据库？"):
        assert classify(text).is_sure
        assert classify(text).types == ()


def test_words_that_deny_a_wish_take_it_back() -> None:
    assert classify("Add a retry policy without tests and docs").types == ("feature-development",)
    assert classify("Fix the crash; do not refactor anything, no docs").types == ("bug-fix",)
    assert classify("增加导出按钮，不需要写测试").types == ("feature-development",)


PIECES = st.sampled_from(
    [
        "fix",
        "add",
        "test",
        "docs",
        "and",
        ",",
        "with",
        "no",
        "it",
        "?",
        ":",
        ".",
        "修复",
        "文档",
        "把",
        "，",
        "？",
        "`",
        "吗",
    ]
)


@given(st.lists(PIECES | st.text(max_size=6), max_size=25).map(" ".join))
def test_no_text_is_too_odd(text: str) -> None:
    found = classify(text)
    assert found == classify(text)
    assert len(set(found.types)) == len(found.types)


def test_a_very_long_request_is_read() -> None:
    assert classify("add a search, and " * 1200).types == ("feature-development",)
    assert classify("新增搜索，" * 4000).types == ("feature-development",)


@pytest.mark.parametrize("piece", ["add a search and fix it ", "修复搜索再加测试", "with tests, ", "，测试和文档"])
def test_the_longest_request_takes_less_than_a_second(piece: str) -> None:
    start = time.process_time()
    classify((piece * 20_000)[:20_000])
    assert is_soon(time.process_time() - start, 1)
