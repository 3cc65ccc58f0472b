"""Which checks a project has, by its own files."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greenroom.runs.discovery import find_checks, find_checks_in, list_projects_below
from tests.runs.shelves import Table

ODD = st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
NAMES = (
    *("pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "package.json", "Makefile", "justfile", "Cargo.toml"),
    *("go.mod", "CMakeLists.txt", "deno.json", "composer.json", "noxfile.py", "mypy.ini", "tests/test_a.py"),
)


def lines(files: dict[str, str | bytes], *folders: str) -> list[str]:
    return [one.line for one in find_checks_in(Table(files), folders or (".",))]


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, ["python3 -m pytest"]),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n", ".venv/bin/python": ""}, [".venv/bin/python -m pytest"]),
        ({"pytest.ini": "", "uv.lock": ""}, ["uv run --offline python -m pytest"]),
        ({"setup.cfg": "[tool:pytest]\n", "poetry.lock": ""}, ["poetry run python -m pytest"]),
        ({"tox.ini": "[pytest]\n[testenv]\n"}, ["python3 -m pytest"]),
        ({"tox.ini": "[testenv]\ncommands = nosetests\n"}, ["tox"]),
        ({"pyproject.toml": "[tool.tox]\nrequires = []\n"}, ["tox"]),
        ({"noxfile.py": "", "pdm.lock": ""}, ["pdm run nox"]),
        ({"tests/test_a.py": "import pytest\n"}, ["python3 -m pytest"]),
        ({"tests/test_a.py": "", "tests/conftest.py": ""}, ["python3 -m pytest"]),
        ({"test_a.py": "", "requirements.txt": "pytest\n"}, ["python3 -m pytest"]),
        ({"tests/test_a.py": "import unittest\n"}, ["python3 -m unittest discover -v -s tests"]),
        (
            {"test/test_a.py": "from unittest import TestCase\n", "test/__init__.py": ""},
            ["python3 -m unittest discover -v -s test -t ."],
        ),
        ({"tests/test_a.py": "def test_a(): ...\n"}, ["python3 -m pytest"]),
        ({"tests/test_a.py": "class TestA: ...\n"}, ["python3 -m pytest"]),
        ({"tests/test_a.py": "print(1)\n"}, []),
        ({"tests/unit/test_a.py": "def test_a(): ...\n"}, ["python3 -m pytest"]),
        ({"lib/__init__.py": "", "lib/tests/test_a.py": "def test_a(): ...\n"}, ["python3 -m pytest"]),
        ({"test_a.py": "import unittest\n"}, ["python3 -m unittest discover -v -s ."]),
        ({"lib/tests/test_a.py": "def test_a(): ...\n", "test_a.py": "print(1)\n"}, []),
        ({"pyproject.toml": "[tool.mypy]\nfiles = ['src']\n[tool.ruff]\nline-length = 99\n"}, ["mypy", "ruff check ."]),
        ({"mypy.ini": "[mypy]\nstrict = true\n", ".venv/bin/python": "", ".venv/bin/mypy": ""}, [".venv/bin/mypy ."]),
        ({"setup.cfg": "[mypy]\nstrict = true\n[flake8]\n"}, ["mypy .", "flake8"]),
        ({"pyrightconfig.json": "{}", "ruff.toml": ""}, ["pyright", "ruff check ."]),
        ({"package.json": '{"scripts": {"test": "jest", "lint": "eslint ."}}'}, ["npm test", "npm run lint"]),
        ({"package.json": '{"scripts": {"test": "vitest"}}', "pnpm-lock.yaml": ""}, ["pnpm test"]),
        (
            {"package.json": '{"scripts": {"test": "x", "build": "tsc"}}', "yarn.lock": ""},
            ["yarn test", "yarn run build"],
        ),
        ({"package.json": '{"packageManager": "bun@1", "scripts": {"test": "bun test"}}'}, ["bun run test"]),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, []),
        ({"Makefile": "test: deps\n\tprove -r t\ndeps:\n"}, ["make test"]),
        ({"Makefile": "check: test\ntest:\n\tprove\nlint:\n\tshellcheck x\n"}, ["make check", "make lint"]),
        ({"justfile": "@test *args: build\n    prove {{args}}\nbuild:\n    cc x\n"}, ["just test"]),
        ({"Makefile": "test:\n\tpython -m pytest -q\n", "pytest.ini": ""}, ["python3 -m pytest"]),
        ({"Makefile": "test:\n\tcargo test --quiet\n", "Cargo.toml": ""}, ["cargo test --offline --no-fail-fast"]),
        ({"go.mod": "module x\n"}, ["go test -v ./...", "go vet ./..."]),
        ({"Gemfile": "", "spec/a_spec.rb": "", ".rubocop.yml": ""}, ["bundle exec rspec", "bundle exec rubocop"]),
        ({"Rakefile": "", "test/a.rb": ""}, ["rake test"]),
        ({"pom.xml": "", "mvnw": ""}, ["./mvnw -o -B test"]),
        ({"build.gradle.kts": ""}, ["gradle --offline --console=plain test"]),
        ({"deno.json": '{"tasks": {"test": "deno test -A"}}'}, ["deno task test", "deno lint"]),
        ({"deno.jsonc": "// no"}, ["deno test", "deno lint"]),
        ({"composer.json": '{"scripts": {"test": "phpunit"}}'}, ["composer test"]),
        ({"phpunit.xml": ""}, ["vendor/bin/phpunit"]),
        ({"mix.exs": ""}, ["mix test"]),
        ({"Package.swift": ""}, ["swift test"]),
        ({"a.sln": ""}, ["dotnet test"]),
        ({".pre-commit-config.yaml": "repos: []"}, ["pre-commit run --all-files"]),
        ({"README.md": "nothing"}, []),
    ],
)
def test_the_checks_of_a_project_are_found(files: dict[str, str | bytes], wanted: list[str]) -> None:
    assert lines(files) == wanted


def test_cmake_builds_outside_of_the_tree() -> None:
    assert "mktemp -d" in lines({"CMakeLists.txt": "enable_testing()\nadd_test(a a)"})[0]


def test_each_says_in_a_sentence_which_file_wants_it() -> None:
    files: dict[str, str | bytes] = {
        "pyproject.toml": "[tool.pytest]\n[tool.ruff]\nx = 1\n",
        "package.json": '{"scripts": {"test": "jest"}}',
    }
    assert [(one.name, one.kind, one.why) for one in find_checks_in(Table(files))] == [
        ("npm test", "test", "package.json has the script 'test'."),
        ("ruff", "lint", "pyproject.toml sets up ruff."),
    ]
    recipe: dict[str, str | bytes] = {"Makefile": "X := 1\nlint types:\n\tshellcheck x\n"}
    assert [(check.name, check.why) for check in find_checks_in(Table(recipe))] == [
        ("make types", "Makefile has the target 'types'."),
        ("make lint", "Makefile has the target 'lint'."),
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": "[tool.pytest\n", "package.json": "{", "setup.cfg": "x\n[", "tox.ini": "[a]\n b\n[a"},
        {"package.json": b'{"scripts": {"test": "' + b"x" * 5_000_000 + b'"}}'},
        {"package.json": "[" * 100_000, "pyproject.toml": "a = " + "[" * 100_000},
        {"package.json": '{"scripts": ["test"]}', "composer.json": "[1]", "deno.json": '{"tasks": 3}', "x": ""},
        {"Makefile": "a " * 400_000 + "\ninclude Makefile Makefile\n" + ":" * 1000},
        {"Makefile": b"\xff\xfe\x00:\n\t\x00", "setup.cfg": "[mypy]\nkey\n  more\n"},
    ],
)
def test_what_cannot_be_read_is_not_there(files: dict[str, str | bytes]) -> None:
    assert all("deno" in one.line or "mypy" in one.line for one in find_checks_in(Table(files)))


@settings(suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(st.dictionaries(st.sampled_from(NAMES), ODD, max_size=6))
def test_no_file_is_odd_enough_for_a_traceback(files: dict[str, bytes]) -> None:
    for one in find_checks_in(Table(files)):
        assert one.line
        assert one.why.endswith(".")
        assert len(one.digest) == 64


def test_projects_below_a_root_that_is_none_are_found_two_folders_deep_and_no_strangers() -> None:
    files: dict[str, str | bytes] = {
        **dict.fromkeys(("web/package.json", "packages/one/pyproject.toml", "packages/two/Cargo.toml"), ""),
        **dict.fromkeys(("web/inner/package.json", "a/b/c/package.json", "node_modules/x/package.json"), ""),
        **dict.fromkeys((".hidden/package.json", "packages/vendor/go.mod", "docs/index.md", "README.md"), ""),
    }
    assert list_projects_below(Table(files)) == ("packages/one", "packages/two", "web")
    assert list_projects_below(Table({"README.md": ""})) == ()


def test_where_the_root_has_no_tests_the_projects_below_it_count() -> None:
    files: dict[str, str | bytes] = {"ruff.toml": "", "web/package.json": '{"scripts": {"test": "jest"}}'}
    assert [(check.line, check.folder) for check in find_checks(Table(files))] == [
        ("npm test", "web"),
        ("ruff check .", "."),
    ]
    assert [check.line for check in find_checks(Table({**files, "pytest.ini": ""}))] == [
        "python3 -m pytest",
        "ruff check .",
    ]


def test_what_a_script_stands_for_is_its_line_with_those_that_run_before_and_after_it() -> None:
    scripts = '{"scripts": {"test": "jest", "pretest": "tsc", "x": "y"}}'
    assert [check.means for check in find_checks_in(Table({"package.json": scripts}))] == ["test: jest\npretest: tsc"]


SCRIPT = '{"packageManager": "pnpm@9", "scripts": {"test": "ava"}}'


@pytest.mark.parametrize(
    ("files", "lacks", "wanted"),
    [
        ({"package.json": SCRIPT, "pnpm-lock.yaml": ""}, (), ["pnpm test"]),
        ({"package.json": SCRIPT, "pnpm-lock.yaml": ""}, ("pnpm",), ["npm test"]),
        ({"package.json": SCRIPT, "pnpm-lock.yaml": "", "yarn.lock": ""}, ("pnpm",), ["yarn test"]),
        ({"pytest.ini": "", "uv.lock": ""}, ("uv",), ["python3 -m pytest"]),
        ({"pytest.ini": "", "justfile": "test:\n    pytest\n"}, ("just",), ["python3 -m pytest"]),
        ({"pytest.ini": "", "tox.ini": "[testenv]\n"}, ("tox",), ["python3 -m pytest"]),
        ({"Makefile": "test:\n\tprove\n", "justfile": "test:\n    prove\n"}, ("just",), ["make test"]),
        ({"Makefile": "test:\n\tprove\n", "tox.ini": "[testenv]\n"}, ("tox",), ["tox", "make test"]),
        ({"Makefile": "test:\n\tprove\n", "tox.ini": "[testenv]\n"}, (), ["tox"]),
        ({"Makefile": "test:\n\tprove\n", "tox.ini": "[testenv]\n"}, ("tox", "make"), ["tox"]),
    ],
)
def test_a_program_that_the_machine_lacks_hides_no_other(
    files: dict[str, str | bytes], lacks: tuple[str, ...], wanted: list[str]
) -> None:
    assert [check.line for check in find_checks_in(Table(files, lacks))] == wanted


def test_tools_of_the_projects_own_environment_are_used() -> None:
    own = dict.fromkeys((".venv/bin/python", ".venv/bin/mypy", ".venv/bin/pre-commit", ".venv/bin/tox"), "")
    files = {**own, "mypy.ini": "[mypy]\n", "ruff.toml": "", "tox.ini": "[testenv]\n", ".pre-commit-config.yaml": ""}
    assert lines({**files}) == [
        ".venv/bin/tox",
        ".venv/bin/mypy .",
        "ruff check .",
        ".venv/bin/pre-commit run --all-files",
    ]
