"""The checks of a JavaScript project: scripts of its package.json, run by the program that its lock file is from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from greenroom.abilities.checks.looking import Place, json_object, table
from greenroom.core.base.records import Data
from greenroom.core.ports.checks import Check, CheckKind

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

CALLED: Final = re.compile(
    r"\b(?:npm|pnpm|yarn|bun)(?:\s+-[-\w=]+)*\s+(?:run(?:-script)?(?:\s+-[-\w=]+)*\s+)?([\w:.-]+)|\brun-[sp]\s+(.+)"
)


def javascript(place: Place) -> Iterator[Check]:
    """One for each script that is a check by its name."""
    package = json_object(place.text("package.json"))
    scripts = _scripts(package)
    runner = _runner(place, str(package.get("packageManager", "")))
    for name, kind in SCRIPTS.items():
        line = scripts.get(name, "").strip()
        if not line or PLACEHOLDER in line:
            continue
        run = f"{runner} test" if name == "test" and runner != "bun" else f"{runner} run {name}"
        means = _told(scripts, [name])
        yield Check(name=run, line=run, kind=kind, why=f"package.json has the script {name!r}.", means=means)


def _scripts(package: Data) -> dict[str, str]:
    return {str(name): line for name, line in table(package, "scripts").items() if isinstance(line, str)}


def _told(scripts: Mapping[str, str], first: list[str]) -> str:
    return "\n".join(f"{one}: {scripts[one]}" for one in _reached(scripts, first))


def _runner(place: Place, named: str) -> str:
    said = named.partition("@")[0]
    wanted = [said] if said in {"npm", "pnpm", "yarn", "bun"} else []
    wanted += [runner for name, runner in LOCKS if name in place.names]
    return next((runner for runner in wanted if place.has_program(runner)), "npm")


def _reached(scripts: Mapping[str, str], first: list[str]) -> list[str]:
    """These scripts and all that they call, in order, each once."""
    found: list[str] = []
    left = list(first)
    while left:
        name = left.pop(0)
        if name in found or name not in scripts:
            continue
        found.append(name)
        left += [f"pre{name}", f"post{name}"]
        left += _called(scripts[name])
    return found


def _called(line: str) -> Iterator[str]:
    for one, several in CALLED.findall(line):
        yield from (one, *several.split())
