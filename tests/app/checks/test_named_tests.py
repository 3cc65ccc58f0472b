"""Tests that are spoken of by name, and files with tests, held against what ran."""

from collections.abc import Mapping, Sequence

import pytest

from greenroom.app.checks import delivered_names as looking
from greenroom.app.checks.named_tests import (
    Here,
    beside_names,
    left_alone,
    never_checked,
    never_ran,
    never_run,
    says_they_pass,
)
from greenroom.app.checks.receipts import receipts
from greenroom.app.checks.verdict import Verdict
from greenroom.core.base.records import encode, evolve
from greenroom.core.ports.checks import Check, Checked, Ran
from tests.app.checks.log import CLEAN, LINTED, PYTEST, RUFF, Story

SAID = "`test_yaml` passes."
TOLD = "It speaks of the test {!r}, and no such test ran."
NEVER = (TOLD.format("test_yaml"),)
TESTED = evolve(CLEAN, tests="blob")


class Delivered:
    """Files that are delivered."""

    def __init__(self, **files: str) -> None:
        self._files = {name.replace("__", "/").replace("_py", ".py"): text.encode() for name, text in files.items()}

    async def paths(self, commit: str) -> Sequence[str]:
        """Their names."""
        return list(self._files) if commit == "tip" else []

    async def contents(self, commit: str, paths: Sequence[str]) -> Mapping[str, bytes]:
        """What is in them."""
        return {one: self._files[one] for one in paths if commit == "tip"}


EMPTY = (Delivered(), "tip")


def report(names: list[str], *, exact: bool = True) -> bytes:
    """What a runner has kept of these tests, which pass."""
    ran = Ran(check="pytest", digest="d", kind="test", outcome="passed", exit=0, exact=exact)
    return encode(evolve(ran, tests=dict.fromkeys(names, "passed")))


@pytest.mark.parametrize(
    ("checks", "exact", "names", "told"),
    [
        ([TESTED], True, ["a.py::test_yaml"], ()),
        ([TESTED], True, ["a.py::TestA::test_yaml[1-a]"], ()),
        ([TESTED], True, ["a.py::test_json"], NEVER),
        ([TESTED], True, ["tests/test_yaml.py::test_json"], NEVER),
        ([TESTED], True, ["a.py::test_yaml_is_skipped", "a.py::a_test_yaml"], NEVER),
        ([TESTED], False, [], NEVER),
        ([LINTED], True, [], NEVER),
        ([], True, [], ()),
    ],
    ids=[
        *("it ran", "it ran with parameters", "another one ran", "one in a file of that name", "longer names"),
        *("nobody knows which, and no file has it", "no check runs tests", "no check ran"),
    ],
)
async def test_a_test_of_which_is_spoken_is_among_those_that_ran(
    checks: list[Checked], exact: bool, names: list[str], told: tuple[str, ...]
) -> None:
    async def fetch(_: str) -> bytes:
        return report(names, exact=exact)

    assert await never_ran(SAID, receipts(Story().checked(*checks).steps) if checks else (), fetch, EMPTY) == told


@pytest.mark.parametrize(
    ("said", "exact", "told"),
    [
        ("`test_yaml` passes.", True, NEVER),
        ("`test_yaml` passes.", False, ()),
        ("Added `test_yaml`.", True, ()),
        ("The test `test_yaml` shows it.", True, ()),
        ("Added `test_yam`.", True, (TOLD.format("test_yam"),)),
        (
            "Added `TestYaml`, `TestJson` and `TestA`.",
            True,
            (TOLD.format("TestJson"),),
        ),
        ("Added `test_part` and `test_folder`.", True, ()),
        ("Added `test_told`.", True, (TOLD.format("test_told"),)),
    ],
)
async def test_a_test_that_stands_in_a_file_may_be_spoken_of_and_that_it_passes_is_known_if_it_ran(
    said: str, exact: bool, told: tuple[str, ...]
) -> None:
    async def fetch(_: str) -> bytes:
        return report(["a.py::TestA::test_json"], exact=exact)

    files = {"a_py": "class TestYaml:\n    def test_yaml(self): ...\n", "test_folder__test_part_py": ""}
    tree = Delivered(**files, **{"README.md": "test_told"})
    assert await never_ran(said, receipts(Story().checked(TESTED).steps), fetch, (tree, "tip")) == told


async def test_in_more_files_than_are_read_any_name_may_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Delivered(a_py="", b_py="", c_py="test_c")
    monkeypatch.setattr(looking, "AT_ONCE", 2)
    assert await looking.delivered_names(["test_c", "test_d"], tree, "tip") == {"test_c"}
    monkeypatch.setattr(looking, "MOST", 2)
    assert await looking.delivered_names(["test_c", "test_d"], tree, "tip") == {"test_c", "test_d"}


MYPY = ("It says that mypy finds nothing wrong, and no check of this run is mypy.",)
MYPY_RAN = ("It says that it ran mypy, and nothing in this run did.",)


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (PYTEST, MYPY),
        (evolve(PYTEST, line="pytest --mypy-ini"), MYPY),
        (evolve(PYTEST, line=".venv/bin/mypy src", name="types"), ()),
        (evolve(PYTEST, line="pre-commit run", means="- id: mypy"), ()),
        (evolve(PYTEST, line="make -s check"), ()),
        (evolve(PYTEST, line="python3 ci/all.py"), ()),
    ],
    ids=["pytest", "an option of pytest", "mypy itself", "what it stands for", "a recipe", "a script"],
)
def test_a_program_that_finds_nothing_is_one_that_a_check_runs(check: Check, told: tuple[str, ...]) -> None:
    assert never_checked("mypy and ruff are clean.", [check, RUFF]) == told


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("ls", MYPY_RAN),
        ("mypy .", ()),
        ("python -m mypy .", ()),
        ("make check", ()),
        ("./ci.sh", ()),
    ],
)
def test_a_program_that_was_run_is_one_that_a_check_or_a_command_is(script: str, told: tuple[str, ...]) -> None:
    story = Story().step("execute_script")
    ran = evolve(story.steps[0], work=evolve(story.steps[0].work, instruction_content={"script": script}))
    assert never_run("I ran mypy, ruff and the whole suite, no problems.", [PYTEST, RUFF], [ran]) == told
    assert never_run("I did not run mypy.", [PYTEST], [ran]) == ()


def test_what_other_tools_have_run_nobody_knows() -> None:
    assert never_run("I ran mypy.", [PYTEST], Story().step("read_code").steps) == MYPY_RAN
    assert never_run("I ran mypy.", [PYTEST], Story().step("lint_it").steps) == ()


async def test_all_that_is_said_of_names_is_held_against_what_ran() -> None:
    async def fetch(_: str) -> bytes:
        return report(["a.py::test_json"])

    said = "Added `test_yaml`; mypy is clean. They pass. I ran mypy."
    steps = Story().checked(TESTED).steps
    found = Verdict(state="verified", receipts=receipts(steps))
    tree = (Delivered(tests__test_a_py="", test_b_py=""), "tip")
    here = Here(checks=[PYTEST], steps=steps, fetch=fetch, tree=tree)
    told = await beside_names(found, said, ["test_a.py", "a.py"], here)
    assert (told.state, told.claims, told.remarks) == ("unproven", (*NEVER, *MYPY, *MYPY_RAN), ())
    told = await beside_names(found, said, ["test_b.py"], here)
    assert (told.claims, told.remarks) == ((*NEVER, *MYPY, *MYPY_RAN, *PASS), (ONLY.format("test_b.py"),))
    assert await beside_names(found, "Done.", ["test_a.py"], here) == found, "a file that was moved away"


ONLY = "No check has run {}: whether those tests pass nobody knows."


@pytest.mark.parametrize(
    ("check", "exact", "names", "told"),
    [
        (TESTED, True, ["test_a.py::test_one", "more/b_test.py::test_b"], ONLY.format("lib/test_b.py")),
        (TESTED, True, ["test_a.py::test_one", "lib/test_b.py::test_b", "more/b_test.py::test_b"], ""),
        (TESTED, True, ["test_a.py::test_one", "lib/test_b.py::test_b"], ONLY.format("more/b_test.py")),
        (TESTED, False, [], ""),
        (LINTED, True, [], ONLY.format("test_a.py, lib/test_b.py, more/b_test.py")),
    ],
    ids=["two of three", "all", "not the one that ends so", "nobody knows which", "no check runs tests"],
)
async def test_a_file_with_tests_that_no_check_has_run_is_named(
    check: Checked, exact: bool, names: list[str], told: str
) -> None:
    async def fetch(_: str) -> bytes:
        return report(names, exact=exact)

    paths = ["test_a.py", "lib/test_b.py", "more/b_test.py", "app.py", "conftest.py", "tests/data.json", "latest.py"]
    ran = receipts(Story().checked(check).steps)
    assert "".join(await left_alone(paths, [PYTEST, RUFF], ran, fetch)) == told


@pytest.mark.parametrize(("within", "told"), [("part", ""), (".", ONLY.format("part/test_a.py"))])
async def test_names_of_tests_are_seen_from_where_the_check_runs(within: str, told: str) -> None:
    async def fetch(_: str) -> bytes:
        return report(["test_a.py::test_one"])

    ran = receipts(Story().checked(TESTED).steps)
    assert "".join(await left_alone(["part/test_a.py"], [PYTEST], ran, fetch, within)) == told


async def test_what_a_linter_has_said_of_a_file_is_no_run_of_its_tests() -> None:
    """What it names is kept as well, and is by no report: only what runs tests is asked."""

    async def fetch(blob: str) -> bytes:
        return report(["test_a.py::test_one"]) if blob == "blob" else report(["test_b.py::E501"], exact=False)

    ran = receipts(Story().checked(TESTED, evolve(LINTED, tests="lint")).steps)
    assert "".join(await left_alone(["test_a.py", "test_b.py"], [PYTEST, RUFF], ran, fetch)) == ONLY.format("test_b.py")


PASS = ("It says that its tests pass, and no check has run them all.",)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I added a test in test_other.py; it passes.", PASS),
        ("I wrote tests/test_calc.py. They all pass.", PASS),
        ("新增了测试文件，测试均已通过。", PASS),
        ("I could not run the tests: pytest is missing.", ()),
        ("They should pass once pytest is there.", ()),
        ("If they pass, merge it.", ()),
        ("Not all tests pass.", ()),
        ("Once pytest is there, they pass, I am sure.", ()),
        ("如果测试通过，就可以合并。", ()),
        ("It passes the rows to the writer.", ()),
    ],
)
def test_that_they_pass_is_said_or_not(said: str, told: tuple[str, ...]) -> None:
    assert says_they_pass(said) == told
