"""What a model claims at the end, held against the facts; ordinary prose is no claim."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.claims import Facts, among, unproven
from greenroom.core.base.records import evolve

HERE = among(["src/app/export.py", "tests/test_export.py", "README.md"])
NONE = Facts(exists=HERE)
CLEAN = Facts(exists=HERE, passed=12)
NO_PROOF = "It says that all tests pass, and no clean run of the checks on this tree proves it."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "I created `src/app/json_export.py`.",
            "It speaks of 'src/app/json_export.py' as done, and there is no such file.",
        ),
        (
            "I changed:\n\n- `docs/usage.md`: more words",
            "It speaks of 'docs/usage.md' as done, and there is no such file.",
        ),
        ("新增了 `src/报告.py`，并更新了文档。", "It speaks of 'src/报告.py' as done, and there is no such file."),
        ("Updated `cli.py:40`, so it no longer fails.", "It speaks of 'cli.py' as done, and there is no such file."),
        ("I wrote docs/usage.md.", "It speaks of 'docs/usage.md' as done, and there is no such file."),
        (
            "I added tests to tests/test_more.py and updated README.md.",
            "It speaks of 'tests/test_more.py' as done, and there is no such file.",
        ),
        ("Created a new file usage.md, and that is it.", "It speaks of 'usage.md' as done, and there is no such file."),
        (
            "I updated README.md, docs/a.md and docs/b.md.",
            "It speaks of 'docs/b.md' as done, and there is no such file.",
        ),
        ("I changed:\n\n- src/none.py: more words", "It speaks of 'src/none.py' as done, and there is no such file."),
        ("新增了文件docs/usage.md。", "It speaks of 'docs/usage.md' as done, and there is no such file."),
        ("I deleted README.md.", "It says that 'README.md' was deleted, and it is still there."),
        ("In this change I removed `README.md`.", "It says that 'README.md' was deleted, and it is still there."),
        ("删除了 `README.md`。", "It says that 'README.md' was deleted, and it is still there."),
        ("Removed `README.md`.", "It says that 'README.md' was deleted, and it is still there."),
        ("All tests pass, no regressions.", NO_PROOF),
        ("Done. The test suite is green.", NO_PROOF),
        ("I ran pytest: all 12 unit tests are passing now.", NO_PROOF),
        ("所有测试均已通过。", NO_PROOF),
        ("测试全部通过", NO_PROOF),
        ("5 tests passed.", "It says that 5 tests pass, and no clean run of the checks on this tree proves it."),
        (
            "tests/test_a.py: 14 passed",
            "It says that 14 tests pass, and no clean run of the checks on this tree proves it.",
        ),
        ("12 个测试通过。", "It says that 12 tests pass, and no clean run of the checks on this tree proves it."),
    ],
)
def test_a_claim_that_nothing_proves_is_named(text: str, told: str) -> None:
    assert told in unproven(text, NONE)


@pytest.mark.parametrize(
    "text",
    [
        "I changed `export.py` and `app/export.py`, and added `test_json` to `tests/test_export.py`.",
        "Not all tests pass yet.",
        "Please make sure that all tests pass before you merge.",
        "If all tests pass, apply it.",
        "Once 3 tests pass, go on.",
        "I did not touch `setup.py`, and there is no `pytest.ini`.",
        "You can create `config.toml` if you like.",
        "I would add `docs/later.md` in another change.",
        "It uses `json.dumps` and `os.path`; I added `args.json` handling.",
        "I added a call of `parser.parse_args` and changed `self.rows`.",
        "```\nI created `nowhere.py` and all tests pass\n```",
        "See `docs/none.md` for more.",
        "I added Node.js support and updated the handling of Next.js pages.",
        "I changed the loader, so that config.yaml is read from the home folder.",
        "Results are written to out/result.json, and a copy is created in out/copy.json.",
        "I added a link to https://example.org/docs/usage.md and to example.org/more.md.",
        "I added a helper that reads settings.yaml.",
        "I wrote app/export.py and README.md.",
        "I have not created docs/usage.md.",
        "Removed `old.py`.",
        "I removed `parse` from `app/export.py` and README.md; the rest is as it was.",
        "Deleted the dead branch in `app/export.py`.",
        "从 `app/export.py` 中删除了多余的代码。",
        "删除了 `app/export.py` 中的旧代码。",
        "The 2 passed to the function are counted from zero.",
        "没有修改 `setup.py`。",
        "如果所有测试通过，就可以合并。",
        "Should I add `more.py`?",
        "",
    ],
)
def test_ordinary_prose_is_no_claim(text: str) -> None:
    assert unproven(text, NONE) == ()


def test_what_a_clean_run_proves_may_be_said() -> None:
    assert unproven("All tests pass: 12 tests passed.", CLEAN) == ()
    assert unproven("13 tests pass.", CLEAN) == ("It says that 13 tests pass; in the run that counts it were 12.",)


def test_where_no_check_runs_tests_nobody_knows_that_they_pass() -> None:
    linted = evolve(CLEAN, passed=0, tested=False)
    said = ("It says that all tests pass, and none of the checks runs tests.",)
    assert unproven("All tests pass.", linted) == unproven("所有测试都通过。", linted) == said
    assert unproven("All checks pass. Not all tests pass.", linted) == ()


COUNTED = Facts(exists=HERE, passed=12, added=2)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("I added 3 tests.", 3),
        ("Wrote five new unit tests for it.", 5),
        ("4 new tests were added.", 4),
        ("新增了 3 个测试。", 3),
        ("编写了五个单元测试。", 5),
    ],
)
def test_more_tests_than_are_new_were_not_added(text: str, number: int) -> None:
    told = f"It says that {number} tests were added; in the run that counts 2 are new."
    assert unproven(text, COUNTED) == (told,)
    assert unproven(text, Facts(exists=HERE, passed=12)) == (), "nobody has counted"


@pytest.mark.parametrize("text", ["I added 2 tests.", "I added three test files.", "I would have added 9 tests."])
def test_tests_that_are_there_or_were_only_thought_of_may_be_spoken_of(text: str) -> None:
    assert unproven(text, COUNTED) == ()


@given(st.text(max_size=500))
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(unproven(text, NONE), tuple)


def test_a_long_text_is_read_quickly() -> None:
    assert unproven("the the tests " * 20_000, NONE) == ()
    assert unproven("`a" * 50_000 + "all " * 20_000, NONE) == ()
    assert unproven("added " + "a/" * 50_000, NONE) == ()
    assert unproven("added the " * 10_000, NONE) == ()
