"""Files that take the place of a checker."""

import pytest

from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.closure import closure
from greenroom.abilities.checks.meddling import meddled, run_by_checks
from greenroom.abilities.checks.shadowing import shadowed
from greenroom.core.ports.checks import Check
from tests.abilities.checks.shelves import Table


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("pytest.py", "pytest"),
        ("pytest/__main__.py", "pytest"),
        ("packages/one/_pytest/config.py", "_pytest"),
        ("argparse.py", "argparse"),
        ("src/json/__init__.py", "json"),
        ("coverage.cpython-311-aarch64-linux-gnu.so", "coverage"),
        ("app/json.py", ""),
        ("py/app.py", ""),
        ("code/readme.txt", ""),
        ("test/helper.py", ""),
        ("pytest.md", ""),
        ("app/models.py", ""),
    ],
)
def test_a_module_in_the_place_of_another_is_known_by_its_path(path: str, module: str) -> None:
    assert shadowed(path) == module
    assert bool(meddled([Changed(path=path, after=b"x")])) or not module


def test_who_adds_such_a_module_has_meddled_and_who_works_on_one_that_was_there_has_not() -> None:
    (found,) = meddled([Changed(path="pytest.py", before=None, after=b"x")])
    assert found.said == "pytest.py, which takes the place of 'pytest' when checks run, was added."
    assert meddled([Changed(path="pytest.py", before=b"x", after=b"y")]) == ()


@pytest.mark.parametrize(
    ("means", "found"),
    [
        ("sh tools/check.sh", True),
        ("@./tools/check.sh --all", True),
        ("cd app && bash tools/check.sh; true", False),
        ("cd app && bash ../tools/check.sh; true", True),
        ("grep -q x tools/check.sh", True),
        ("sh other/tools/check.sh", False),
        ("sh tools/check.shell", False),
    ],
)
def test_a_script_that_a_check_runs_is_found_in_its_line(means: str, found: bool) -> None:
    check = Check(name="make test", line="make test", kind="test", why="Makefile has it.", means=means)
    files = {"app.py": "", "tools/check.sh": "true", "tools/check.shell": "", "other/tools/check.sh": ""}
    changes = [Changed(path=one, before=b"1", after=b"2") for one in ("app.py", "tools/check.sh")]
    assert bool(run_by_checks(changes, closure([check], Table(files)))) == found
