"""Checks that are really run: pytest, make and node, on the base and then on what work makes of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from greenroom.abilities.checks.comparing import in_a_sentence
from greenroom.adapters.commands.plain import PlainCommands
from greenroom.app.checks.checker import NO_REPORT, ProjectChecks, base_of
from greenroom.app.checks.folder import FolderLook
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import AS_A_WHOLE, Check, Checked, Report
from tests.app.checks.projects import PYTEST, RUN, Shelf, checker, lies_in, name_of, tree_of, written

APP = "def add(a, b):\n    return a + b\n"
TESTS = """import app, pytest
def test_add(): assert app.add(1, 2) == 3
def test_old(): assert app.add(1, 1) == 3
@pytest.mark.parametrize("x", ["a - b", "[c]"])
def test_odd(x): assert x
"""
ALONE = " ".join(f"-p no:{name}" for name in ("xdist", "hypothesispytest", "asyncio", "inline_snapshot"))
"""Plugins of ours, which take a second to load, are nothing to that project."""

SET_UP = f"[tool.pytest.ini_options]\naddopts = '-q {ALONE}'\n"
SMALL = {"pyproject.toml": SET_UP, "app.py": APP, "tests/test_app.py": TESTS}


def only(report: Report) -> Checked:
    (one,) = report.checks
    return one


async def test_only_what_the_work_broke_is_new(tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    shelf = Shelf()
    async with checker(tmp_path) as checks:
        base = await checks.baseline(shelf)
        assert in_a_sentence(base) == "pytest: 3 pass, 1 already fails"
        written(tmp_path, {"app.py": APP.replace("+", "-")})
        report = await checks.run((), shelf)
        again = ProjectChecks(
            checks.checks, PlainCommands(tmp_path), tree_of(tmp_path), base=await base_of(base, shelf.fetch)
        )
        same = await again.run(["none of this name"], shelf)
    one = only(report)
    assert one.compared is not None
    assert (one.outcome, one.exit, one.clean, one.steady) == ("failed", 1, False, True)
    assert (one.compared.new, one.compared.old) == (("tests/test_app.py::test_add",), ("tests/test_app.py::test_old",))
    assert one.tree == name_of(tmp_path) != only(base).tree
    assert "assert -1 == 3" in one.excerpt
    assert b"test_add" in shelf.blobs[one.output]
    assert b"<testsuite" not in shelf.blobs[one.output]
    assert "<testsuite" not in shelf.shown
    assert "1 failed, 3 passed" in shelf.shown
    assert same.checks == ()
    assert lies_in(tmp_path) == {"pyproject.toml", "app.py", "tests", "test_app.py"}


async def test_what_was_mended_deleted_skipped_and_added_is_told_apart(tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    shelf = Shelf()
    async with checker(tmp_path, PYTEST) as checks:
        await checks.baseline(shelf)
        changed = TESTS.replace("def test_old(): assert app.add(1, 1) == 3\n", "").replace(
            "def test_add", "@pytest.mark.skip\ndef test_add"
        )
        written(tmp_path, {"tests/test_app.py": changed + "def test_new(): assert True\n"})
        one = only(await checks.run((), shelf)).compared
    assert one is not None
    assert one.gone == ("tests/test_app.py::test_old",)
    assert one.skipped == ("tests/test_app.py::test_add",)
    assert one.relieved == ("tests/test_app.py::test_old",)
    assert (one.new, one.fewer) == ((), 1)


async def test_a_test_that_fails_once_is_flaky_and_not_new(tmp_path: Path) -> None:
    flag = tmp_path / "outside" / "flag"
    root = written(tmp_path / "project", {**SMALL, "tests/test_app.py": "def test_a(): pass\n"})
    shelf = Shelf()
    async with checker(root, PYTEST) as checks:
        await checks.baseline(shelf)
        body = (
            f"import os, pathlib\nflag = pathlib.Path({str(flag)!r})\n"
            "def test_a():\n    there = flag.exists()\n    flag.parent.mkdir(exist_ok=True)\n    flag.touch()\n"
            "    assert there\ndef test_b(): assert False\n"
        )
        written(root, {"tests/test_app.py": body})
        one = only(await checks.run((), shelf)).compared
    assert one is not None
    assert (one.flaky, one.new) == (("tests/test_app.py::test_a",), ("tests/test_app.py::test_b",))


async def test_no_file_fails_by_chance(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    root = written(tmp_path / "project", {**SMALL, "tests/test_app.py": "def test_a(): pass\n"})
    async with checker(root, PYTEST) as checks:
        await checks.baseline(Shelf())
        once = (
            f"import pathlib\nflag = pathlib.Path({str(flag)!r})\nif not flag.exists():\n    flag.touch()\n    1 / 0\n"
        )
        written(root, {"tests/test_app.py": f"{once}def test_a(): pass\n"})
        one = only(await checks.run((), Shelf()))
    assert one.compared is not None
    assert (one.compared.flaky, one.compared.new) == ((), ("tests/test_app.py",))


async def test_what_fails_beside_the_others_every_time_is_not_flaky_though_it_passes_alone(tmp_path: Path) -> None:
    tests = "import app\ndef test_a(): assert app.total([1, 2]) == 3\ndef test_b(): assert app.total([5]) == 5\n"
    total = "def total(items):\n    return sum(items)\n"
    written(tmp_path, {"pyproject.toml": SET_UP, "app.py": total, "tests/test_app.py": tests})
    async with checker(tmp_path, PYTEST) as checks:
        await checks.baseline(Shelf())
        leaks = "seen = []\ndef total(items):\n    seen.extend(items)\n    return sum(seen)\n"
        written(tmp_path, {"app.py": leaks})
        one = only(await checks.run((), Shelf()))
    assert one.compared is not None
    assert (one.compared.flaky, one.compared.new, one.clean) == ((), ("tests/test_app.py::test_b",), False)


async def test_a_file_that_cannot_be_imported_fails_by_its_name(tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    async with checker(tmp_path, PYTEST) as checks:
        await checks.baseline(Shelf())
        written(tmp_path, {"app.py": "def add(:\n"})
        one = only(await checks.run((), Shelf()))
    assert one.compared is not None
    assert (one.compared.new, one.compared.gone, one.exit) == (("tests/test_app.py",), (), 2)


async def test_a_check_that_cannot_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "a scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    written(tmp_path, {"tests/test_none.py": "x = 1\n"})
    missing = Check(name="missing", line="no-such-program-here", kind="test", why="w.")
    late = Check(name="late", line="sleep 60", kind="test", why="w.", seconds=1)
    elsewhere = evolve(missing, name="elsewhere", folder="nowhere")
    async with checker(tmp_path, PYTEST, missing, late, elsewhere) as checks:
        report = await checks.run((), Shelf())
    told = {one.check: one.reason for one in report.checks}
    assert all(one.outcome == "could_not_run" for one in report.checks)
    assert told["pytest"] == "It found no tests."
    assert told["missing"].startswith("A program is missing: ")
    assert lies_in(scratch) == set()  # also what was stopped leaves nothing behind
    assert told["late"] == "It did not come to an end within 1 s."
    assert "There is no folder 'nowhere'" in told["elsewhere"]


async def test_a_check_that_changes_files_is_no_proof(tmp_path: Path) -> None:
    fixer = Check(name="fixer", line="echo more >> app.py", kind="lint", why="w.")
    written(tmp_path, SMALL)
    async with checker(tmp_path, fixer) as checks:
        one = only(await checks.run((), Shelf()))
    assert (one.outcome, one.steady, one.clean) == ("passed", False, False)


async def test_make_runs_a_recipe_and_a_changed_one_has_another_digest(tmp_path: Path) -> None:
    recipe = f"test:\n\t{RUN} -m pytest tests\n"
    written(tmp_path, {**SMALL, "Makefile": recipe})
    shelf = Shelf()
    make = Check(name="make test", line="make test", kind="test", why="Makefile has the target 'test'.")
    (tmp_path / "pyproject.toml").unlink()
    async with checker(tmp_path, make) as checks:
        base = only(await checks.baseline(shelf))
        assert (base.passed, base.failing) == (3, 1)  # the report is made inside of make too
        written(tmp_path, {"Makefile": "test:\n\ttrue\n"})
        one = only(await checks.run((), shelf))
        written(tmp_path, {"Makefile": "other:\n\ttrue\n"})
        gone = only(await checks.run((), shelf))
    assert (one.outcome, one.exit, one.reason) == ("could_not_run", 0, NO_REPORT)
    assert one.digest != base.digest
    assert (gone.outcome, gone.compared and gone.compared.new) == ("could_not_run", (AS_A_WHOLE,))


SPEAKS = """import sys
print("FAILED tests/test_app.py::test_old - assert 2 == 3")
print("1 failed, 3 passed in 0.01s")
sys.exit(1)
"""


async def test_who_speaks_for_a_runner_and_makes_no_report_has_not_run(tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    async with checker(tmp_path, PYTEST) as checks:
        assert only(await checks.baseline(Shelf())).failing == 1
        written(tmp_path, {"app.py": "def add(a, b):\n    return 0\n", "pytest.py": SPEAKS})
        one = only(await checks.run((), Shelf()))
    assert (one.outcome, one.clean, one.reason) == ("could_not_run", False, NO_REPORT)


async def test_a_copy_in_which_nothing_can_be_run_says_why_for_each_check(tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    async with checker(tmp_path, PYTEST) as checks:
        await checks.baseline(Shelf())
        commands = PlainCommands(tmp_path)
        beside = checks.elsewhere(commands, tree_of(tmp_path), FolderLook(tmp_path), unable="`npm ci` failed.")
        report = await beside.run((), Shelf())
        commands.close()
    assert (report.fresh, only(report).outcome, only(report).reason) == (True, "could_not_run", "`npm ci` failed.")


async def test_a_pytest_that_hides_its_end_is_seen_through(tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    liar = evolve(PYTEST, line=f"{PYTEST.line} || true")
    async with checker(tmp_path, liar) as checks:
        one = only(await checks.baseline(Shelf()))
    assert (one.exit, one.outcome, one.failing) == (0, "failed", 1)


async def test_a_pytest_without_reports_is_run_without(tmp_path: Path) -> None:
    ini = "[tool.pytest.ini_options]\naddopts = '-p no:junitxml -rA'\n"
    written(tmp_path, {**SMALL, "pyproject.toml": ini})
    async with checker(tmp_path, PYTEST) as checks:
        one = only(await checks.baseline(Shelf()))
    assert (one.outcome, one.passed, one.failing) == ("failed", 3, 1)


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
async def test_node_tests_are_named_one_by_one(tmp_path: Path) -> None:
    body = (
        "const test = require('node:test'); const a = require('node:assert');\n"
        "test('adds', () => a.equal(1 + 1, 2));\ntest('takes', () => a.equal(2 - 1, 1));\n"
    )
    written(tmp_path, {"package.json": '{"scripts": {"test": "node --test"}}', "test/a.test.js": body})
    async with checker(tmp_path) as checks:
        assert [one.line for one in checks.checks] == ["npm test"]
        base = only(await checks.baseline(Shelf()))
        written(tmp_path, {"test/a.test.js": body.replace("2 - 1", "2 - 2")})
        one = only(await checks.run((), Shelf()))
    assert (base.outcome, base.passed) == ("passed", 2)
    assert one.compared is not None
    assert "takes" in one.compared.new
    assert one.compared.gone == ()


async def test_what_was_kept_of_the_base_has_to_be_readable() -> None:
    async def fetch(_: str) -> bytes:
        return b"{"

    one = Checked(check="c", kind="test", digest="d", outcome="passed", tests="b")
    with pytest.raises(WorldFault, match="'c' said on the base cannot be read again"):
        await base_of(Report(tree="t", checks=(one,)), fetch)


async def test_without_a_base_whatever_fails_counts_but_for_what_is_flaky(tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    flaky = Check(
        name="flaky",
        line=f"test -e {tmp_path}/../{tmp_path.name}.flag || {{ touch {tmp_path}/../{tmp_path.name}.flag; false; }}",
        kind="test",
        why="w.",
    )
    lint = Check(name="lint", line="echo 'a.py:1:1: E1 no'; false", kind="lint", why="w.")
    async with checker(tmp_path, flaky, lint) as checks:
        first, second = (await checks.run((), Shelf())).checks
    assert first.compared is not None
    assert (first.compared.flaky, first.compared.new, first.clean) == ((AS_A_WHOLE,), (), True)
    assert (second.outcome, second.clean, second.compared) == ("failed", False, None)


async def test_what_a_check_of_ones_own_stands_for_is_bound_too(tmp_path: Path) -> None:
    written(tmp_path, {"Makefile": "test:\n\tgrep -q good app.txt\n", "app.txt": "good"})
    own = Check(name="unit", line="make test", kind="test", why="You said so.", own=True)
    async with checker(tmp_path, own) as checks:
        base = only(await checks.baseline(Shelf()))
        assert only(await checks.run((), Shelf())).digest == base.digest
        written(tmp_path, {"Makefile": "test:\n\ttrue\n", "app.txt": "bad"})
        one = only(await checks.run((), Shelf()))
    assert (one.outcome, one.digest == base.digest) == ("passed", False)
