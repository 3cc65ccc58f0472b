"""Which files are tests or set up checks, by their names."""

from __future__ import annotations

import pytest

from greenroom.runs.discovery import is_check_setup, is_test

TESTS = (
    *("tests/x.py", "test_a.py", "a_test.go", "pkg/a_test.py", "src/__tests__/a.js", "a.test.ts", "a.spec.tsx"),
    *("test.js", "tests.py", "spec/a_spec.rb", "src/FooTest.java", "TestFoo.kt", "FooSpec.scala", "FooIT.java"),
    *("a.snap", "t/basic.t", "x.bats", "login.feature", "Tests/Sum.swift", "testdata/big.json", "out.golden.txt"),
)
SOURCES = (
    *("app.py", "latest.java", "src/contest.py", "attest.go", "src/inspect.ts", "testing.md", "protest.rs"),
    *("src/lib.rs", "Unit.java", "specs.md", "src/pytest_plugin.py", "credit.java"),
)


@pytest.mark.parametrize("path", TESTS)
def test_a_test_is_known_by_its_name(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize("path", SOURCES)
def test_a_source_is_no_test(path: str) -> None:
    assert not is_test(path)
    assert not is_check_setup(path)


@pytest.mark.parametrize(
    ("path", "sets_up"),
    [
        ("pyproject.toml", True),
        ("web/package.json", True),
        ("jest.config.mjs", True),
        ("conftest.py", True),
        ("Makefile", True),
        (".eslintrc.json", True),
        ("package-lock.json", False),
        ("src/config.py", False),
        ("makefile.md", False),
    ],
)
def test_settings_of_checks_are_known_by_their_names(path: str, sets_up: bool) -> None:
    assert is_check_setup(path) == sets_up
