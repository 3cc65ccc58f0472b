"""Which checks a project has, by its own files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.finding.below import projects_below
from greenroom.abilities.checks.finding.found import found, meant
from greenroom.core.ports.checks import Check
from tests.abilities.checks.shelves import Table

ODD = st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
NAMES = (
    *("pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "package.json", "Makefile", "justfile", "Cargo.toml"),
    *("go.mod", "CMakeLists.txt", "deno.json", "composer.json", "noxfile.py", "mypy.ini", "tests/test_a.py"),
)


def lines(files: dict[str, str | bytes], *folders: str) -> list[str]:
    return [one.line for one in found(Table(files), folders or (".",))]


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
        ({"Makefile": "test:\n\tcargo test --quiet\n", "Cargo.toml": ""}, ["cargo test --offline"]),
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
        "Makefile": "lint:\n\tshellcheck x\n",
    }
    assert [(one.name, one.kind, one.why) for one in found(Table(files))] == [
        ("npm test", "test", "package.json has the script 'test'."),
        ("ruff", "lint", "pyproject.toml sets up ruff."),
        ("make lint", "lint", "Makefile has the target 'lint'."),
    ]


def test_what_a_script_stands_for_belongs_to_it_with_all_that_it_calls() -> None:
    scripts = {"test": "npm run unit && yarn lint", "unit": "jest", "pretest": "npm run test", "lint": "eslint"}
    (one, *_) = found(Table({"package.json": json.dumps({"scripts": scripts})}))
    assert one.means.splitlines() == [
        "test: npm run unit && yarn lint",
        "pretest: npm run test",
        "unit: jest",
        "lint: eslint",
    ]
    changed = json.dumps({"scripts": {**scripts, "unit": "true"}})
    assert found(Table({"package.json": changed}))[0].digest != one.digest


def test_a_recipe_has_what_it_needs_and_what_is_set_and_included() -> None:
    files: dict[str, str | bytes] = {
        "Makefile": "RUN := prove\n.PHONY: test\ntest: built; $(RUN) -r t\n\t@echo done\ninclude more.mk\n",
        "more.mk": "include Makefile\nbuilt: test\n\tcc x\n",
    }
    (one,) = found(Table(files))
    assert one.means == "test: built\n$(RUN) -r t\n@echo done\nbuilt: test\ncc x\nRUN := prove"
    files["Makefile"] = str(files["Makefile"]).replace("prove", "true")
    assert found(Table(files))[0].digest != one.digest


def test_a_folder_and_its_root_have_their_own() -> None:
    files: dict[str, str | bytes] = {"pytest.ini": "", "part/pytest.ini": "", "other/pytest.ini": ""}
    assert [(one.name, one.folder) for one in found(Table(files), ("part", "."))] == [
        ("pytest", "part"),
        ("pytest (.)", "."),
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
    assert all("deno" in one.line or "mypy" in one.line for one in found(Table(files)))


@given(st.dictionaries(st.sampled_from(NAMES), ODD, max_size=6))
def test_no_file_is_odd_enough_for_a_traceback(files: dict[str, bytes]) -> None:
    for one in found(Table(files)):
        assert one.line
        assert one.why.endswith(".")
        assert len(one.digest) == 64


def test_projects_below_a_root_that_is_none_are_found_two_folders_deep_and_no_strangers() -> None:
    files: dict[str, str | bytes] = {
        **dict.fromkeys(("web/package.json", "packages/one/pyproject.toml", "packages/two/Cargo.toml"), ""),
        **dict.fromkeys(("web/inner/package.json", "a/b/c/package.json", "node_modules/x/package.json"), ""),
        **dict.fromkeys((".hidden/package.json", "packages/vendor/go.mod", "docs/index.md", "README.md"), ""),
    }
    assert projects_below(Table(files)) == ("packages/one", "packages/two", "web")
    assert projects_below(Table({"README.md": ""})) == ()


@pytest.mark.parametrize(
    "line", ["include mk/*.mk", "-include $(wildcard mk/*.mk)", "include *k/[a-z].mk", "include m*/?.mk"]
)
def test_a_file_that_is_put_where_a_recipe_includes_everything_is_a_part_of_it(line: str) -> None:
    files: dict[str, str | bytes] = {"Makefile": f"{line}\ntest:\n\tgrep -q good app.txt\n", "mk/a.mk": "A = 1\n"}
    (before,) = found(Table(files))
    (after,) = found(Table({**files, "mk/z.mk": "SHELL = /bin/true\n"}))
    assert "A = 1" in before.means
    assert before.digest != after.digest


PYTHON = {"pytest.ini": "", "ruff.toml": "", "mypy.ini": "[mypy]\n"}
OTHERS = "lint:\n\truff check src\ntypes:\n\tmypy src\n"
VENV = "VENV := .venv\nPYTEST = $(VENV)/bin/pytest\n.venv:\n\tpython3 -m venv .venv\n\t.venv/bin/pip install -e .\n"


@pytest.mark.parametrize(
    "makefile",
    [
        "check:\n\tpython3 -m pytest\n",
        f"check: lint types\n\t@echo 'all is well now'\n\tuv run --offline pytest -q tests\n{OTHERS}",
        f"{VENV}check: .venv\n\t$(PYTEST) --cov=app --tb=short tests/\n",
        "check:\n\t$(PY) -m pytest \\\n\t  -q || true\n",
    ],
    ids=["as it is", "three of them", "with what it needs", "on two lines"],
)
def test_a_recipe_that_only_runs_what_is_known_by_its_own_name_is_no_check(makefile: str) -> None:
    assert "make check" not in lines({**PYTHON, "Makefile": makefile})


@pytest.mark.parametrize(
    "recipe",
    [
        "python3 -m pytest\n\tsh ci/verify.sh",
        "python3 -m pytest && sh ci/verify.sh",
        "pytest --cov-fail-under=90",
        "pytest integration",
        "cd web && pytest",
        "sh -c 'pytest && sh ci/verify.sh'",
        "ruff format --check .",
        "mypy --strict src",
        "ruff -q src",
        "sh pytest.sh",
        "$(VERIFY)\nVERIFY = sh ci/verify.sh",
        "true",
    ],
)
def test_a_recipe_that_runs_more_than_what_is_known_is_a_check(recipe: str) -> None:
    assert "make check" in lines({**PYTHON, "Makefile": f"check:\n\t{recipe}\n"})


@pytest.mark.parametrize(
    ("makefile", "reached"),
    [
        ("check: a \\\n  b\na:\n\tone\nb:\n\ttwo\nc:\n\tthree\n", "one two"),
        ("ALL = a b\ncheck: $(ALL)\na:\n\tone\nb:\n\ttwo\nc:\n\tthree\n", "one two"),
        ("check: $(shell ls)\na:\n\tone\nb:\n\ttwo\nc:\n\tthree\n", "one two three"),
        ("check: x.log\n%.log:\n\tone\n%.txt:\n\ttwo\n", "one"),
        ("check: a \\", ""),
    ],
    ids=["on two lines", "in a variable", "nobody knows which", "by a pattern", "without an end"],
)
def test_what_a_recipe_needs_is_known_however_it_is_said(makefile: str, reached: str) -> None:
    (one,) = found(Table({"Makefile": makefile}))
    assert [word for word in ("one", "two", "three") if word in one.means.splitlines()] == reached.split()


NODE = '{"scripts": {"test": "npm run unit", "unit": "node t.js", "unit:quick": "node q.js", "other": "x"}}'


@pytest.mark.parametrize(
    ("line", "means"),
    [
        ("npm test", "test: npm run unit\nunit: node t.js"),
        ("npm run unit:quick && npm run --silent unit", "unit:quick: node q.js\nunit: node t.js"),
        ("pnpm unit", "unit: node t.js"),
        ("make lint", "lint:\nshellcheck x"),
        ("node t.js", ""),
    ],
)
def test_what_a_line_stands_for_is_known_whoever_has_named_it(line: str, means: str) -> None:
    look = Table({"package.json": NODE, "Makefile": "lint:\n\tshellcheck x\n"})
    for name in (line, "quick"):
        told = meant(Check(name=name, line=line, kind="test", why="w.", own=True), look)
        assert [one.strip() for one in told.splitlines()] == means.splitlines()
