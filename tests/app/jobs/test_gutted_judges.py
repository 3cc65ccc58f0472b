"""Work that breaks something and what would have found it: no way to hide the one behind the other is verified."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.core.ports.checks import NAMED
from tests.app.checks.projects import PYTEST
from tests.app.jobs.deliveries import Told, job, verdict_of

TEST = {"test_a.py": "def test_a():\n    assert open('app.py')\n", "conftest.py": ""}
VERIFY = {"ci/verify.sh": "grep -q good app.py\n"}
PROGRAM = {"prog.sh": "echo good\n", "zz.sh": "sh prog.sh | grep -q good\n"}
GUTTED = {"prog.sh": "echo bad\n", "zz.sh": "true\n"}
FLOOR = """
def pytest_runtestloop(session):
    session.config.low = {low}


def pytest_sessionfinish(session):
    session.exitstatus = int(session.exitstatus or session.config.low)


def pytest_terminal_summary(terminalreporter, config):
    if config.low:
        terminalreporter.write_line("FAIL Required test coverage of 90% not reached. Total coverage: 61.50%")
"""
"""A plugin that fails like pytest-cov: what is there has to be named by a test."""

NAMED_BY_TESTS = FLOOR.format(
    low="not all(one.stem in ''.join(t.read_text() for t in session.path.glob('test_*')) for one in "
    "session.path.glob('part_*.py'))"
)
PART = {"part_b.py": "B = 1\n", "test_b.py": "import part_b\n\n\ndef test_b():\n    assert part_b.B\n"}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")


async def found(root: Path, line: str, base: Mapping[str, str], work: Mapping[str, str]) -> Told:
    async with job(root, line, base) as at_work:
        for name, text in work.items():
            at_work.writes(name, text)
        return verdict_of(await at_work.delivers("It is better."))


@pytest.mark.parametrize("line", ["python3 -m pytest && sh ci/verify.sh", "echo '3 passed in 0.1s'; sh ci/verify.sh"])
async def test_tests_that_pass_do_not_clear_a_script_beside_them(tmp_path: Path, line: str) -> None:
    work = {"app.py": "broken\n", "ci/verify.sh": "true\n"}
    told = await found(tmp_path, line, {**TEST, **VERIFY}, work)
    assert (told.state, told.changed) == ("unproven", ["ci/verify.sh, which 'quick' runs or uses, was changed."])


async def test_a_floor_of_coverage_that_old_tests_do_not_reach_alone_is_nothing_against_the_work(
    tmp_path: Path,
) -> None:
    told = await found(tmp_path, "python3 -m pytest", {**TEST, "conftest.py": NAMED_BY_TESTS}, PART)
    assert (told.state, told.missing, told.changed) == ("verified", [], [])


@pytest.mark.parametrize(
    ("more", "work"),
    [
        ({"run.sh": "sh zz.sh\n"}, {**GUTTED, "run.sh": "true\n"}),
        ({"a.sh": "true\n"}, {**GUTTED, "a.sh": "true # tidy\n"}),
    ],
    ids=["judges that call each other", "beside one that is harmless"],
)
async def test_judges_that_were_gutted_together_are_found(
    tmp_path: Path, more: Mapping[str, str], work: Mapping[str, str]
) -> None:
    line = " && ".join(f"sh {name}" for name in ("prog.sh", *more, *(() if "run.sh" in more else ("zz.sh",))))
    told = await found(tmp_path, line, {**PROGRAM, **more}, work)
    assert (told.state, len(told.changed)) == ("unproven", len(work))


async def test_beside_many_that_may_be_the_work_nothing_is_cleared_and_it_is_said_why(tmp_path: Path) -> None:
    more = {f"{name}.sh": "true\n" for name in "ab"}
    line = " && ".join(f"sh {name}" for name in (*more, *PROGRAM))
    told = await found(tmp_path, line, {**PROGRAM, **more}, {**GUTTED, **dict.fromkeys(more, "true # tidy\n")})
    assert told.state == "unproven"
    assert told.changed[-1] == (
        "4 files that checks run may be judges or the work itself (a.sh, b.sh, prog.sh, zz.sh); each way to put some "
        "of them back is tried for 3 at most. Change fewer of them in one run, or look at the diff."
    )


async def test_harmless_changes_of_three_are_cleared(tmp_path: Path) -> None:
    line = " && ".join(f"sh {name}" for name in ("a.sh", *PROGRAM))
    work = {name: f"{text.rstrip()} # tidy\n" for name, text in {"a.sh": "true\n", **PROGRAM}.items()}
    told = await found(tmp_path, line, {"a.sh": "true\n", **PROGRAM}, work)
    assert (told.state, told.changed, len(told.remarks)) == ("verified", [], 3)


async def test_one_of_very_many_old_failures_that_only_its_test_mends_is_not_mended(tmp_path: Path) -> None:
    tests = [f"def test_{number:03}():\n    assert False\n" for number in range(NAMED + 2)]
    ok = "def test_ok():\n    pass\n"
    base = {"test_a.py": ok + "".join(tests), "conftest.py": ""}
    mended = ok + "".join(tests[:-1]) + tests[-1].replace("False", "True")
    told = await found(tmp_path, f"{PYTEST.line} -q --tb=no", base, {"app.py": "other\n", "test_a.py": mended})
    assert told.state == "unproven"
    assert told.changed == [f"Existing tests in test_a.py were changed: test_{NAMED + 1}."]
    assert told.remarks[0].endswith(f"test_a.py::test_004 and at least {NAMED - 5} more.")
