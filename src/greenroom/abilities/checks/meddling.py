"""What the work changed of what judges it: existing tests, the set-up of checks, the commands themselves.

Tests that are only added are work like any other. What is changed may be right all the same: a person says so, or the
checks as they were before pass on the new code too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final, Literal

from greenroom.abilities.checks.closure import Closure
from greenroom.abilities.checks.looking import ini, json_object, table, toml
from greenroom.abilities.checks.python_tests import rewritten
from greenroom.abilities.checks.shadowing import shadowed
from greenroom.core.base.records import Data, encode, record
from greenroom.core.ports.checks import Check

TESTS: Final = frozenset({"test", "tests", "spec", "specs", "__tests__", "__snapshots__", "testdata", "fixtures"})
SET_UP: Final = frozenset(
    {
        *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "conftest.py", "tox.ini", "noxfile.py"),
        *("mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", ".flake8", ".coveragerc", "pyrightconfig.json"),
        *("sitecustomize.py", "usercustomize.py", ".pre-commit-config.yaml", ".rspec", ".rubocop.yml", "phpunit.xml"),
        *("tsconfig.json", ".mocharc.json", ".mocharc.js", ".nycrc", "biome.json", ".eslintignore"),
    }
)
BEGINNINGS: Final = (
    "jest.config.",
    "vitest.config.",
    "karma.conf.",
    "playwright.config.",
    ".eslintrc",
    "eslint.config.",
)
TABLES: Final = ("pytest", "ruff", "mypy", "coverage", "pyright", "tox", "black", "flake8")
SECTIONS: Final = ("tool:pytest", "mypy", "flake8", "coverage")


@record
class Changed:
    """A file that the work has changed; None where there was or is none."""

    path: str
    before: bytes | None = None
    after: bytes | None = None


@record
class Meddled:
    """One thing that was changed, in a sentence. Where `path` is put back as it was, it can be checked without it.

    A `doubtful` one may be the work itself: a program that a check runs.
    """

    kind: Literal["test", "set-up", "command"]
    path: str
    said: str
    doubtful: bool = False


def judges(path: str) -> bool:
    """Whether a file has a say in what the checks find: whoever asks about changes need not read the others."""
    name = PurePosixPath(path).name
    known = name in {"pyproject.toml", "setup.cfg", "package.json"}
    return known or is_test(path) or _is_set_up(name) or bool(shadowed(path))


def is_test(path: str) -> bool:
    """Whether a path is one of tests, or of what they are compared with."""
    place = PurePosixPath(path)
    stem = place.name.lower()
    if any(part.lower() in TESTS for part in place.parts[:-1]):
        return True
    return stem.startswith("test_") or any(one in stem for one in ("_test.", ".test.", ".spec.", "_spec.", ".snap"))


def meddled(changes: Iterable[Changed]) -> tuple[Meddled, ...]:
    """What these changes do to tests and to the set-up of checks."""
    return tuple(found for change in changes for found in _found(change))


def run_by_checks(changes: Iterable[Changed], judging: Closure) -> tuple[Meddled, ...]:
    """Files that the checks run or use, near or far, and that the work has changed, or put beside them."""
    return tuple(
        Meddled(
            kind="command",
            path=one.path,
            said=f"{one.path}, which {check!r} runs or uses, was {_how(one)}.",
            doubtful=judging.is_doubtful(one.path),
        )
        for one in changes
        if not _is_known_test(one) and (check := judging.check_of(one.path))
    )


def _is_known_test(change: Changed) -> bool:
    """Whether `meddled` can tell by its text what was done to it: tests that are only added are work."""
    return is_test(change.path) and (change.before is None or change.path.endswith(".py"))


def _how(change: Changed) -> str:
    return "added" if change.before is None else "deleted" if change.after is None else "changed"


def redefined(base: Sequence[Check], now: Sequence[Check]) -> tuple[Meddled, ...]:
    """Checks of which the command, or what it stands for, is not what it was on the base."""
    known = {(one.name, one.folder): one for one in now}
    return tuple(found for one in base if not one.own for found in _redefined(one, known.get((one.name, one.folder))))


def _redefined(base: Check, now: Check | None) -> Iterator[Meddled]:
    if now is None:
        said = f"The check {base.name!r} is not defined any more: {base.why.rstrip('.')} no longer."
        yield Meddled(kind="command", path=_file(base), said=said)
    elif now.digest != base.digest:
        means = " ".join(now.means.split())[:120]
        told = f", and now means: {means}" if means else ""
        yield Meddled(kind="command", path=_file(base), said=f"What {base.name!r} runs was changed{told}.")


def _file(check: Check) -> str:
    """The file that says so: the first word of the reason."""
    name = check.why.partition(" ")[0]
    return name if check.folder == "." else f"{check.folder}/{name}"


def _found(change: Changed) -> Iterator[Meddled]:
    name = PurePosixPath(change.path).name
    if change.before == change.after:
        return
    how = _how(change)
    if change.before is None and shadowed(change.path) and not is_test(change.path):
        said = f"{change.path}, which takes the place of {shadowed(change.path)!r} when checks run, was {how}."
        yield Meddled(kind="set-up", path=change.path, said=said)
    elif _is_set_up(name):
        yield Meddled(kind="set-up", path=change.path, said=f"{change.path}, which sets up checks, was {how}.")
    elif name in {"pyproject.toml", "setup.cfg", "package.json"}:
        if _settings(name, change.before) != _settings(name, change.after):
            said = f"The settings of checks in {change.path} were changed."
            yield Meddled(kind="set-up", path=change.path, said=said)
    elif is_test(change.path) and change.before is not None:
        yield from _test(change, change.before)


def _is_set_up(name: str) -> bool:
    return name in SET_UP or name.startswith(BEGINNINGS) or name.endswith(".pth")


def _settings(name: str, content: bytes | None) -> bytes:
    """The part of a file that is for checks, in one form."""
    text = (content or b"").decode("utf-8-sig", "replace")
    found: Data
    if name == "pyproject.toml":
        found = {key: table(toml(text), "tool", key) for key in TABLES}
    elif name == "setup.cfg":
        found = {key: value for key, value in ini(text).items() if key.startswith(SECTIONS)}
    else:
        found = {key: json_object(text).get(key) for key in ("jest", "mocha", "vitest", "eslintConfig", "c8", "nyc")}
    return encode(_plain(found))


def _plain(value: object) -> object:
    """What can be written down: TOML has dates."""
    if isinstance(value, dict):
        return {str(key): _plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _test(change: Changed, before: bytes) -> Iterator[Meddled]:
    if change.after is None:
        yield Meddled(kind="test", path=change.path, said=f"{change.path} was deleted.")
        return
    if change.path.endswith(".py"):
        names = rewritten(before, change.after)
        if names:
            told = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            yield Meddled(kind="test", path=change.path, said=f"Existing tests in {change.path} were changed: {told}.")
    elif not _only_added(before, change.after):
        yield Meddled(kind="test", path=change.path, said=f"Existing lines of {change.path} were changed.")


def _only_added(before: bytes, after: bytes) -> bool:
    """Whether all old lines are still there, in their order."""
    lines = iter(line.rstrip() for line in after.splitlines())
    return all(any(line.rstrip() == one for one in lines) for line in before.splitlines())
