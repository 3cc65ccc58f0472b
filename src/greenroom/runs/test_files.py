"""Which paths are tests, or set up checks: by the usual names of many languages. Sources are never among them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

FOLDERS: Final = frozenset(
    {
        *("test", "tests", "spec", "specs", "__tests__", "__snapshots__", "__mocks__", "__fixtures__", "testdata"),
        *("fixtures", "e2e", "cypress", "unit_tests", "integration_tests", "functional_tests", "test-data", "goldens"),
    }
)
"""Folders with tests, and with what tests compare results with."""

TESTS: Final = re.compile(
    r"^tests?[_.-]|^test\.\w+$|[_.-](?:tests?|specs?)\.|\.(?:bats|feature|snap|t|golden)$|\.(?:snap|approved|golden)\."
)
IN_CAPITALS: Final = re.compile(
    r"^(?:Tests?[A-Z]\w*|\w*[a-z0-9](?:Tests?|TestCase|Specs?|IT))\."
    r"(?:java|kt|kts|scala|groovy|cs|fs|vb|swift|php|m|mm|c|cc|cpp|hs|dart|ts|tsx|js|jsx|py|rb)$"
)
"""`FooTest.java`, `TestFoo.kt`, `FooSpec.scala`, `FooIT.java`; not `latest.java`."""

SET_UP: Final = frozenset(
    {
        *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "conftest.py", "tox.ini", "noxfile.py"),
        *("mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", ".flake8", ".coveragerc", "pyrightconfig.json"),
        *("pylintrc", ".pylintrc", ".pre-commit-config.yaml", ".rspec", ".rubocop.yml", "phpunit.xml"),
        *("phpunit.xml.dist", "phpstan.neon", "biome.json", "biome.jsonc", "clippy.toml", "rustfmt.toml"),
        *("pyproject.toml", "setup.cfg", "package.json", "makefile", "gnumakefile", "justfile", ".justfile"),
    }
)
BEGINNINGS: Final = (
    *("jest.config.", "jest.setup.", "vitest.config.", "vitest.setup.", "vitest.workspace.", "karma.conf."),
    *("playwright.config.", "cypress.config.", "ava.config.", ".mocharc", ".nycrc", ".c8rc", ".eslintrc"),
    *("eslint.config.", ".golangci."),
)
COMPILED: Final = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".pyx", ".pxd", ".f90", ".rs", ".go", ".zig")
"""Sources of which a built file may lie in the person's folder."""


def is_test(path: str) -> bool:
    """Whether a path is one of tests, or of what they are compared with."""
    place = PurePosixPath(path)
    if not FOLDERS.isdisjoint(part.lower() for part in place.parts[:-1]):
        return True
    return TESTS.search(place.name.lower()) is not None or IN_CAPITALS.match(place.name) is not None


def is_check_setup(path: str) -> bool:
    """Whether a file sets up checks, as a whole or in part."""
    name = PurePosixPath(path).name.lower()
    return name in SET_UP or name.startswith(BEGINNINGS)


def is_compiled(path: str) -> bool:
    """Whether a file is built into another one before tests can use it."""
    return path.lower().endswith(COMPILED)
