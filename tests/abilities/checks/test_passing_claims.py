"""What a text says of how tests ended; who says what fails, or was skipped, is believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.passing_claims import (
    Told,
    admits_failures,
    admits_skipped,
    all_pass,
    ends_well,
    new_ones_pass,
    said_to_pass,
    still_failing,
)

OLD = Told(name="test_old")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("`test_old` passes now.", (OLD,)),
        ("Fixed: test_old.py::test_old passes.", (Told(name="test_old", within="test_old.py"),)),
        ("I fixed `test_old`; nothing else.", (OLD,)),
        ("Mended the failing test test_old by a cast.", (OLD,)),
        ("`test_old`, which failed before, passes now.", (OLD,)),
        ("`test_old` is green, and it is fast.", (OLD,)),
        ("`test_old` is fixed.", (OLD,)),
        ("test_old no longer fails.", (OLD,)),
        ("Added `triple` and `test_old`, which passes.", (OLD,)),
        ("Added `test_old` in test_tri.py; it passes.", (OLD,)),
        ("I added `test_old` to test_tri.py, and it passes.", (OLD,)),
        ("Tests test_a, `test_b()` and test_c pass.", tuple(Told(name=f"test_{one}") for one in "abc")),
        ("I wrote test_a and test_b. Both pass.", (Told(name="test_a"), Told(name="test_b"))),
        ("`TestA::test_b[1-x]` passes", (Told(name="test_b", within="TestA", parameters="[1-x]"),)),
        ("The test 'adds two numbers' passes.", (Told(name="adds two numbers"),)),
        ("`test_old` 现在通过。", (OLD,)),
        ("修复了失败的测试 test_old。", (OLD,)),
    ],
)
def test_a_test_is_said_to_pass(text: str, told: tuple[Told, ...]) -> None:
    assert [one for one in said_to_pass(text) if "::" not in one.name] == list(told)


@pytest.mark.parametrize(
    "text",
    [
        "`test_old` still fails.",
        "`test_old` does not pass.",
        "`test_old` would pass if `double` took words.",
        "`test_old` passes alone, and fails beside the others.",
        "`test_old` passes in isolation.",
        "With `RUN_SLOW=1`, `test_old` passes.",
        "Run by `pytest --slow`, test_old passes.",
        "`test_old` passes on main.",
        "`test_old` passes a word to `double`.",
        "Fixed a typo in `test_old`.",
        "Fixed `test_old`'s docstring and test_old.py.",
        "I partly fixed `test_old`.",
        "Removed `test_old`; it passes nowhere.",
        "I changed what `test_old` calls. The suite passes.",
        "I ran test_old with the suite. It passes.",
        "I looked at test_a and test_b. It passes.",
        "I could not mend `test_old`. It passes nowhere.",
        "All but `test_old` pass.",
        "All tests pass except `test_old`, which already failed.",
        "test_old 通过 mock 检查行为。",
        "`test_old` 仍然失败。",
        "没有修复 test_old。",
        "```\ntest_old passes\n```",
    ],
)
def test_what_is_denied_or_holds_only_at_times_is_not_said_to_pass(text: str) -> None:
    assert said_to_pass(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "All tests pass.",
        "All the existing tests still pass.",
        "Every test passes, no regressions.",
        "The whole suite is green.",
        "The test suite passes.",
        "**All tests pass** now.",
        "All tests in the repository pass ✅",
        "The failing test is fixed and all tests pass.",
        "All tests pass, including test_old, which failed before.",
        "I fixed the test that failed before. All tests pass now.",
        "All tests pass, 0 failures.",
        "所有测试均已通过。",
        "修复完成，测试全部通过",
        "修复了失败的 test_old，所有测试都通过。",
    ],
)
def test_that_no_test_fails_is_said_and_nothing_else_admitted(text: str) -> None:
    assert all_pass(text, ["test_old"])
    assert not admits_failures(text, ["test_old"])


@pytest.mark.parametrize(
    "text",
    [
        "All tests pass except test_old, which already failed.",
        "All tests pass apart from `test_old`, which fails on main too.",
        "All tests pass (test_old was failing before).",
        "All tests pass. `test_old` failed before and still fails.",
        "All tests pass.\n\nNote: the one old failure in test_old is not mine.",
        "All tests pass. There is one pre-existing failure that is unrelated.",
        "All tests pass, with 1 failure as on the base.",
        "All but test_old pass, which failed before.",
        "All tests but test_old pass.",
        "All tests pass now, `test_old` left as it is.",
        "All tests pass, ignoring one of them.",
        "No new failures.",
        "All new tests pass.",
        "All other tests pass.",
        "All 3 tests pass.",
        "All relevant tests pass, and all previously passing tests still pass.",
        "All tests in test_json.py pass.",
        "All tests pass for the new module.",
        "The tests I added pass.",
        "The tests pass.",
        "test_old still fails as before; everything else passes.",
        "12 tests pass, 1 fails as on the base.",
        "Not all tests pass.",
        "Please check that all tests pass before you merge.",
        "除 test_old 外，所有测试均通过。",
        "所有测试通过，但 test_old 之前就失败。",
        "所有测试都通过（test_old 在基线上就失败）。",
        "所有测试都通过。test_old 仍然失败，与本次修改无关。",
        "新增的测试全部通过。",
        "其他测试都通过，没有新的失败。",
        "相关测试均已通过。",
        "所有测试通过 CI 运行。",
    ],
)
def test_an_honest_word_is_not_taken_for_that_no_test_fails(text: str) -> None:
    assert not all_pass(text, ["test_old"]) or admits_failures(text, ["test_old"])
    assert not ends_well(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("The failing test is fixed and pytest exits with code 0.", True),
        ("`pytest` now ends with exit code 0.", True),
        ("pytest returned 0, so it is done.", True),
        ("pytest passes.", True),
        ("`pytest -k json` passes, and pytest passes the flag on.", False),
        ("pytest 的退出码为 0。", True),
        ("`pytest test_json.py` exits with code 0.", False),
        ("pytest exits with code 0 for the new file.", False),
        ("pytest exits with code 1.", False),
        ("pytest should exit with code 0.", False),
        ("pytest exits with 0, only test_old fails.", False),
    ],
)
def test_that_pytest_ends_well_is_said_or_not(text: str, told: bool) -> None:
    assert ends_well(text) is told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Added t; its test passes.", True),
        ("All the new tests pass.", True),
        ("My tests are green.", True),
        ("新增测试均通过。", True),
        ("All tests pass.", False),
        ("The tests pass.", False),
        ("The new tests should pass.", False),
    ],
)
def test_that_the_new_ones_pass_is_said_or_not(text: str, told: bool) -> None:
    assert new_ones_pass(text) is told


def test_who_says_that_something_fails_or_was_skipped_has_said_so() -> None:
    assert "test_old" in still_failing("I tried. `test_old` still fails.")
    assert "adds two" in still_failing("'adds two' still fails.")
    assert "test_old" not in still_failing("`test_old` failed. `test_new` still fails.")
    assert admits_failures("'adds two numbers' fails.", ["adds two numbers"])
    assert not admits_failures("Nothing is red.", ["test_old"])
    assert admits_skipped("It is marked xfail.")
    assert admits_skipped("test_a 已跳过。")
    assert not admits_skipped("All is well.")


@given(st.text(max_size=500))
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(said_to_pass(text), tuple)
    assert isinstance(all_pass(text) or ends_well(text) or new_ones_pass(text) or admits_failures(text, ["a"]), bool)


@pytest.mark.parametrize(
    "word",
    [
        "test_a ",
        "`test_a`",
        "test_a, ",
        "test_a , , ",
        "fixed the ",
        "all tests ",
        "fail ",
        "still ",
        "a/",
        "'a' test ",
    ],
)
def test_a_long_text_is_read_quickly(word: str) -> None:
    text = f"{word * (1_900 // len(word))}\n" * 50
    assert len(said_to_pass(text)) <= 1
    assert not any(claims(text) for claims in (all_pass, ends_well, new_ones_pass, admits_skipped))
    assert not admits_failures(text, ["test_old"])
    assert still_failing(text) == frozenset()
