"""What a model claims at the end, held against the facts; ordinary prose is no claim."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.claims import Facts, among, unproven

HERE = among(["src/app/export.py", "tests/test_export.py", "README.md"])
NONE = Facts(exists=HERE, tests=("tests/test_export.py::test_json", "tests/test_export.py::test_csv[a]"))
CLEAN = Facts(exists=HERE, tests=NONE.tests, passed=12)
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
        ("Removed `README.md`.", "It says that 'README.md' was deleted, and it is still there."),
        ("Added `test_yaml` and `test_json`.", "It speaks of the test 'test_yaml', and no such test ran."),
        ("All tests pass, no regressions.", NO_PROOF),
        ("Done. The test suite is green.", NO_PROOF),
        ("I ran pytest: all 12 unit tests are passing now.", NO_PROOF),
        ("所有测试均已通过。", NO_PROOF),
        ("测试全部通过", NO_PROOF),
        ("5 tests passed.", "It says that 5 tests pass, and no clean run of the checks on this tree proves it."),
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
        "Removed `old.py`.",
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


def test_names_of_tests_are_left_alone_where_nobody_knows_them() -> None:
    assert unproven("Added `test_yaml`.", Facts(exists=HERE)) == ()


@given(st.text(max_size=500))
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(unproven(text, NONE), tuple)


def test_a_long_text_is_read_quickly() -> None:
    assert unproven("the the tests " * 20_000, NONE) == ()
    assert unproven("`a" * 50_000 + "all " * 20_000, NONE) == ()
