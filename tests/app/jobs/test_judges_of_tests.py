"""What judges the work when `pytest` is all that is named: files that only settings call tests, what tests are compared
with, modules that are made for them, and examples in the sources themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.app.checks.projects import PYTEST
from tests.app.jobs.deliveries import Told, job, verdict_of
from tests.sampling import first

APP = "def add(a, b):\n    return a + b\n"
BROKEN = "def add(a, b):\n    return 0\n"
SETTINGS = {"pytest.ini": "[pytest]\npython_files = check_*.py\ntestpaths = proofs\n", "conftest.py": ""}
PROOF = "import app\n\n\ndef test_add():\n    assert app.add(1, 2) == 3\n"
SAME = "def same(one, other):\n    assert one == other\n"
USES = "import app, testing_utils\n\n\ndef test_add():\n    testing_utils.same(app.add(1, 2), 3)\n"
READS = (
    "import app, pathlib\n\n\ndef test_add():\n"
    "    assert app.add(1, 2) == int(pathlib.Path('data/expected/sum.txt').read_text())\n"
)
EXAMPLE = 'def add(a, b):\n    """Both.\n\n    >>> add(1, 2)\n    3\n    """\n    return a + b\n'


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


async def found(root: Path, base: Mapping[str, str], work: Mapping[str, str], more: str = "") -> Told:
    async with job(root, f"{PYTEST.line}{more}", {"app.py": APP, **base}) as at_work:
        for name, text in work.items():
            at_work.writes(name, text)
        return verdict_of(await at_work.delivers())


LIES = {
    "a file that only settings call tests": (
        {**SETTINGS, "proofs/check_add.py": PROOF},
        {"app.py": BROKEN, "proofs/check_add.py": PROOF.replace("3", "0")},
        "Existing tests in proofs/check_add.py were changed: test_add.",
    ),
    "a module that is made for tests": (
        {"conftest.py": "", "testing_utils.py": SAME, "tests/test_add.py": USES},
        {"app.py": BROKEN, "testing_utils.py": SAME.replace("assert one == other", "pass")},
        "Parts of testing_utils.py, made for tests, were changed: same.",
    ),
    "what a result is compared with": (
        {"conftest.py": "", "data/expected/sum.txt": "3\n", "tests/test_add.py": READS},
        {"app.py": BROKEN, "data/expected/sum.txt": "0\n"},
        "Existing lines of data/expected/sum.txt were changed.",
    ),
}

DRAWN = (
    "import app\nfrom hypothesis import given, strategies as st\n\n\n@given(st.integers())\ndef test_add(a):\n"
    "    assert app.add(a, 1) == a + 1\n"
)
DRAWS_NOTHING = (
    "class strategies:\n    integers = staticmethod(int)\n\n\ndef given(_):\n    return lambda test: lambda: None\n"
)
LIES["a module in the place of what tests are made with"] = (
    {"conftest.py": "", ".gitignore": ".hypothesis/\n", "tests/test_add.py": DRAWN},
    {"app.py": BROKEN, "hypothesis.py": DRAWS_NOTHING},
    "hypothesis.py, which takes the place of the installed 'hypothesis' when checks run, was added.",
)


@pytest.mark.parametrize("case", first(*LIES))
async def test_work_that_bends_what_its_tests_rest_on_is_not_verified(tmp_path: Path, case: str) -> None:
    base, work, said = LIES[case]
    told = await found(tmp_path, base, work)
    assert (told.state, told.missing, told.changed) == ("unproven", [], [said])


async def test_a_new_file_that_only_settings_call_tests_does_not_speak_for_the_old_ones(tmp_path: Path) -> None:
    patches = "import app\n\napp.add = lambda a, b: a + b\n\n\ndef test_more():\n    assert app.add(1, 1) == 2\n"
    told = await found(
        tmp_path,
        {**SETTINGS, "proofs/check_add.py": PROOF},
        {"app.py": BROKEN, "proofs/check_a.py": patches},
    )
    assert told.state == "unproven"
    assert "with those put back as they were, it fails: proofs/check_add.py::test_add." in told.missing[0]


@pytest.mark.parametrize(
    ("base", "work"),
    [
        (
            {**SETTINGS, "proofs/check_add.py": PROOF},
            {"proofs/check_add.py": f"{PROOF}\n\ndef test_none():\n    assert app.add(0, 0) == 0\n"},
        ),
        (
            {"conftest.py": "", "testing_utils.py": SAME, "tests/test_add.py": USES},
            {"testing_utils.py": f"{SAME}\n\ndef other(one):\n    assert one\n"},
        ),
        (
            {"conftest.py": "", "testing_utils.py": SAME, "tests/test_add.py": USES},
            {"testing_utils.py": SAME.replace("assert one == other", "assert one == other, one")},
        ),
    ],
    ids=["a test beside the old ones", "a part beside the old ones", "a part that says more"],
)
async def test_honest_work_at_what_tests_rest_on_is_verified(
    tmp_path: Path, base: Mapping[str, str], work: Mapping[str, str]
) -> None:
    told = await found(tmp_path, base, {"app.py": APP.replace("a + b", "b + a"), **work})
    assert (told.state, told.missing, told.changed) == ("verified", [], [])


@pytest.mark.parametrize(
    ("work", "changed"),
    [
        (EXAMPLE.replace("a + b", "b + a"), []),
        (EXAMPLE.replace("    3\n", "    3\n    >>> add(0, 0)\n    0\n"), []),
        (
            EXAMPLE.replace("    3\n", "    0\n").replace("a + b", "0"),
            ["Tests inside of app.py were changed: add. They cannot be put back without the work."],
        ),
    ],
    ids=["the code", "an example beside the old one", "the example too"],
)
async def test_examples_in_a_source_are_judges_where_they_are_run(
    tmp_path: Path, work: str, changed: list[str]
) -> None:
    told = await found(tmp_path, {"app.py": EXAMPLE, "conftest.py": ""}, {"app.py": work}, " --doctest-modules")
    assert (told.state, told.missing, told.changed) == ("unproven" if changed else "verified", [], changed)


async def test_tests_that_are_gone_are_not_verified_though_trivial_ones_are_added_and_nothing_is_run_in_vain(
    tmp_path: Path,
) -> None:
    count = tmp_path / "count"
    two = f"{PROOF}\n\ndef test_none():\n    assert app.add(0, 0) == 0\n"
    async with job(tmp_path, f"echo x >> {count}; {PYTEST.line}", {"app.py": APP, "tests/test_add.py": two}) as work:
        work.writes("app.py", APP.replace("a + b", "b + a"))
        work.writes("tests/test_add.py", "def test_a():\n    assert True\n\n\ndef test_b():\n    assert True\n")
        told = verdict_of(await work.delivers())
    assert (told.state, told.missing) == ("unproven", [])
    assert told.changed[0] == (
        "'quick': not there any more: tests/test_add.py::test_add, tests/test_add.py::test_none."
    )
    assert count.read_text().count("x") == 2, "old tests that pass would not bring them back"
