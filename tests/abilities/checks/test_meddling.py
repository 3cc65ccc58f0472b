"""What the work changed of what judges it; tests that are only added are work like any other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.judge_names import is_test
from greenroom.abilities.checks.meddling import meddled
from greenroom.abilities.checks.python_tests import rewritten

OLD = """
'''Words.'''
import pytest
from app import export
LIMIT = 3

@pytest.fixture
def row(): return 1

def test_a(row): assert export(row) == 1
async def test_b(): assert LIMIT == 3

class TestC:
    def test_d(self): assert True
"""


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (OLD, ()),
        (OLD + "\ndef test_new(): assert export(2) == 2\n", ()),
        (OLD.replace("import export", "import export, to_json") + "\nMORE = to_json\ndef row2(): ...\n", ()),
        (OLD + "    def test_e(self): assert LIMIT\n", ()),
        (OLD.replace("'''Words.'''", "'''Others.'''"), ()),
        (OLD.replace("# nothing", "") + "# a comment\n", ()),
        (OLD.replace("== 1", "in (1, 2)"), ("test_a",)),
        (OLD.replace("assert True", "pass"), ("TestC.test_d",)),
        (OLD.replace("return 1", "return 2"), ("row",)),
        (OLD.replace("LIMIT = 3", "LIMIT = 4"), ("LIMIT",)),
        (OLD.replace("async def test_b(): assert LIMIT == 3\n", ""), ("test_b",)),
        (OLD.replace("class TestC:", "class TestC(Base):"), ("TestC",)),
        (OLD.replace("from app import", "from fakes import"), ("the import of export",)),
        (OLD + "\ndef export(row): return 1\n", ("export (added)",)),
        (OLD + "\nfrom fakes import row\n", ("row (imported over it)",)),
        (OLD + "\npytestmark = pytest.mark.skip\n", ("pytestmark (added)",)),
        (OLD + "    def setup_method(self): ...\n", ("TestC.setup_method (added)",)),
        (OLD + "\n@pytest.fixture(autouse=True)\ndef calm(): ...\n", ("calm (added, and used by all)",)),
        (OLD + "\nimport app\napp.export = lambda row: 1\n", ("line 17 (added)",)),
        ("def test_a(:", ("the whole file",)),
    ],
)
def test_only_what_reaches_old_tests_counts(new: str, told: tuple[str, ...]) -> None:
    assert rewritten(OLD.encode(), new.encode()) == told


def test_what_was_no_python_before_is_nobodys_test() -> None:
    assert rewritten(b"def (", b"x = 1") == ()


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_any_two_files_can_be_compared(before: bytes, after: bytes) -> None:
    assert isinstance(rewritten(before, after), tuple)
    assert rewritten(before, before) == ()


@pytest.mark.parametrize(
    "path",
    ["tests/test_a.py", "src/a_test.go", "web/a.test.ts", "spec/a_spec.rb", "a/__snapshots__/x.snap", "test_b.py"],
)
def test_paths_of_tests_are_known(path: str) -> None:
    assert is_test(path)


def test_other_paths_are_none() -> None:
    assert not any(said(path, "a", "b") for path in ("src/contest.py", "latest.py", "docs/testing.md", "app.js"))
    every = ("conftest.py", "a/pyproject.toml", "package.json", "jest.config.ts", "x.pth")
    assert all(said(path, "a", "b") for path in every), "also where nobody can read what stands in it"


def said(path: str, before: str | None, after: str | None) -> list[str]:
    change = Changed(
        path=path,
        before=None if before is None else before.encode(),
        after=None if after is None else after.encode(),
    )
    return [one.said for one in meddled([change])]


@pytest.mark.parametrize(
    ("path", "before", "after", "told"),
    [
        ("tests/test_a.py", OLD, None, ["tests/test_a.py was deleted."]),
        ("tests/test_a.py", None, OLD, []),
        (
            "tests/test_a.py",
            OLD,
            "test_x = __test__ = 1",
            ["Existing tests in tests/test_a.py were changed: LIMIT, row, test_a, test_b, TestC and 1 more."],
        ),
        ("web/a.test.js", "it(1)\nit(2)\n", "it(1)\nit(3)\nit(2)\n", []),
        ("web/a.test.js", "it(1)\nit(2)\n", "it(1)\n", ["Existing lines of web/a.test.js were changed."]),
        ("conftest.py", None, "x", ["conftest.py, which sets up checks, was added."]),
        ("pytest.ini", "a", "b", ["pytest.ini, which sets up checks, was changed."]),
        ("pytest.ini", "a", None, ["pytest.ini, which sets up checks, was deleted."]),
        ("pytest.ini", "a", "a", []),
        ("pyproject.toml", "[project]\nname='a'\n", "[project]\nname='b'\n", []),
        (
            "pyproject.toml",
            "[tool.pytest]\ndate = 2020-01-01\n",
            "[tool.pytest]\ndate = 2020-01-01\naddopts = ['-k', 'x']\n",
            ["The settings of checks in pyproject.toml were changed."],
        ),
        ("setup.cfg", "[metadata]\nname=a\n", "[metadata]\nname=b\n", []),
        ("setup.cfg", "[flake8]\n", "[flake8]\nignore=E\n", ["The settings of checks in setup.cfg were changed."]),
        ("package.json", '{"version": "1"}', '{"version": "2"}', []),
        ("package.json", "{}", '{"jest": {"a": [1]}}', ["The settings of checks in package.json were changed."]),
        ("src/app.py", "a", "b", []),
    ],
)
def test_what_is_changed_of_the_judges_is_said(
    path: str, before: str | None, after: str | None, told: list[str]
) -> None:
    assert said(path, before, after) == told


@pytest.mark.parametrize(
    ("path", "before", "counts"),
    [
        ("vendor/github.com/stretchr/testify/require/require.go", b"x", True),
        ("pkg/_vendor/assertpy.py", b"x", True),
        ("vendor/example.org/new/new.go", None, False),
        ("vendor/modules.txt", b"x", False),
        ("src/vendors.py", b"x", False),
        ("shop/vendor/views/list.py", b"x", False),
    ],
)
def test_code_of_others_that_is_changed_may_judge(path: str, before: bytes | None, counts: bool) -> None:
    found = meddled([Changed(path=path, before=before, after=b"y")])
    assert [one.doubtful for one in found] == ([True] if counts else [])


@pytest.mark.parametrize(
    "path", ["x-1.0.dist-info/entry_points.txt", "src/x.egg-info/PKG-INFO", "lib/X.EGG-INFO/a.txt"]
)
def test_what_says_which_plugins_a_package_brings_sets_up_checks(path: str) -> None:
    (found,) = meddled([Changed(path=path, after=b"[pytest11]")])
    assert found.said == f"{path}, which sets up checks, was added."
