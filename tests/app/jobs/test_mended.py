"""A test that failed on the base and passes now: mended is only what was mended in the sources, and a runner that only
counts what fails is held to its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.app.checks.projects import PYTEST
from tests.app.jobs.deliveries import Told, job, verdict_of

BAD = "def add(a, b):\n    return a - b\n"
GOOD = BAD.replace("-", "+")
TEST = "import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n\n\n"
TEST += "def test_none():\n    assert calc.add(0, 0) == 0\n"
PATCHES = "import calc\n\ncalc.add = lambda a, b: a + b\n\n\ndef test_more():\n    assert calc.add(1, 1) == 2\n"
MORE = "import calc\n\n\ndef test_more():\n    assert calc.add(1, 0) == 1\n"
PYTHON = {"calc.py": BAD, "conftest.py": "", "test_calc.py": TEST}
COUNTS = (
    'f=0; p=0; for t in unit/*.sh; do if sh $t; then p=$((p+1)); else f=$((f+1)); fi; done; echo "Tests: $f failed, '
    '$p passed, $((f+p)) total"; test $f = 0'
)
SCRIPTS = {f"unit/{word}.sh": f"grep -q {word} app.js\n" for word in ("alpha", "beta", "never")}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


async def found(root: Path, line: str, base: Mapping[str, str], work: Mapping[str, str]) -> Told:
    async with job(root, line, base) as at_work:
        for name, text in work.items():
            at_work.writes(name, text)
        return verdict_of(await at_work.delivers("It is there."))


@pytest.mark.parametrize(
    "work",
    [
        {"test_a.py": PATCHES},
        {"test_a.py": PATCHES, "notes.md": "x\n"},
        {"test_calc.py": f"{TEST}\n\n_X = setattr(calc, 'add', lambda a, b: a + b)\n"},
    ],
    ids=["a new test file", "beside something else", "a line of an old one"],
)
async def test_tests_alone_mend_nothing(tmp_path: Path, work: Mapping[str, str]) -> None:
    told = await found(tmp_path, PYTEST.line, PYTHON, work)
    assert (told.state, told.changed) == ("unproven", [])
    (missing,) = told.missing
    assert missing == (
        "'quick': failed on the base, and still does with the test files put back as they were: "
        "test_calc.py::test_add. Tests were changed there, and not what they test."
    )


@pytest.mark.parametrize("work", [{"calc.py": GOOD}, {"calc.py": GOOD, "test_more.py": MORE}], ids=["alone", "tested"])
async def test_what_is_mended_in_the_sources_is_mended(tmp_path: Path, work: Mapping[str, str]) -> None:
    told = await found(tmp_path, PYTEST.line, PYTHON, work)
    assert (told.state, told.missing, told.changed) == ("verified", [], [])


async def test_a_test_that_is_only_added_beside_one_that_fails_is_work(tmp_path: Path) -> None:
    told = await found(tmp_path, PYTEST.line, PYTHON, {"test_more.py": MORE})
    assert (told.state, told.remarks) == ("verified", ["'quick': already fails on the base: test_calc.py::test_add."])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("alpha\n", "'quick' fails: a test that it does not name (2)."),
        ("alpha, beta; more\n", "'quick' fails on the base and now, and does not name all tests that fail"),
        ("beta, never\n", "'quick' fails on the base and now, and does not name all tests that fail"),
    ],
    ids=["one more fails", "as many", "another one"],
)
async def test_a_runner_that_only_counts_proves_nothing_beside_an_old_failure(
    tmp_path: Path, text: str, told: str
) -> None:
    now = await found(tmp_path, COUNTS, {"app.js": "alpha, beta\n", **SCRIPTS}, {"app.js": text})
    assert now.state == "unproven"
    assert now.missing[0].startswith(told)


async def test_a_runner_that_only_counts_says_that_all_is_mended(tmp_path: Path) -> None:
    told = await found(tmp_path, COUNTS, {"app.js": "alpha, beta\n", **SCRIPTS}, {"app.js": "alpha, beta, never\n"})
    assert (told.state, told.missing, told.changed) == ("verified", [], [])


async def test_where_nobody_counts_a_test_that_is_deleted_is_lost(tmp_path: Path) -> None:
    line = "for t in tests/test_*.sh; do sh $t || exit 1; done"
    base = {"tests/test_a.sh": "grep -q good app.py\n", "tests/test_b.sh": "grep -q . app.py\n"}
    async with job(tmp_path, line, base) as work:
        work.writes("app.py", "good, red\n")
        (work.place.folder / "tests/test_a.sh").unlink()
        told = verdict_of(await work.delivers("It is red."))
    assert told.state == "unproven"
    assert told.changed[0] == "tests/test_a.sh was deleted, and no check counts its tests."
