"""What an agent says of tests that fail as they did before, or are skipped: held against the run that counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.app.checks.projects import PYTEST
from tests.app.jobs.deliveries import Told, job, verdict_of

CALC = "def double(a):\n    return a + a\n"
TESTS = "import calc\n\n\ndef test_double():\n    assert calc.double(2) == 4\n\n\n"
FAILING = f"{TESTS}def test_old():\n    assert calc.double('a') == 2\n"
BASE = {"calc.py": CALC, "conftest.py": "", "test_calc.py": FAILING}
TOUCHED = {"calc.py": f"{CALC}\n\nMORE = 1\n"}
SKIPS = "import pytest\n\n\n@pytest.mark.{}\ndef test_triple():\n    assert 2 == 7\n"
UNIT = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_double(self):\n        self.assertTrue(1)\n"
UNIT_SKIPS = "\n    @unittest.skip('later')\n    def test_triple(self):\n        self.fail()\n"
FAILS = "It says that 'test_old' passes, and it fails (as it did before)."
SKIPPED = "It says that 'test_triple' passes, and it was skipped or expected to fail."


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


async def told(
    root: Path, says: str, work: Mapping[str, str], base: Mapping[str, str], line: str = PYTEST.line
) -> Told:
    async with job(root, line, base) as at_work:
        for name, text in work.items():
            at_work.writes(name, text)
        return verdict_of(await at_work.delivers(says))


async def test_a_test_that_fails_as_before_is_not_mended_by_words(tmp_path: Path) -> None:
    says = "I fixed `test_old`; the whole suite is green. I ran mypy and the tests."
    found = await told(tmp_path, says, TOUCHED, BASE)
    every = "It says that all tests pass, and test_calc.py::test_old fails (as it did before)."
    ran = "It says that it ran mypy, and nothing in this run did."
    assert (found.state, found.missing, found.claims) == ("unproven", [], [FAILS, every, ran])


async def test_who_says_what_fails_as_before_has_said_the_truth(tmp_path: Path) -> None:
    says = "`test_double` passes; all tests pass except `test_old`, which failed before."
    found = await told(tmp_path, says, TOUCHED, BASE)
    assert (found.state, found.claims) == ("verified", [])


@pytest.mark.parametrize("mark", ["skip", "xfail"], ids=["left out", "known to fail"])
async def test_a_new_test_that_is_skipped_is_noted_and_does_not_pass(tmp_path: Path, mark: str) -> None:
    work = {**TOUCHED, "test_triple.py": SKIPS.format(mark)}
    base = {**BASE, "test_calc.py": TESTS}
    note = "'quick': new tests that were skipped or expected to fail: test_triple.py::test_triple."
    async with job(tmp_path, PYTEST.line, base) as at_work:
        for name, text in work.items():
            at_work.writes(name, text)
        said = verdict_of(await at_work.delivers("Added `test_triple`; it passes."))
        assert (said.state, said.claims) == ("unproven", [SKIPPED])
        found = verdict_of(await at_work.delivers("Added `test_triple`."))
        assert (found.state, found.claims, found.remarks) == ("verified", [], [note])


async def test_a_runner_that_names_what_it_skips_is_believed(tmp_path: Path) -> None:
    base = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": UNIT}
    work = {**TOUCHED, "tests/test_tri.py": f"{UNIT}{UNIT_SKIPS}"}
    says = "Added tests/test_tri.py; `test_triple` passes."
    found = await told(tmp_path, says, work, base, line="python3 -m unittest -v")
    assert (found.state, found.claims) == ("unproven", [SKIPPED])


async def test_a_file_with_tests_that_was_moved_is_not_one_that_nobody_has_run(tmp_path: Path) -> None:
    async with job(tmp_path, PYTEST.line, {**BASE, "test_calc.py": TESTS}) as at_work:
        (at_work.place.folder / "test_calc.py").unlink()
        at_work.writes("tests/test_calc.py", TESTS)
        found = verdict_of(await at_work.delivers("Moved the tests to tests."))
    assert not [one for one in found.remarks if "has run" in one]
