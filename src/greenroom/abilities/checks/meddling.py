"""What the work changed of what judges it: existing tests, the set-up of checks, the commands themselves.

Tests that are only added are work like any other. What is changed may be right all the same: a person says so, or the
checks as they were before pass on the new code too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from greenroom.abilities.checks.closure import Closure
from greenroom.abilities.checks.judge_names import ignores, in_part, is_set_up, is_test
from greenroom.abilities.checks.looking import ini, json_object, table, toml
from greenroom.abilities.checks.python_tests import rewritten
from greenroom.abilities.checks.shadowing import shadowed
from greenroom.core.base.records import Data, encode, record

TABLES: Final = (
    *(
        "pytest",
        "ruff",
        "mypy",
        "coverage",
        "pyright",
        "basedpyright",
        "tox",
        "nox",
        "black",
        "flake8",
        "pylint",
        "isort",
    ),
)

SECTIONS: Final = ("tool:pytest", "pytest", "mypy", "flake8", "coverage", "pylint", "isort", "tox", "aliases")
KEYS: Final = (
    *("jest", "mocha", "vitest", "ava", "tap", "c8", "nyc", "babel", "eslintConfig", "eslintIgnore", "prettier"),
    *("stylelint", "xo", "standard", "lint-staged"),
)


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
    return bool(in_part(path)) or is_test(path) or is_set_up(path) or ignores(path) or bool(shadowed(path))


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


def _found(change: Changed) -> Iterator[Meddled]:
    if change.before == change.after:
        return
    path, how = change.path, _how(change)
    if change.before is None and shadowed(path) and not is_test(path):
        said = f"{path}, which takes the place of {shadowed(path)!r} when checks run, was {how}."
        yield Meddled(kind="set-up", path=path, said=said)
    elif is_set_up(path):
        yield Meddled(kind="set-up", path=path, said=f"{path}, which sets up checks, was {how}.")
    elif ignores(path):
        yield Meddled(kind="set-up", path=path, said=f"{path}, which says what is no part of the work, was {how}.")
    elif name := in_part(path):
        if _settings(name, change.before) != _settings(name, change.after):
            yield Meddled(kind="set-up", path=path, said=f"The settings of checks in {path} were changed.")
    elif is_test(path) and change.before is not None:
        yield from _test(change, change.before)


def _settings(name: str, content: bytes | None) -> bytes:
    """The part of a file that is for checks, in one form."""
    text = (content or b"").decode("utf-8-sig", "replace")
    found: Data
    if name == "pyproject.toml":
        found = {key: table(toml(text), "tool", key) for key in TABLES}
    elif name == "setup.cfg":
        found = {key: value for key, value in ini(text).items() if key.startswith(SECTIONS)}
    else:
        found = {key: json_object(text).get(key) for key in KEYS}
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
