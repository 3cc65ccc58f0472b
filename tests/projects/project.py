"""Describe a public project: where it comes from, how its developer sets it up, and two changes to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Registry = Literal["pypi", "npm", "crates"]
VERIFIED, FAILED, UNVERIFIED = 0, 1, 7


@dataclass(frozen=True)
class Edit:
    """Replace `search`, which occurs once in the file; without `search` the file is new and `replace` its content."""

    file: str
    replace: str
    search: str = ""


@dataclass(frozen=True)
class Change:
    """What the person asks for, and the edits that the model makes."""

    request: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Expected:
    """The exit codes of `greenroom run` for the right and for the breaking change in one tier of the sandbox."""

    right: int = VERIFIED
    breaking: int = FAILED


IMPORTS_YOUR_FILES = Expected(right=UNVERIFIED, breaking=UNVERIFIED)
"""An editable install of a `src` layout: without a mount the tests import the person's files, so nothing is judged."""


@dataclass(frozen=True)
class Project:
    """One row of the table.

    `test` is the project's own test command, typed by hand. `packages` are pinned and installed beside it. `brought`
    are files that the project's repository has and its archive lacks, written here. `tracked` are files that the
    repository tracks although its own .gitignore names them.
    """

    name: str
    registry: Registry
    version: str
    kind: str
    test: tuple[str, ...]
    right: Change
    breaking: Change
    packages: tuple[str, ...] = ()
    editable: bool = False
    brought: Mapping[str, str] = field(default_factory=dict)
    tracked: tuple[str, ...] = ()
    bubblewrap: Expected = Expected()
    landlock: Expected = Expected()
