"""Finds a project's checks from its own files, and decides which files are tests or configure checks.

There is one reader per ecosystem. Files are read, nothing is run.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as NotIni
from pathlib import PurePosixPath
from typing import Final, Protocol, get_args

from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.checks import Check, CheckKind

MAX_FILE_BYTES: Final = 1_000_000
"""Maximum bytes of a file that is read. Files written by people are shorter."""


class FolderView(Protocol):
    """A read-only view of a folder. Nothing is raised: what cannot be read does not exist."""

    def read(self, path: str) -> bytes | None:
        """Return the file's content; None if it cannot be read."""
        ...

    def names(self, folder: str) -> frozenset[str]: ...

    def has_program(self, name: str) -> bool:
        """Return whether a program of this name is on the PATH."""
        ...


class ProjectFolder:
    """One folder of a project, in which checks are searched."""

    def __init__(self, view: FolderView, folder: str = ".") -> None:
        self._view = view
        self.folder = folder
        self.names = view.names(folder)
        self.has_program = view.has_program

    def read_text(self, name: str) -> str:
        """Return a file as text; empty if it is missing or too long."""
        if "/" not in name and name not in self.names:
            return ""
        content = self._view.read(self._join_path(name))
        if content is None or len(content) > MAX_FILE_BYTES:
            return ""
        return content.decode("utf-8-sig", "replace")

    def list_names(self, folder: str) -> frozenset[str]:
        """Return the names in a subfolder."""
        return self._view.names(self._join_path(folder))

    def find_first(self, *names: str) -> str:
        """Return the first of these names that exists; else empty."""
        return next((name for name in names if name in self.names), "")

    def _join_path(self, name: str) -> str:
        return name if self.folder == "." else f"{self.folder}/{name}"


def parse_table(text: str, parser: Callable[[str], object]) -> Data:
    """Parse a TOML or JSON file; empty if it is not a table."""
    try:
        found = parser(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def parse_ini(text: str) -> Mapping[str, Mapping[str, str]]:
    """Parse the sections of an INI file; empty if it is invalid."""
    parser = ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
        return {name: {key: value or "" for key, value in parser[name].items()} for name in parser.sections()}
    except (NotIni, ValueError, AttributeError, RecursionError):
        return {}


def get_table(data: Data, *path: str) -> Data:
    """Return a nested table; empty if there is none."""
    found: object = data
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


TEST_FOLDER_NAMES: Final = ("tests", "test")
MAX_TEST_FILES_READ: Final = 20
"""Maximum test files that are read."""

PLAIN_TEST: Final = re.compile(r"^(?:async )?def test_|^class Test", re.MULTILINE)
"""Tests that only pytest finds: functions, and classes outside unittest."""

LOCKFILE_RUNNERS: Final = (
    ("uv.lock", "uv run --offline"),
    ("poetry.lock", "poetry run"),
    ("pdm.lock", "pdm run"),
    ("Pipfile.lock", "pipenv run"),
)
REQUIREMENTS: Final = ("requirements-dev.txt", "requirements-test.txt", "requirements.txt", "Pipfile", "setup.py")


def find_python_checks(folder: ProjectFolder) -> Iterator[Check]:
    """Find tests, type checks and linters. tox and nox build environments: they count only without other tests."""
    project = _PythonProject(folder)
    tests = list(project.find_tests())
    yield from tests
    yield from project.find_type_checks()
    yield from project.find_lint_checks()
    if not tests:
        yield from project.find_sessions()


class _PythonProject:
    def __init__(self, folder: ProjectFolder) -> None:
        self._project_folder = folder
        self._pyproject = parse_table(folder.read_text("pyproject.toml"), tomllib.loads)
        self._setup = parse_ini(folder.read_text("setup.cfg"))
        self._tox = parse_ini(folder.read_text("tox.ini"))
        self._folder = next((name for name in self._list_test_folders() if self._list_test_files(name)), "")

    def find_tests(self) -> Iterator[Check]:
        why = self._explain_pytest()
        if why:
            yield self._build_check("pytest", "test", why, module=True)
            return
        folder = self._folder
        if any("import unittest" in text or "from unittest" in text for text in self._read_sources(folder)):
            package = " -t ." if "__init__.py" in self._project_folder.list_names(folder) else ""
            line = f"{self._find_python()} -m unittest discover -v -s {folder}{package}"
            yield Check(name="unittest", line=line, kind="test", why=f"{folder}/ holds tests made with unittest.")
        elif any(PLAIN_TEST.search(text) for text in self._read_sources(folder)):
            yield self._build_check("pytest", "test", f"{folder}/ holds tests that are plain functions.", module=True)

    def _explain_pytest(self) -> str:
        """Return a sentence that names the file which configures pytest; else empty."""
        setups = {
            "pyproject.toml": bool(get_table(self._pyproject, "tool", "pytest")),
            **{
                name: name in self._project_folder.names
                for name in ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
            },
            "tox.ini": "pytest" in self._tox,
            "setup.cfg": "tool:pytest" in self._setup,
        }
        named = next((name for name, sets_up in setups.items() if sets_up), "")
        if named:
            return f"{named} sets up pytest."
        folder = self._folder
        if folder and (
            "conftest.py" in self._project_folder.list_names(folder) or "conftest.py" in self._project_folder.names
        ):
            return f"{folder}/ holds tests, and a conftest.py."
        if folder and any("import pytest" in text for text in self._read_sources(folder)):
            return f"{folder}/ holds tests that use pytest."
        for name in ("pyproject.toml", *REQUIREMENTS):
            if "pytest" in self._project_folder.read_text(name) and folder:
                return f"{name} names pytest, and there are tests."
        return ""

    def find_type_checks(self) -> Iterator[Check]:
        mypy = get_table(self._pyproject, "tool", "mypy") or self._setup.get("mypy")
        if mypy or self._project_folder.find_first("mypy.ini", ".mypy.ini"):
            where = "pyproject.toml" if get_table(self._pyproject, "tool", "mypy") else "setup.cfg"
            source = self._project_folder.find_first("mypy.ini", ".mypy.ini") or where
            listed = "files" in (mypy or parse_ini(self._project_folder.read_text(source)).get("mypy", {}))
            yield self._build_check("mypy", "types", f"{source} sets up mypy.", "" if listed else " .")
        if get_table(self._pyproject, "tool", "pyright") or "pyrightconfig.json" in self._project_folder.names:
            source = self._project_folder.find_first("pyrightconfig.json") or "pyproject.toml"
            yield self._build_check("pyright", "types", f"{source} sets up pyright.")

    def find_lint_checks(self) -> Iterator[Check]:
        ruff = self._project_folder.find_first("ruff.toml", ".ruff.toml")
        if ruff or get_table(self._pyproject, "tool", "ruff"):
            yield self._build_check("ruff", "lint", f"{ruff or 'pyproject.toml'} sets up ruff.", " check .")
        sections = {"setup.cfg": self._setup, "tox.ini": self._tox}
        flake8 = self._project_folder.find_first(".flake8") or next(
            (name for name, section in sections.items() if "flake8" in section), ""
        )
        if flake8:
            yield self._build_check("flake8", "lint", f"{flake8} sets up flake8.")

    def find_sessions(self) -> Iterator[Check]:
        if any(name.startswith(("testenv", "tox")) for name in self._tox) or get_table(self._pyproject, "tool", "tox"):
            source = "tox.ini" if self._tox else "pyproject.toml"
            means = self._project_folder.read_text("tox.ini")
            yield self._build_check("tox", "test", f"{source} sets up tox.", means=means)
        elif "noxfile.py" in self._project_folder.names:
            means = self._project_folder.read_text("noxfile.py")
            yield self._build_check("nox", "test", "noxfile.py defines sessions.", means=means)

    def _build_check(
        self, program: str, kind: CheckKind, why: str, arguments: str = "", *, module: bool = False, means: str = ""
    ) -> Check:
        line = f"{self._find_python()} -m {program}" if module else self._find_program(program)
        return Check(name=program, line=f"{line}{arguments}", kind=kind, why=why, means=means)

    def _find_python(self) -> str:
        venv = self._find_venv()
        runner = "" if venv else self._find_runner()
        return f"{venv}/bin/python" if venv else f"{runner} python" if runner else "python3"

    def _find_program(self, name: str) -> str:
        venv = self._find_venv()
        if venv and name in self._project_folder.list_names(f"{venv}/bin"):
            return f"{venv}/bin/{name}"
        runner = "" if venv else self._find_runner()
        return f"{runner} {name}" if runner else name

    def _find_venv(self) -> str:
        return next(
            (name for name in (".venv", "venv") if "python" in self._project_folder.list_names(f"{name}/bin")), ""
        )

    def _find_runner(self) -> str:
        locked = (runner for name, runner in LOCKFILE_RUNNERS if name in self._project_folder.names)
        return next((runner for runner in locked if self._project_folder.has_program(runner.partition(" ")[0])), "")

    def _list_test_folders(self) -> Iterator[str]:
        """Yield folders that may hold tests: test folders and their subfolders, packages, and the top level."""
        yield from TEST_FOLDER_NAMES
        yield from (
            f"{folder}/{name}"
            for folder in TEST_FOLDER_NAMES
            for name in sorted(self._project_folder.list_names(folder))
        )
        packages = (
            name
            for name in sorted(self._project_folder.names)
            if "__init__.py" in self._project_folder.list_names(name)
        )
        yield from (f"{package}/{folder}" for package in packages for folder in TEST_FOLDER_NAMES)
        yield "."

    def _list_test_files(self, folder: str) -> list[str]:
        names = self._project_folder.names if folder == "." else self._project_folder.list_names(folder)
        return sorted(name for name in names if name.endswith(".py") and (name.startswith("test_") or "_test." in name))

    def _read_sources(self, folder: str) -> Iterator[str]:
        prefix = "" if folder == "." else f"{folder}/"
        return (
            self._project_folder.read_text(f"{prefix}{name}")
            for name in self._list_test_files(folder)[:MAX_TEST_FILES_READ]
        )


SCRIPT_KINDS: Final[Mapping[str, CheckKind]] = {
    "test": "test",
    "typecheck": "types",
    "type-check": "types",
    "check-types": "types",
    "types": "types",
    "tsc": "types",
    "lint": "lint",
    "build": "build",
}
JS_LOCKFILES: Final = (
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
)
NPM_PLACEHOLDER: Final = "no test specified"
"""The text that `npm init` writes when there are no tests."""


def find_javascript_checks(folder: ProjectFolder) -> Iterator[Check]:
    """Find one check per script whose name marks it as a check."""
    package = parse_table(folder.read_text("package.json"), json.loads)
    scripts = {str(name): line for name, line in get_table(package, "scripts").items() if isinstance(line, str)}
    runner = _choose_js_runner(folder, str(package.get("packageManager", "")))
    for name, kind in SCRIPT_KINDS.items():
        line = scripts.get(name, "").strip()
        if not line or NPM_PLACEHOLDER in line:
            continue
        run = f"{runner} test" if name == "test" and runner != "bun" else f"{runner} run {name}"
        means = "\n".join(f"{each}: {scripts[each]}" for each in (name, f"pre{name}", f"post{name}") if each in scripts)
        yield Check(name=run, line=run, kind=kind, why=f"package.json has the script {name!r}.", means=means)


def _choose_js_runner(folder: ProjectFolder, named: str) -> str:
    declared = named.partition("@")[0]
    runners = [declared] if declared in {"npm", "pnpm", "yarn", "bun"} else []
    runners += [runner for name, runner in JS_LOCKFILES if name in folder.names]
    return next((runner for runner in runners if folder.has_program(runner)), "npm")


CMAKE_TEST_COMMAND: Final = (
    'dir=$(mktemp -d) && cmake -S . -B "$dir" >/dev/null && cmake --build "$dir" && '
    'ctest --test-dir "$dir" --output-on-failure'
)
"""Builds outside the tree, because build output is not part of the change."""


SIMPLE_CHECKS: Final[tuple[tuple[str, str, str, CheckKind], ...]] = (
    ("Cargo.toml", "cargo test --offline --no-fail-fast", "cargo test", "test"),
    ("go.mod", "go test -v ./...", "go test", "test"),  # without -v it names only what fails
    ("go.mod", "go vet ./...", "go vet", "lint"),
    ("mix.exs", "mix test", "mix test", "test"),
    ("Package.swift", "swift test", "swift test", "test"),
)
"""Files whose presence defines a check: file, line, name and kind."""


def find_other_checks(folder: ProjectFolder) -> Iterator[Check]:
    """Find the checks of the other languages in this folder."""
    for file, line, name, kind in SIMPLE_CHECKS:
        if file in folder.names:
            yield _make_check(line, f"{file} is there.", kind=kind, name=name)
    for find in (_find_ruby_checks, _find_java_checks, _find_deno_checks, _find_php_checks):
        yield from find(folder)
    text = folder.read_text("CMakeLists.txt").lower()
    if "enable_testing" in text or "include(ctest)" in text:
        yield _make_check(CMAKE_TEST_COMMAND, "CMakeLists.txt has tests.", name="ctest")
    solution = sorted(entry for entry in folder.names if entry.endswith((".sln", ".slnx", ".csproj", ".fsproj")))
    if solution:
        yield _make_check("dotnet test", f"{solution[0]} is there.")
    file = folder.find_first(".pre-commit-config.yaml", ".pre-commit-config.yml")
    if file:
        venv_prefix = next(
            (f"{entry}/bin/" for entry in (".venv", "venv") if "pre-commit" in folder.list_names(f"{entry}/bin")), ""
        )
        line = f"{venv_prefix}pre-commit run --all-files"
        yield _make_check(line, f"{file} is there.", kind="lint", name="pre-commit", means=folder.read_text(file))


def _make_check(line: str, why: str, *, kind: CheckKind = "test", name: str = "", means: str = "") -> Check:
    return Check(name=name or line, line=line, kind=kind, why=why, means=means)


def _find_ruby_checks(folder: ProjectFolder) -> Iterator[Check]:
    bundled = "bundle exec " if "Gemfile" in folder.names else ""
    if ".rspec" in folder.names or (bundled and "spec" in folder.names):
        source = folder.find_first(".rspec") or "spec/"
        yield _make_check(f"{bundled}rspec", f"{source} is there.", name="rspec")
    elif "Rakefile" in folder.names and "test" in folder.names:
        means = folder.read_text("Rakefile")
        yield _make_check(f"{bundled}rake test", "Rakefile and test/ are there.", name="rake test", means=means)
    if ".rubocop.yml" in folder.names:
        yield _make_check(f"{bundled}rubocop", ".rubocop.yml is there.", kind="lint", name="rubocop")


def _find_java_checks(folder: ProjectFolder) -> Iterator[Check]:
    gradle = folder.find_first("build.gradle.kts", "build.gradle")
    if "pom.xml" in folder.names:
        program = "./mvnw" if "mvnw" in folder.names else "mvn"
        yield _make_check(f"{program} -o -B test", "pom.xml is there.", name="mvn test")
    elif gradle:
        program = "./gradlew" if "gradlew" in folder.names else "gradle"
        yield _make_check(f"{program} --offline --console=plain test", f"{gradle} is there.", name="gradle test")


def _find_deno_checks(folder: ProjectFolder) -> Iterator[Check]:
    file = folder.find_first("deno.json", "deno.jsonc")
    if not file:
        return
    task = get_table(parse_table(folder.read_text(file), json.loads), "tasks").get("test")
    if isinstance(task, str):
        yield _make_check("deno task test", f"{file} has the task 'test'.", means=task)
    else:
        yield _make_check("deno test", f"{file} is there.")
    yield _make_check("deno lint", f"{file} is there.", kind="lint")


def _find_php_checks(folder: ProjectFolder) -> Iterator[Check]:
    script = get_table(parse_table(folder.read_text("composer.json"), json.loads), "scripts").get("test")
    file = folder.find_first("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
    if script:
        yield _make_check("composer test", "composer.json has the script 'test'.", means=str(script))
    elif file:
        yield _make_check("vendor/bin/phpunit", f"{file} is there.", name="phpunit")


TARGET_KINDS: Final[Mapping[str, CheckKind]] = {
    "check": "test",
    "test": "test",
    "tests": "test",
    "typecheck": "types",
    "types": "types",
    "lint": "lint",
}
RECIPE: Final = re.compile(r"^@?([^\s:=#][^:=#\n]*)::?(?!=).*(?:\n[ \t].*)*", re.MULTILINE)
"""A target with its indented lines; not a comment or a variable."""

RECIPE_FILES: Final = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
}


def find_recipe_checks(folder: ProjectFolder) -> Iterator[Check]:
    """Find recipes whose names mark them as checks. Of `check` and `test` in one file, the first is enough."""
    for program, names in RECIPE_FILES.items():
        file = folder.find_first(*names)
        if not file or not folder.has_program(program):
            continue
        targets: dict[str, str] = {}  # with their heads and lines, which a person approves
        for recipe in RECIPE.finditer(folder.read_text(file)):
            for name in {*recipe[1].split()} & {*TARGET_KINDS}:
                targets[name] = f"{targets[name]}\n{recipe[0]}" if name in targets else recipe[0]
        kinds: set[CheckKind] = set()
        for target, kind in TARGET_KINDS.items():
            if target in targets and kind not in kinds:
                kinds.add(kind)
                why = f"{file} has the {'target' if program == 'make' else 'recipe'} {target!r}."
                line = f"{program} {target}"
                yield Check(name=line, line=line, kind=kind, why=why, means=targets[target])


FINDERS: Final[tuple[Callable[[ProjectFolder], Iterator[Check]], ...]] = (
    find_python_checks,
    find_javascript_checks,
    find_other_checks,
)
CHECK_KINDS: Final[tuple[CheckKind, ...]] = get_args(CheckKind)
MAX_CHECKS: Final = 12
"""Maximum checks, so that a person can review them at once."""

PROGRAM_NAME: Final = re.compile(r"[\w.+-]+")
"""A word that can only be the name of a program on the PATH."""

MAX_DEPTH: Final = 2
MAX_PROJECTS: Final = 12
MAX_FOLDERS: Final = 300
"""Maximum folders that are searched: the search runs before the first output."""

PROJECT_FILES: Final = frozenset(
    {
        *("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py", "pytest.ini"),
        *("package.json", "deno.json", "Cargo.toml", "go.mod", "Makefile", "justfile", "Justfile"),
        *("pom.xml", "build.gradle", "build.gradle.kts", "mix.exs", "Gemfile", "composer.json", "CMakeLists.txt"),
    }
)
"""Files that mark the root of a project."""

SKIPPED_FOLDERS: Final = frozenset(
    {"node_modules", "vendor", "third_party", "target", "dist", "build", "venv", "__pycache__"}
)


def find_checks(view: FolderView) -> tuple[Check, ...]:
    """Return the checks of a folder. If it has no tests itself, include those of the projects below it."""
    here = find_checks_in(view)
    if any(check.kind == "test" for check in here):
        return here
    return find_checks_in(view, (".", *list_projects_below(view)))


def find_checks_in(view: FolderView, folders: Sequence[str] = (".",)) -> tuple[Check, ...]:
    """Return the checks of these folders, each once. Recipes count only if nothing else can run the tests."""
    checks: list[Check] = []
    for folder in dict.fromkeys(folders):
        project_folder = ProjectFolder(view, folder)
        direct = [check for find in FINDERS for check in find(project_folder)]
        if not any(check.kind == "test" and _has_program(project_folder, check.line) for check in direct):
            direct += find_recipe_checks(project_folder)
        named = {check.name for check in checks}
        for check in direct:
            placed = evolve(check, folder=folder)
            checks.append(evolve(placed, name=f"{check.name} ({folder})") if check.name in named else placed)
    return tuple(sorted(checks, key=lambda check: CHECK_KINDS.index(check.kind))[:MAX_CHECKS])


def _has_program(folder: ProjectFolder, line: str) -> bool:
    """Return whether the line's program exists, as far as its first word names one."""
    first = line.split(maxsplit=1)[0]
    return PROGRAM_NAME.fullmatch(first) is None or folder.has_program(first)


def list_projects_below(view: FolderView) -> tuple[str, ...]:
    """Return the project folders at most two levels down, sorted."""
    level, visited_count, found = ["."], 0, list[str]()
    for _ in range(MAX_DEPTH):
        names = ((folder, name) for folder in level for name in sorted(view.names(folder) - SKIPPED_FOLDERS))
        paths = [name if folder == "." else f"{folder}/{name}" for folder, name in names if not name.startswith(".")]
        below = paths[: MAX_FOLDERS - visited_count]
        visited_count += len(below)
        begun = [path for path in below if view.names(path) & PROJECT_FILES]
        found += begun
        level = [path for path in below if path not in begun]
    return tuple(sorted(found)[:MAX_PROJECTS])


TEST_FOLDERS: Final = frozenset(
    {
        *("test", "tests", "spec", "specs", "__tests__", "__snapshots__", "__mocks__", "__fixtures__", "testdata"),
        *("fixtures", "e2e", "cypress", "unit_tests", "integration_tests", "functional_tests", "test-data", "goldens"),
    }
)
"""Folders with tests, and with the data that tests compare results with."""

TEST_NAME: Final = re.compile(
    r"^tests?[_.-]|^test\.\w+$|[_.-](?:tests?|specs?)\.|\.(?:bats|feature|snap|t|golden)$|\.(?:snap|approved|golden)\."
)
CAMEL_CASE_TEST_NAME: Final = re.compile(
    r"^(?:Tests?[A-Z]\w*|\w*[a-z0-9](?:Tests?|TestCase|Specs?|IT))\."
    r"(?:java|kt|kts|scala|groovy|cs|fs|vb|swift|php|m|mm|c|cc|cpp|hs|dart|ts|tsx|js|jsx|py|rb)$"
)
"""`FooTest.java`, `TestFoo.kt`, `FooSpec.scala`, `FooIT.java`; not `latest.java`."""

CHECK_SETUP_NAMES: Final = frozenset(
    {
        *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "conftest.py", "tox.ini", "noxfile.py"),
        *("mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", ".flake8", ".coveragerc", "pyrightconfig.json"),
        *("pylintrc", ".pylintrc", ".pre-commit-config.yaml", ".rspec", ".rubocop.yml", "phpunit.xml"),
        *("phpunit.xml.dist", "phpstan.neon", "biome.json", "biome.jsonc", "clippy.toml", "rustfmt.toml"),
        *("pyproject.toml", "setup.cfg", "package.json", "makefile", "gnumakefile", "justfile", ".justfile"),
    }
)
CHECK_SETUP_PREFIXES: Final = (
    *("jest.config.", "jest.setup.", "vitest.config.", "vitest.setup.", "vitest.workspace.", "karma.conf."),
    *("playwright.config.", "cypress.config.", "ava.config.", ".mocharc", ".nycrc", ".c8rc", ".eslintrc"),
    *("eslint.config.", ".golangci."),
)
COMPILED_SUFFIXES: Final = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".pyx", ".pxd", ".f90", ".rs", ".go", ".zig")
"""Suffixes of sources whose built file may be in the person's folder."""


def is_test(path: str) -> bool:
    """Return whether a path is a test or its reference data."""
    place = PurePosixPath(path)
    if not TEST_FOLDERS.isdisjoint(part.lower() for part in place.parts[:-1]):
        return True
    return TEST_NAME.search(place.name.lower()) is not None or CAMEL_CASE_TEST_NAME.match(place.name) is not None


def is_check_setup(path: str) -> bool:
    """Return whether a file configures checks, wholly or partly."""
    name = PurePosixPath(path).name.lower()
    return name in CHECK_SETUP_NAMES or name.startswith(CHECK_SETUP_PREFIXES)
