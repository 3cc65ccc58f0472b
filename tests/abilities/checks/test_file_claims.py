"""Files of which a model speaks at the end: those that are not there, and those that are as they were."""

from __future__ import annotations

import pytest

from greenroom.abilities.checks.claims import Facts, among, unproven

TREE = among(["calc.py", "new.py", "tests/test_calc.py", "README.md", "docs/a.md", "docs/b.md", "src/app.py"])
NONE = Facts(exists=TREE)
WORK = Facts(exists=TREE, changed=among(["calc.py", "tests/test_calc.py", "old.py", "new.py"]))


def missing(path: str) -> str:
    return f"It speaks of {path!r} as done, and there is no such file."


def as_it_was(path: str) -> str:
    return f"It says that {path!r} was updated, and it is as it was."


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("USAGE.md was updated.", "USAGE.md"),
        ("USAGE.md was updated, too.", "USAGE.md"),
        ("docs/usage.md was added.", "docs/usage.md"),
        ("docs/usage.md has been created.", "docs/usage.md"),
        ("**docs/usage.md** has also been added.", "docs/usage.md"),
        ("docs/usage.md and docs/more.md were added.", "docs/more.md"),
        ("The new file docs/usage.md was added.", "docs/usage.md"),
        ("Added tests for calc.py, and docs/usage.md was updated.", "docs/usage.md"),
        ("I mended calc.py and USAGE.md was updated.", "USAGE.md"),
        ("Added triple. docs/usage.md is new.", "docs/usage.md"),
        ("It is done:\n\n- calc.py: triple\n- docs/usage.md (new)", "docs/usage.md"),
        ("Added triple and documented it in docs/usage.md.", "docs/usage.md"),
        ("Documented it in `docs/usage.md`.", "docs/usage.md"),
        ("I documented the new option in docs/usage.md.", "docs/usage.md"),
        ("The option is now documented in docs/usage.md.", "docs/usage.md"),
        ("Added triple, and docs/usage.md explains it.", "docs/usage.md"),
        ("`docs/usage.md` describes the new option.", "docs/usage.md"),
        ("`tests/test_tri.py` has tests for it.", "tests/test_tri.py"),
        ("tests/test_tri.py contains three new tests.", "tests/test_tri.py"),
        ("I've rewritten docs/usage.md.", "docs/usage.md"),
        ("USAGE.md 已更新。", "USAGE.md"),
        ("docs/usage.md 已创建。", "docs/usage.md"),
        ("新文件 docs/usage.md 已添加。", "docs/usage.md"),
        ("完成了，并在 docs/usage.md 中说明。", "docs/usage.md"),
        ("在 `docs/usage.md` 中说明了用法。", "docs/usage.md"),
        ("docs/usage.md 说明了用法。", "docs/usage.md"),
    ],
)
def test_a_file_that_is_not_there_is_seen_however_it_is_said(text: str, path: str) -> None:
    assert missing(path) in unproven(text, NONE)
    assert missing(path) in unproven(text, WORK)


@pytest.mark.parametrize(
    "text",
    [
        "Updated `README.md` and `calc.py`.",
        "I updated README.md and calc.py.",
        "I updated README.md with more words and changed calc.py.",
        "I updated README.md with an example and changed calc.py.",
        "I have also modified the file README.md.",
        "I changed calc.py and extended README.md.",
        "Added `triple`, updated `README.md`.",
        "I've rewritten `README.md`.",
        "1. Edited `README.md`.",
        "README.md was updated.",
        "README.md and calc.py were updated.",
        "`README.md` has been changed accordingly.",
        "Changed files:\n\n- `calc.py`: triple\n- `README.md`: how it is used",
        "**Changed:** `calc.py`, `README.md`",
        "Files changed: calc.py, README.md",
        "Documented it in `README.md`.",
        "更新了 `README.md` 和 `calc.py`。",
        "已修改 README.md。",
        "README.md 已更新。",
        "在 README.md 中说明了用法。",
    ],
)
def test_what_is_said_to_be_changed_and_is_as_it_was_is_not_so(text: str) -> None:
    assert unproven(text, WORK) == (as_it_was("README.md"),)
    assert unproven(text, NONE) == (), "nobody knows what is different"


def test_a_file_that_is_said_to_be_gone_and_is_there_is_seen_in_either_voice() -> None:
    told = ("It says that 'docs/a.md' was deleted, and it is still there.",)
    assert unproven("docs/a.md was deleted.", WORK) == unproven("docs/a.md 已删除。", WORK) == told
    assert unproven("docs/z.md was deleted.", WORK) == ()
    assert unproven("The link in docs/a.md was removed.", WORK) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Results are written to out.csv.",
        "For example, docs/usage.md was added by somebody else.",
        "Example: I created docs/usage.md.",
        "The table is written to `out/table.csv`, and I added a test for it.",
        "out/report.json was created by the command at run time.",
        "`out/report.json` was written and holds 3 rows.",
        "I ran the demo, and out/report.md was created.",
        "After it ran, out/log.md was updated.",
        "config.toml is read from the home folder.",
        "I added a loader that reads `settings.yaml`.",
        "I added support for files such as `notes.md`.",
        "I changed the loader: `notes.md` is skipped now.",
        "The test writes `a.md` into a temporary folder and adds a line to it.",
        "If docs/usage.md was added, link it.",
        "Added triple; docs/usage.md is not there yet.",
        "docs/usage.md would explain it.",
        "The page at https://example.org/docs/usage.md explains it.",
        "~/notes.md was updated, and so was /etc/app.md.",
        "$HOME/a.md was updated.",
        "The format, documented in docs/none.md upstream, is what it was.",
        "The tests of lib/none.py were updated in my head.",
        "docs/old.md was added in 2.0 and taken away in 3.1.",
        "Moved `old.py` to `new.py` and updated the imports.",
        "I changed `old.py` to `new.py`.",
        "程序在 out/log.md 中记录结果。",
        "状态会写入 out/state.json。",
    ],
)
def test_what_a_program_does_and_what_is_elsewhere_is_no_claim(text: str) -> None:
    assert unproven(text, WORK) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Added tests for `README.md`.",
        "Updated the docs of `src/app.py`.",
        "`src/app.py` now handles x.",
        "The tests of src/app.py were updated.",
        "Tests for `src/app.py` and `docs/a.md` were updated.",
        "Updated `src/app.py` tests.",
        "Updated `src/app.py` and `docs/a.md` tests.",
        "I changed `src/app.py` to be loaded once, in `calc.py`.",
        "Updated calc.py; README.md stays as it was.",
        "Changed `calc.py`, `README.md` still holds.",
        "Changed `calc.py`, `README.md` and `src/app.py` are untouched.",
        "Changed files:\n\n- `calc.py`: triple\n- `README.md`: unchanged",
        "I first changed README.md, and then put it back.",
        "As you changed `README.md`, I have read it again.",
        "The commit that changed `README.md` has another reason.",
        "README.md was updated in 2.0, so it is fine.",
        "Only `calc.py` was changed.",
        "Apart from README.md, calc.py and tests/test_calc.py were updated.",
        "I updated `calc.py` to match `README.md`, and README.md explains why.",
        "Files read or changed: `calc.py`, `README.md`.",
        "Read/changed files: `calc.py`, `README.md`.",
        "The rule is in fixed-point.rst of the library, which calc.py follows.",
        "I looked at README.md and changed calc.py.",
        "I updated calc.py and README.md's example is still right.",
        "The option is documented in README.md.",
        "`--json` is implemented in calc.py and documented in README.md.",
        "I added `triple` to `calc.py`; its test in `tests/test_calc.py` covers it.",
        "calc.py was updated, and test_calc.py has a test for it.",
        "更新了 `src/app.py` 的测试。",
        "src/app.py 的测试已更新。",
        "calc.py 已更新，README.md 无需修改。",
        "在 README.md 中说明的用法没有变。",
    ],
)
def test_files_that_are_only_spoken_of_may_be_as_they_were(text: str) -> None:
    assert unproven(text, WORK) == ()
