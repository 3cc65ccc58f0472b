"""The repository of the story: small, real, made on the spot; and the name of all that is in it, byte for byte."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

CODE: Final = '''"""What the shop writes for others to read."""

import csv


def export(rows, out):
    """Write the rows as CSV."""
    csv.writer(out).writerows(rows)
'''
TESTS: Final = """import io
import unittest

from export import export


class Csv(unittest.TestCase):
    def test_rows_come_out_as_csv(self):
        out = io.StringIO()
        export([["tea", 3], ["cake", 5]], out)
        self.assertEqual(out.getvalue().split(), ["tea,3", "cake,5"])

    def test_nothing_comes_out_of_nothing(self):
        out = io.StringIO()
        export([], out)
        self.assertEqual(out.getvalue(), "")

    def test_prices_have_two_digits(self):
        out = io.StringIO()
        export([["tea", 3.5]], out)
        self.assertEqual(out.getvalue().split(), ["tea,3.50"])  # nobody ever came to it
"""
README: Final = "# The shop\n\n`export.py` writes what was sold as CSV.\n"
NOTES: Final = "Ask Lin about the prices.\n"
IGNORED: Final = "__pycache__/\n.pytest_cache/\n"
PYTEST: Final = "[tool.pytest.ini_options]\n{options}"
ALONE: Final = (8, 4)
"""The first version of pytest that can be told to leave the plugins of others alone: they are nothing to the shop."""

LOOSE: Final = "notes.txt"
"""What its person has not committed."""

OLD: Final = "test_prices_have_two_digits"
"""The test that fails before anybody has touched anything."""

PASSING: Final = 2
"""Tests that pass then."""

TOGETHER: Final = ("GIT_CONFIG", "GIT_SSL", "GIT_TRACE")
"""What of git's variables does not lead it to another repository, nor says who commits."""

LENGTH: Final = 12
"""Characters of a name of everything that people compare."""


@record
class Person:
    """In whose name is committed."""

    name: str
    email: str


def surroundings() -> dict[str, str]:
    """This process's environment, without what would lead git elsewhere."""
    return {one: text for one, text in os.environ.items() if not one.startswith("GIT_") or one.startswith(TOGETHER)}


def git(root: Path, *words: str) -> str:
    """What git says there. `WorldFault` if it cannot."""
    try:
        done = subprocess.run(
            ("git", *words), cwd=root, env=surroundings(), capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise WorldFault("git is not here, or its folder is gone. Install git, and try again.") from None
    if done.returncode:
        raise WorldFault(f"git {words[0]} failed in {str(root)!r}: {done.stderr.strip()}")
    return done.stdout


def found_pytest() -> tuple[int, ...]:
    """The version of the pytest that Greenroom's own Python has; empty if it has none."""
    try:
        found = metadata.version("pytest")
    except metadata.PackageNotFoundError:
        return ()
    return tuple(int(one) for one in found.split(".")[:2] if one.isdigit())


def files(pytest: tuple[int, ...]) -> Mapping[str, str]:
    """What is committed. Without pytest the same tests are run by Python's own `unittest`."""
    every = {"export.py": CODE, "tests/test_export.py": TESTS, "README.md": README, ".gitignore": IGNORED}
    if not pytest:
        return every
    options = 'pythonpath = ["."]\n' + ('addopts = "--disable-plugin-autoload"\n' if pytest >= ALONE else "")
    return {**every, "pyproject.toml": PYTEST.format(options=options)}


def made(root: Path, pytest: tuple[int, ...]) -> None:
    """The repository there, tested by this version of pytest. One that is there is taken as it stands."""
    if (root / ".git").exists():
        return
    root.mkdir(parents=True)
    for name, text in files(pytest).items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    person = _person(root)
    git(root, "init", "--quiet", "--template=", "--initial-branch=main")
    for key, value in _settings(person).items():
        git(root, "config", key, value)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=The shop")
    (root / LOOSE).write_text(NOTES, encoding="utf-8")


def wants_pytest(root: Path) -> bool:
    """Whether pytest runs its tests."""
    return (root / "pyproject.toml").exists()


def _settings(person: Person) -> Mapping[str, str]:
    """Of this repository only: nobody is asked for a passphrase, and nobody's own hooks run for a demo."""
    return {
        "user.name": person.name,
        "user.email": person.email,
        "commit.gpgsign": "false",
        "core.hooksPath": ".git/hooks",
        "core.autocrlf": "false",
    }


def _person(root: Path) -> Person:
    """Who sits here, as git knows them; somebody, if it does not."""
    name, email = (_own(root, key) for key in ("user.name", "user.email"))
    return Person(name=name or "You", email=email or "you@localhost")


def _own(root: Path, key: str) -> str:
    try:
        return git(root, "config", "--get", key).strip()
    except WorldFault:
        return ""


def whole(root: Path) -> str:
    """A name for all that is there: bytes and modes of every file, and what git says of its index and its branch."""
    name = hashlib.sha256()
    for path in sorted(one for one in root.rglob("*") if ".git" not in one.relative_to(root).parts):
        if path.is_file():
            head = f"{path.relative_to(root)} {path.lstat().st_mode:o} {path.stat().st_size}\n"
            name.update(head.encode() + path.read_bytes())
    for words in (("rev-parse", "HEAD"), ("ls-files", "--stage"), ("status", "--porcelain=v2", "--branch")):
        name.update(git(root, *words).encode())
    return name.hexdigest()[:LENGTH]
