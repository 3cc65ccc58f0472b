"""What judges are called, in the usual names of many languages and in whatever letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.judge_names import BEGINNINGS, FOLDERS, SET_UP, is_set_up, is_test
from greenroom.abilities.checks.meddling import meddled

NAMES = st.text(alphabet="abcxyz", min_size=1, max_size=6)
LETTERS = st.sampled_from((str.lower, str.upper, str.title, str.swapcase))


@pytest.mark.parametrize(
    "path",
    [
        *("foo_test.go", "pkg/foo_test.go", "foo.spec.ts", "foo.test.tsx", "a/__tests__/x.js", "src/test/java/A.java"),
        *(
            "spec/models/user.rb",
            "x.bats",
            "crate/tests/api.rs",
            "__snapshots__/a.snap",
            "a.test.js.snap",
            "e2e/login.ts",
        ),
        *("FooTest.java", "FooTests.cs", "TestFoo.kt", "UserSpec.scala", "OrderIT.java", "FooTestCase.php", "tests.py"),
        *("foo-test.js", "test-foo.mjs", "features/login.feature", "t/basic.t", "cypress/login.cy.js", "x.golden"),
        *("__mocks__/fs.js", "testdata/a.json", "a_spec.lua", "test.sh", "out.approved.txt", "expected/out.txt"),
        *("data/golden/a.json", "src/cassettes/call.yaml"),
    ],
)
def test_tests_of_many_languages_are_known(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize(
    "path",
    [
        "latest.java",
        "contest.py",
        "Contest.java",
        "attest.go",
        "src/protest.ts",
        "docs/testing.md",
        "inspect.js",
        "unit.py",
        "src/expected/result.rs",
    ],
)
def test_names_that_only_sound_like_it_are_none(path: str) -> None:
    assert not is_test(path)
    assert not meddled([Changed(path=path, before=b"a", after=b"b")])


@pytest.mark.parametrize(
    "path",
    [
        *("conftest.py", "a/conftest.py", "pytest.ini", "tox.ini", ".coveragerc", "noxfile.py", "jest.config.mjs"),
        *("vitest.config.ts", "vitest.workspace.js", ".mocharc.yml", ".pre-commit-config.yaml", "tsconfig.test.json"),
        *("phpunit.xml.dist", ".golangci.yml", "clippy.toml", ".cargo/config.toml", "cypress.config.ts", ".nycrc.json"),
        *(".npmrc", "web/.yarnrc.yml", ".pnpmrc", ".python-version", ".tool-versions"),
    ],
)
def test_what_sets_up_checks_is_known(path: str) -> None:
    (found,) = meddled([Changed(path=path, before=b"a", after=b"b")])
    assert found.said == f"{path}, which sets up checks, was changed."


def test_workflows_of_a_server_are_no_judges() -> None:
    for path in (".github/workflows/ci.yml", ".gitlab-ci.yml", "azure-pipelines.yml"):
        assert not meddled([Changed(path=path, before=b"a", after=b"b")])


@given(st.sampled_from(sorted(FOLDERS)), NAMES, LETTERS)
def test_a_folder_of_tests_is_one_in_any_letters(folder: str, name: str, letters: object) -> None:
    assert callable(letters)
    assert is_test(f"{letters(folder)}/{name}.py")


@given(st.sampled_from(("test_{}.py", "{}_test.go", "{}.spec.ts", "{}-test.js", "{}.bats", "{}.snap")), NAMES, LETTERS)
def test_a_test_is_one_in_any_letters(pattern: str, name: str, letters: object) -> None:
    assert callable(letters)
    assert is_test(letters(pattern.format(name)))


@given(st.sampled_from((*sorted(SET_UP), *(f"{one}x" for one in BEGINNINGS))), LETTERS)
def test_what_sets_up_checks_does_so_in_any_letters(name: str, letters: object) -> None:
    assert callable(letters)
    assert is_set_up(letters(name))


@pytest.mark.parametrize("path", [".gitignore", "web/.gitignore"])
def test_what_says_what_is_delivered_is_a_judge(path: str) -> None:
    for before, after, how in ((b"a\n", b"a\nb\n", "changed"), (None, b"*\n", "added"), (b"a\n", None, "deleted")):
        (found,) = meddled([Changed(path=path, before=before, after=after)])
        assert found.said == f"{path}, which says what is no part of the work, was {how}."


@pytest.mark.parametrize("key", ["ava", "prettier", "c8", "babel"])
def test_settings_of_checks_in_package_json_are_a_part_of_it(key: str) -> None:
    change = Changed(path="package.json", before=b"{}", after=f'{{"{key}": {{"a": 1}}}}'.encode())
    assert [one.said for one in meddled([change])] == ["The settings of checks in package.json were changed."]
