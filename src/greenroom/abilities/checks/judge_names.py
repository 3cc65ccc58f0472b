"""What judges are called: tests in the usual names of many languages, and the files that set up checks.

Names are compared in small letters: some file systems know no others. Only where a capital letter is what parts a name
into words (`FooTest.java`) does it count.
"""

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
"""Of folders with tests, and with what they are compared with."""

RESULTS: Final = frozenset({"expected", "golden", "snapshots", "cassettes", "approvals"})
"""Of folders with what results are compared with; sources may be called so as well, so only data in them counts."""

USED: Final = frozenset(
    {
        *(*FOLDERS, *RESULTS, "testing", "ci", ".ci", ".github", "check", "checks", "verify", "verification", "qa"),
        *("integration", "acceptance", "scripts", "hack", ".husky"),
    }
)
"""Of folders of judges where a check uses something in one: by itself such a name says too little."""

CODE: Final = (
    *(".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".go"),
    *(".java", ".kt", ".rb", ".php", ".cs", ".swift", ".ex", ".exs", ".vue"),
)
"""How sources end."""

TESTS: Final = re.compile(
    r"^tests?[_.-]|[_.-](?:tests?|specs?)\.|\.(?:bats|feature|snap|t|golden)$|\.(?:snap|approved|golden)\."
)
IN_CAPITALS: Final = re.compile(
    r"^(?:Tests?[A-Z]\w*|\w*[a-z0-9](?:Tests?|TestCase|Specs?|IT))\."
    r"(?:java|kt|kts|scala|groovy|cs|fs|vb|swift|php|m|mm|c|cc|cpp|hs|dart|ts|tsx|js|jsx|py|rb)$"
)
"""`FooTest.java`, `TestFoo.kt`, `FooSpec.scala`, `FooIT.java`: the capital letter says that it is no `latest.java`."""

SET_UP: Final = frozenset(
    {
        *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "conftest.py", "tox.ini", "noxfile.py"),
        *("mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", ".flake8", ".coveragerc", "pyrightconfig.json"),
        *("pylintrc", ".pylintrc", ".isort.cfg", ".bandit", "behave.ini", "sitecustomize.py", "usercustomize.py"),
        *(".pre-commit-config.yaml", ".rspec", ".rubocop.yml", ".simplecov", "phpunit.xml", "phpunit.xml.dist"),
        *(
            "phpstan.neon",
            "jasmine.json",
            "biome.json",
            "biome.jsonc",
            ".eslintignore",
            ".prettierignore",
            "clippy.toml",
        ),
        *(".clippy.toml", "rustfmt.toml", ".rustfmt.toml", "nextest.toml", "checkstyle.xml", ".swiftlint.yml"),
        *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmrc", ".pnpmfile.cjs", "bunfig.toml"),
        *("ctestcustom.cmake", "dart_test.yaml", "analysis_options.yaml", ".luacov"),
        *(".python-version", ".tool-versions", "mise.toml", ".mise.toml"),
    }
)
BEGINNINGS: Final = (
    *("jest.config.", "jest.setup.", "vitest.config.", "vitest.setup.", "vitest.workspace.", "vite.config."),
    *("karma.conf.", "playwright.config.", "cypress.config.", "ava.config.", "wdio.conf.", "babel.config.", ".babelrc"),
    *("tsconfig.", ".mocharc", ".nycrc", ".c8rc", ".eslintrc", "eslint.config.", ".prettierrc", "prettier.config."),
    *(".stylelintrc", "stylelint.config.", ".golangci.", ".swcrc"),
)
IN_PART: Final = frozenset({"pyproject.toml", "setup.cfg", "package.json"})
"""Files of which only a part is for checks."""

IGNORES: Final = ".gitignore"
INSTALLED: Final = (".dist-info", ".egg-info")
"""Folders that say which plugins a package brings: Python looks for them wherever it looks for modules."""

VENDORED: Final = re.compile(
    r"(?:^|/)(?:(?:_vendor|vendored|third_party|node_modules|site-packages)/|vendor/[^/]+/[^/]+/)"
)
"""Folders with code of others: what tests assert with may be among it. A `vendor` may also be who sells something."""


def is_test(path: str) -> bool:
    """Whether a path is one of tests, or of what they are compared with."""
    place = PurePosixPath(path)
    folders = {part.lower() for part in place.parts[:-1]}
    if not folders.isdisjoint(FOLDERS) or (not folders.isdisjoint(RESULTS) and not path.lower().endswith(CODE)):
        return True
    return TESTS.search(place.name.lower()) is not None or IN_CAPITALS.match(place.name) is not None


def is_set_up(path: str) -> bool:
    """Whether a file as a whole sets up checks."""
    small = path.lower()
    name = PurePosixPath(small).name
    known = name in SET_UP or name.startswith(BEGINNINGS) or name.endswith(".pth")
    known = known or any(part.endswith(INSTALLED) for part in PurePosixPath(small).parts)
    return known or small.endswith((".cargo/config.toml", ".cargo/config", ".config/nextest.toml"))


def ignores(path: str) -> bool:
    """Whether a file says what of the work is delivered at all, and what a check may leave behind."""
    return PurePosixPath(path).name.lower() == IGNORES


def in_part(path: str) -> str:
    """The name of a file of which a part sets up checks; empty for any other."""
    name = PurePosixPath(path).name.lower()
    return name if name in IN_PART else ""


def is_vendored(path: str) -> bool:
    """Whether a file is a source of others that lies in the project."""
    return VENDORED.search(path.lower()) is not None and path.lower().endswith(CODE)
