"""The checks of a Python project, in its own environment: pytest or unittest, mypy, pyright, ruff, flake8, tox, nox."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from greenroom.abilities.checks.looking import Place, ini, table, toml
from greenroom.core.ports.checks import Check, CheckKind

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
        self._pyproject = toml(place.text("pyproject.toml"))
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
        tool = table(self._pyproject, "tool")
        if table(tool, "pytest"):
            return "pyproject.toml sets up pytest."
        for name in ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"):
            if name in self._place.names:
                return f"{name} sets up pytest."
        if "pytest" in self._tox:
            return "tox.ini sets up pytest."
        if "tool:pytest" in self._setup:
            return "setup.cfg sets up pytest."
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
