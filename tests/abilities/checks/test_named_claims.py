"""Tests and programs that a text speaks of by their names; ordinary prose is no claim."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.named_claims import clean_tools, named_tests, passing_tests, run_tools


@pytest.mark.parametrize(
    ("text", "passing"),
    [
        ("`test_yaml` passes, and tests/test_a.py::test_b passed.", ("test_yaml", "test_b")),
        ("`TestA::test_b()` now passes, and `TestA.test_c` is green.", ("test_b", "test_c")),
        ("`test_b[1-x]` passes.", ("test_b",)),
        ("`test_o` in `tests/test_other.py` passes; test_p in test_a.py now passes.", ("test_o", "test_p")),
        ("`test_json` 已通过，test_größe通过。", ("test_json", "test_größe")),
        ("`test_x` would pass if it were there. `test_y` does not pass.", ()),
        ("I added `test_yaml`.", ()),
    ],
)
def test_a_test_is_said_to_pass_or_not(text: str, passing: tuple[str, ...]) -> None:
    assert passing_tests(text) == passing


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("I added the test `test_yaml` and the tests test_one and more.", ("test_yaml", "test_one")),
        ("The test `test_yaml` shows it.", ("test_yaml",)),
        ("I added the test test_one.", ("test_one",)),
        ("新增测试 `test_yaml`，`test_json` 已通过。", ("test_json", "test_yaml")),
        ("`test_triple` covers the new function and passes.", ("test_triple",)),
        ("Added `test_triple`.", ("test_triple",)),
        ("I added a regression test called test_triple to test_calc.py.", ("test_triple",)),
        ("All green: test_triple, test_negative.", ("test_triple", "test_negative")),
        ("Tests test_triple and test_zero pass.", ("test_zero", "test_triple")),
        ("Regression test: `test_calc.py::test_triple` (passes).", ("test_triple",)),
        ("`test_triple` added to test_calc.py, passing.", ("test_triple",)),
        ("I wrote `TestTriple` for it.", ("TestTriple",)),
        ("I added:\n\n- test_one[a-b]\n- `test_two()`", ("test_one", "test_two")),
        ("我添加了 test_triple 测试。", ("test_triple",)),
        ("我添加了test_triple测试。", ("test_triple",)),
    ],
)
def test_a_test_is_spoken_of_as_one_that_is_there(text: str, named: tuple[str, ...]) -> None:
    assert named_tests(text) == named


@pytest.mark.parametrize(
    "text",
    [
        "I added tests to test_export.py, tests/test_a/b.py and tests/test_b.",
        "I did not add the test `test_later`; `test_x` would pass if it were there.",
        "I did not add test_x.",
        "I wrote the parser; test_x is missing.",
        "I fixed it, and test_x still has to be written.",
        "I added nothing for test_x.",
        "Removed the test `test_old`.",
        "I updated the tests: renamed `test_old` to the name of what it does.",
        "It reads `test_data` and `test_client`.",
        "I added a flag, so that `pytest -k test_slow` is quick.",
        "I changed the notes for TestFlight.",
        "Should I have added `test_more`?",
        "我没有添加 test_triple 测试。",
        "```\nadded test_triple, which passes\n```",
    ],
)
def test_what_is_denied_planned_or_something_else_is_no_test_that_is_there(text: str) -> None:
    assert named_tests(text) == ()


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("mypy and ruff are clean.", ("mypy", "ruff")),
        ("All 1 tests pass, 100% coverage, mypy is clean.", ("mypy",)),
        ("`mypy --strict`, `ruff check` and ESLint all pass.", ("mypy", "ruff", "eslint")),
        ("mypy reports no errors; ruff finds no issues.", ("mypy", "ruff")),
        ("ruff comes back clean.", ("ruff",)),
        ("mypy 和 ruff 均通过。", ("mypy", "ruff")),
        ("mypy 检查没有报错。", ("mypy",)),
        ("mypy is not clean yet.", ()),
        ("I did not run mypy, so I do not know that mypy is clean.", ()),
        ("Once ruff is clean, merge it.", ()),
        ("I mended what mypy and ruff found; the black box passes on its input.", ()),
        ("mypy.ini is clean, and so is src/mypy.", ()),
        ("mypy passes the type on to the plugin.", ()),
        ("I set up mypy for it.", ()),
    ],
)
def test_a_program_is_said_to_find_nothing_wrong_or_not(text: str, tools: tuple[str, ...]) -> None:
    assert clean_tools(text) == tools


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("I ran mypy, ruff and the whole suite, no problems.", ("mypy", "ruff")),
        ("I've run the tests, `mypy --strict` and `ruff check`.", ("mypy", "ruff")),
        ("Ran ESLint with no problems.", ("eslint",)),
        ("运行了 mypy 和 ruff，没有问题。", ("mypy", "ruff")),
        ("I ran the tests.", ()),
        ("I ran into a mypy error.", ()),
        ("I ran a script that mypy and ruff would like.", ()),
        ("I have not run mypy.", ()),
        ("If I had run mypy, it would have told.", ()),
        ("You can run mypy and ruff.", ()),
        ("Install it and run mypy. Run ruff to see more.", ()),
        ("What I did:\n\n- Ran mypy.", ("mypy",)),
        ("I ran mypy-upgrade.", ()),
    ],
)
def test_a_program_is_said_to_have_been_run_or_not(text: str, tools: tuple[str, ...]) -> None:
    assert run_tools(text) == tools


@given(st.text(max_size=500))
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance((*named_tests(text), *clean_tools(text), *run_tools(text)), tuple)


@pytest.mark.parametrize(
    "word", ["test_a.", "a::", "a/", "`test_a ", "mypy, ", "test_a, ", "测试 test_a", "a" * 99 + ".", " , "]
)
def test_a_long_text_is_read_quickly(word: str) -> None:
    assert len(named_tests("added " + word * 10_000)) <= 1
    assert clean_tools(f"mypy{word * 10_000}") == ()
    assert run_tools(f"mypy and ran {word * 10_000}") in ((), ("mypy",))
