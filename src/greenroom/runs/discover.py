"""Which checks a project has, as its own files say, and which of its files are tests or set up checks.

There is one reader per ecosystem. Files are looked at, nothing is run.
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

LONGEST: Final = 1_000_000
"""Bytes of a file that is read; nobody writes longer ones by hand."""


class Look(Protocol):
    """A folder that is looked at. Nothing is ever raised: what cannot be seen is not there."""

    def read(self, path: str) -> bytes | None:
        """What stands in this file; None where there is none that can be read."""
        ...

    def names(self, folder: str) -> frozenset[str]:
        """What lies in this folder, by name."""
        ...

    def has_program(self, name: str) -> bool:
        """Whether this machine has a program of this name on its PATH."""
        ...


class Place:
    """One folder of a project, as its checks are found in it."""

    def __init__(self, look: Look, folder: str = ".") -> None:
        self._look = look
        self.folder = folder
        self.names = look.names(folder)
        self.has_program = look.has_program

    def text(self, name: str) -> str:
        """A file of it as text; empty when it is not there, or too long to have been written by anybody."""
        if "/" not in name and name not in self.names:
            return ""
        content = self._look.read(self._path(name))
        if content is None or len(content) > LONGEST:
            return ""
        return content.decode("utf-8-sig", "replace")

    def inside(self, folder: str) -> frozenset[str]:
        """What lies in a folder of it."""
        return self._look.names(self._path(folder))

    def first(self, *names: str) -> str:
        """The first of these that is there; empty for none."""
        return next((name for name in names if name in self.names), "")

    def _path(self, name: str) -> str:
        return name if self.folder == "." else f"{self.folder}/{name}"


def parse(text: str, parser: Callable[[str], object]) -> Data:
    """A TOML or JSON file as far as it is one table."""
    try:
        found = parser(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def ini(text: str) -> Mapping[str, Mapping[str, str]]:
    """The sections of an INI file as far as it is one."""
    parser = ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
        return {name: {key: value or "" for key, value in parser[name].items()} for name in parser.sections()}
    except (NotIni, ValueError, AttributeError, RecursionError):
        return {}


def table(data: Data, *path: str) -> Data:
    """A table deep inside; empty where there is none."""
    found: object = data
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


FOLDERS: Final = ("tests", "test")
READ: Final = 20
"""Files of tests that are looked into."""

PLAIN_TEST: Final = re.compile(r"^(?:async )?def test_|^class Test", re.MULTILINE)
"""What only pytest finds: functions, and classes that are not of unittest."""

RUNNERS: Final = (
    ("uv.lock", "uv run --offline"),
    ("poetry.lock", "poetry run"),
    ("pdm.lock", "pdm run"),
    ("Pipfile.lock", "pipenv run"),
)
REQUIREMENTS: Final = ("requirements-dev.txt", "requirements-test.txt", "requirements.txt", "Pipfile", "setup.py")


def python(place: Place) -> Iterator[Check]:
    """Tests, types, lint; tox or nox only where nothing else runs the tests: they build environments of their own."""
    project = _Project(place)
    tests = list(project.tests())
    yield from tests
    yield from project.types()
    yield from project.lint()
    if not tests:
        yield from project.sessions()


class _Project:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._pyproject = parse(place.text("pyproject.toml"), tomllib.loads)
        self._setup = ini(place.text("setup.cfg"))
        self._tox = ini(place.text("tox.ini"))
        self._folder = next((one for one in self._test_folders() if self._test_files(one)), "")

    def tests(self) -> Iterator[Check]:
        why = self._wants_pytest()
        if why:
            yield self._check("pytest", "test", why, module=True)
            return
        folder = self._folder
        if any("import unittest" in text or "from unittest" in text for text in self._sources(folder)):
            package = " -t ." if "__init__.py" in self._place.inside(folder) else ""
            line = f"{self._python()} -m unittest discover -v -s {folder}{package}"
            yield Check(name="unittest", line=line, kind="test", why=f"{folder}/ holds tests made with unittest.")
        elif any(PLAIN_TEST.search(text) for text in self._sources(folder)):
            yield self._check("pytest", "test", f"{folder}/ holds tests that are plain functions.", module=True)

    def _wants_pytest(self) -> str:
        """Which file says that pytest runs the tests, in a sentence; empty for none."""
        setups = {
            "pyproject.toml": bool(table(self._pyproject, "tool", "pytest")),
            **{
                name: name in self._place.names for name in ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
            },
            "tox.ini": "pytest" in self._tox,
            "setup.cfg": "tool:pytest" in self._setup,
        }
        named = next((name for name, sets_up in setups.items() if sets_up), "")
        if named:
            return f"{named} sets up pytest."
        folder = self._folder
        if folder and ("conftest.py" in self._place.inside(folder) or "conftest.py" in self._place.names):
            return f"{folder}/ holds tests, and a conftest.py."
        if folder and any("import pytest" in text for text in self._sources(folder)):
            return f"{folder}/ holds tests that use pytest."
        for name in ("pyproject.toml", *REQUIREMENTS):
            if "pytest" in self._place.text(name) and folder:
                return f"{name} names pytest, and there are tests."
        return ""

    def types(self) -> Iterator[Check]:
        mypy = table(self._pyproject, "tool", "mypy") or self._setup.get("mypy")
        if mypy or self._place.first("mypy.ini", ".mypy.ini"):
            where = "pyproject.toml" if table(self._pyproject, "tool", "mypy") else "setup.cfg"
            source = self._place.first("mypy.ini", ".mypy.ini") or where
            listed = "files" in (mypy or ini(self._place.text(source)).get("mypy", {}))
            yield self._check("mypy", "types", f"{source} sets up mypy.", "" if listed else " .")
        if table(self._pyproject, "tool", "pyright") or "pyrightconfig.json" in self._place.names:
            source = self._place.first("pyrightconfig.json") or "pyproject.toml"
            yield self._check("pyright", "types", f"{source} sets up pyright.")

    def lint(self) -> Iterator[Check]:
        ruff = self._place.first("ruff.toml", ".ruff.toml")
        if ruff or table(self._pyproject, "tool", "ruff"):
            yield self._check("ruff", "lint", f"{ruff or 'pyproject.toml'} sets up ruff.", " check .")
        sections = {"setup.cfg": self._setup, "tox.ini": self._tox}
        flake8 = self._place.first(".flake8") or next((name for name, one in sections.items() if "flake8" in one), "")
        if flake8:
            yield self._check("flake8", "lint", f"{flake8} sets up flake8.")

    def sessions(self) -> Iterator[Check]:
        if any(name.startswith(("testenv", "tox")) for name in self._tox) or table(self._pyproject, "tool", "tox"):
            source = "tox.ini" if self._tox else "pyproject.toml"
            means = self._place.text("tox.ini")
            yield self._check("tox", "test", f"{source} sets up tox.", means=means)
        elif "noxfile.py" in self._place.names:
            means = self._place.text("noxfile.py")
            yield self._check("nox", "test", "noxfile.py defines sessions.", means=means)

    def _check(
        self, program: str, kind: CheckKind, why: str, arguments: str = "", *, module: bool = False, means: str = ""
    ) -> Check:
        line = f"{self._python()} -m {program}" if module else self._program(program)
        return Check(name=program, line=f"{line}{arguments}", kind=kind, why=why, means=means)

    def _python(self) -> str:
        own = self._venv()
        runner = "" if own else self._runner()
        return f"{own}/bin/python" if own else f"{runner} python" if runner else "python3"

    def _program(self, name: str) -> str:
        own = self._venv()
        if own and name in self._place.inside(f"{own}/bin"):
            return f"{own}/bin/{name}"
        runner = "" if own else self._runner()
        return f"{runner} {name}" if runner else name

    def _venv(self) -> str:
        return next((one for one in (".venv", "venv") if "python" in self._place.inside(f"{one}/bin")), "")

    def _runner(self) -> str:
        locked = (runner for name, runner in RUNNERS if name in self._place.names)
        return next((runner for runner in locked if self._place.has_program(runner.partition(" ")[0])), "")

    def _test_folders(self) -> Iterator[str]:
        """Where tests may lie: in a folder of their own and one below it, in a package, or on the top level."""
        yield from FOLDERS
        yield from (f"{folder}/{name}" for folder in FOLDERS for name in sorted(self._place.inside(folder)))
        packages = (name for name in sorted(self._place.names) if "__init__.py" in self._place.inside(name))
        yield from (f"{package}/{folder}" for package in packages for folder in FOLDERS)
        yield "."

    def _test_files(self, folder: str) -> list[str]:
        names = self._place.names if folder == "." else self._place.inside(folder)
        return sorted(one for one in names if one.endswith(".py") and (one.startswith("test_") or "_test." in one))

    def _sources(self, folder: str) -> Iterator[str]:
        prefix = "" if folder == "." else f"{folder}/"
        return (self._place.text(f"{prefix}{name}") for name in self._test_files(folder)[:READ])


SCRIPTS: Final[Mapping[str, CheckKind]] = {
    "test": "test",
    "typecheck": "types",
    "type-check": "types",
    "check-types": "types",
    "types": "types",
    "tsc": "types",
    "lint": "lint",
    "build": "build",
}
LOCKS: Final = (
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
)
PLACEHOLDER: Final = "no test specified"
"""What `npm init` writes where there are no tests."""


def javascript(place: Place) -> Iterator[Check]:
    """One for each script that is a check by its name."""
    package = parse(place.text("package.json"), json.loads)
    scripts = {str(name): line for name, line in table(package, "scripts").items() if isinstance(line, str)}
    runner = _runner(place, str(package.get("packageManager", "")))
    for name, kind in SCRIPTS.items():
        line = scripts.get(name, "").strip()
        if not line or PLACEHOLDER in line:
            continue
        run = f"{runner} test" if name == "test" and runner != "bun" else f"{runner} run {name}"
        means = "\n".join(f"{each}: {scripts[each]}" for each in (name, f"pre{name}", f"post{name}") if each in scripts)
        yield Check(name=run, line=run, kind=kind, why=f"package.json has the script {name!r}.", means=means)


def _runner(place: Place, named: str) -> str:
    said = named.partition("@")[0]
    wanted = [said] if said in {"npm", "pnpm", "yarn", "bun"} else []
    wanted += [runner for name, runner in LOCKS if name in place.names]
    return next((runner for runner in wanted if place.has_program(runner)), "npm")


BUILT: Final = (
    'dir=$(mktemp -d) && cmake -S . -B "$dir" >/dev/null && cmake --build "$dir" && '
    'ctest --test-dir "$dir" --output-on-failure'
)
"""Outside of the tree: what is built is not part of the work."""


PLAIN: Final[tuple[tuple[str, str, str, CheckKind], ...]] = (
    ("Cargo.toml", "cargo test --offline --no-fail-fast", "cargo test", "test"),
    ("go.mod", "go test -v ./...", "go test", "test"),  # without -v it names only what fails
    ("go.mod", "go vet ./...", "go vet", "lint"),
    ("mix.exs", "mix test", "mix test", "test"),
    ("Package.swift", "swift test", "swift test", "test"),
)
"""A file that is enough to know a check: its line, name and kind."""


def others(place: Place) -> Iterator[Check]:
    """What the files of this folder say, one language after the other."""
    for file, line, name, kind in PLAIN:
        if file in place.names:
            yield _of(line, f"{file} is there.", kind=kind, name=name)
    for find in (_ruby, _java, _deno, _php):
        yield from find(place)
    text = place.text("CMakeLists.txt").lower()
    if "enable_testing" in text or "include(ctest)" in text:
        yield _of(BUILT, "CMakeLists.txt has tests.", name="ctest")
    solution = sorted(one for one in place.names if one.endswith((".sln", ".slnx", ".csproj", ".fsproj")))
    if solution:
        yield _of("dotnet test", f"{solution[0]} is there.")
    file = place.first(".pre-commit-config.yaml", ".pre-commit-config.yml")
    if file:
        own = next((f"{one}/bin/" for one in (".venv", "venv") if "pre-commit" in place.inside(f"{one}/bin")), "")
        line = f"{own}pre-commit run --all-files"
        yield _of(line, f"{file} is there.", kind="lint", name="pre-commit", means=place.text(file))


def _of(line: str, why: str, *, kind: CheckKind = "test", name: str = "", means: str = "") -> Check:
    return Check(name=name or line, line=line, kind=kind, why=why, means=means)


def _ruby(place: Place) -> Iterator[Check]:
    bundled = "bundle exec " if "Gemfile" in place.names else ""
    if ".rspec" in place.names or (bundled and "spec" in place.names):
        source = place.first(".rspec") or "spec/"
        yield _of(f"{bundled}rspec", f"{source} is there.", name="rspec")
    elif "Rakefile" in place.names and "test" in place.names:
        means = place.text("Rakefile")
        yield _of(f"{bundled}rake test", "Rakefile and test/ are there.", name="rake test", means=means)
    if ".rubocop.yml" in place.names:
        yield _of(f"{bundled}rubocop", ".rubocop.yml is there.", kind="lint", name="rubocop")


def _java(place: Place) -> Iterator[Check]:
    gradle = place.first("build.gradle.kts", "build.gradle")
    if "pom.xml" in place.names:
        program = "./mvnw" if "mvnw" in place.names else "mvn"
        yield _of(f"{program} -o -B test", "pom.xml is there.", name="mvn test")
    elif gradle:
        program = "./gradlew" if "gradlew" in place.names else "gradle"
        yield _of(f"{program} --offline --console=plain test", f"{gradle} is there.", name="gradle test")


def _deno(place: Place) -> Iterator[Check]:
    file = place.first("deno.json", "deno.jsonc")
    if not file:
        return
    task = table(parse(place.text(file), json.loads), "tasks").get("test")
    if isinstance(task, str):
        yield _of("deno task test", f"{file} has the task 'test'.", means=task)
    else:
        yield _of("deno test", f"{file} is there.")
    yield _of("deno lint", f"{file} is there.", kind="lint")


def _php(place: Place) -> Iterator[Check]:
    script = table(parse(place.text("composer.json"), json.loads), "scripts").get("test")
    file = place.first("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
    if script:
        yield _of("composer test", "composer.json has the script 'test'.", means=str(script))
    elif file:
        yield _of("vendor/bin/phpunit", f"{file} is there.", name="phpunit")


TARGETS: Final[Mapping[str, CheckKind]] = {
    "check": "test",
    "test": "test",
    "tests": "test",
    "typecheck": "types",
    "types": "types",
    "lint": "lint",
}
RECIPE: Final = re.compile(r"^@?([^\s:=#][^:=#\n]*)::?(?!=).*(?:\n[ \t].*)*", re.MULTILINE)
"""A target with its indented lines; not a comment or a variable."""

FILES: Final = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
}


def recipes(place: Place) -> Iterator[Check]:
    """Those that are checks by their names. Of `check` and `test` in one file the first that is there is enough."""
    for program, names in FILES.items():
        file = place.first(*names)
        if not file or not place.has_program(program):
            continue
        targets = _targets(place.text(file))
        kinds: set[CheckKind] = set()
        for target, kind in TARGETS.items():
            if target in targets and kind not in kinds:
                kinds.add(kind)
                why = f"{file} has the {'target' if program == 'make' else 'recipe'} {target!r}."
                line = f"{program} {target}"
                yield Check(name=line, line=line, kind=kind, why=why, means=targets[target])


def _targets(text: str) -> dict[str, str]:
    """Each target that is a check by its name, with its head and its own lines: what a person agrees to."""
    found: dict[str, str] = {}
    for recipe in RECIPE.finditer(text):
        for name in {*recipe[1].split()} & {*TARGETS}:
            found[name] = f"{found[name]}\n{recipe[0]}" if name in found else recipe[0]
    return found


FINDERS: Final[tuple[Callable[[Place], Iterator[Check]], ...]] = (python, javascript, others)
KINDS: Final[tuple[CheckKind, ...]] = get_args(CheckKind)
MOST: Final = 12
"""Checks that a person can be shown at once."""

PROGRAM: Final = re.compile(r"[\w.+-]+")
"""A word that can only be the name of a program on the PATH."""

DEEP: Final = 2
PROJECTS: Final = 12
LOOKED_AT: Final = 300
"""Folders that are looked into: it is done before the first line is shown."""

BEGINS: Final = frozenset(
    {
        *("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py", "pytest.ini"),
        *("package.json", "deno.json", "Cargo.toml", "go.mod", "Makefile", "justfile", "Justfile"),
        *("pom.xml", "build.gradle", "build.gradle.kts", "mix.exs", "Gemfile", "composer.json", "CMakeLists.txt"),
    }
)
"""Files with which a project begins."""

NOT_OURS: Final = frozenset({"node_modules", "vendor", "third_party", "target", "dist", "build", "venv", "__pycache__"})


def find_checks(look: Look) -> tuple[Check, ...]:
    """The checks of a folder; where it has no tests itself, also those of the projects below it."""
    here = found(look)
    if any(check.kind == "test" for check in here):
        return here
    return found(look, (".", *projects_below(look)))


def found(look: Look, folders: Sequence[str] = (".",)) -> tuple[Check, ...]:
    """The checks of these folders, none twice. Recipes count only where nothing else can run the tests."""
    every: list[Check] = []
    for folder in dict.fromkeys(folders):
        place = Place(look, folder)
        direct = [check for find in FINDERS for check in find(place)]
        if not any(check.kind == "test" and _has_program(place, check.line) for check in direct):
            direct += recipes(place)
        named = {check.name for check in every}
        for check in direct:
            placed = evolve(check, folder=folder)
            every.append(evolve(placed, name=f"{check.name} ({folder})") if check.name in named else placed)
    return tuple(sorted(every, key=lambda check: KINDS.index(check.kind))[:MOST])


def _has_program(place: Place, line: str) -> bool:
    """Whether the machine has the program of a line, as far as its first word names one."""
    first = line.split(maxsplit=1)[0]
    return PROGRAM.fullmatch(first) is None or place.has_program(first)


def projects_below(look: Look) -> tuple[str, ...]:
    """The folders in which a project begins, at most two deep, in their order."""
    level, looked, found = ["."], 0, list[str]()
    for _ in range(DEEP):
        names = ((folder, name) for folder in level for name in sorted(look.names(folder) - NOT_OURS))
        paths = [name if folder == "." else f"{folder}/{name}" for folder, name in names if not name.startswith(".")]
        below = paths[: LOOKED_AT - looked]
        looked += len(below)
        begun = [path for path in below if look.names(path) & BEGINS]
        found += begun
        level = [path for path in below if path not in begun]
    return tuple(sorted(found)[:PROJECTS])


TEST_FOLDERS: Final = frozenset(
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
    if not TEST_FOLDERS.isdisjoint(part.lower() for part in place.parts[:-1]):
        return True
    return TESTS.search(place.name.lower()) is not None or IN_CAPITALS.match(place.name) is not None


def is_check_setup(path: str) -> bool:
    """Whether a file sets up checks, as a whole or in part."""
    name = PurePosixPath(path).name.lower()
    return name in SET_UP or name.startswith(BEGINNINGS)


def is_compiled(path: str) -> bool:
    """Whether a file is built into another one before tests can use it."""
    return path.lower().endswith(COMPILED)
