"""Checks that a project runs by a recipe of its own: targets of a Makefile, recipes of a justfile."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from typing import Final

from greenroom.abilities.checks.looking import Place
from greenroom.core.ports.checks import Check, CheckKind

TARGETS: Final[Mapping[str, CheckKind]] = {
    "check": "test",
    "test": "test",
    "tests": "test",
    "typecheck": "types",
    "types": "types",
    "lint": "lint",
}
MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES: Final = ("justfile", "Justfile", ".justfile")
MOST: Final = 200
"""Files that one includes, with all that those include."""

LONGEST: Final = 10_000
"""Characters of a line that is read."""

INCLUDE: Final = re.compile(r"^(?:-?s?include|import\??)\s+(.+)$")
WILDCARD: Final = re.compile(r"\$[({]wildcard\s|[)}\"']")
"""What stands around names that are included, and is no part of them."""

SIGNS: Final = frozenset("*?[")
SETS: Final = re.compile(r"^(?:export\s+|override\s+)*[\w.\-]+\s*(?:[:?+!]|::|:::)?=")


def recipes(place: Place) -> Iterator[Check]:
    """Those that are checks by their names. Of `check` and `test` in one file the first that is there says it all."""
    for program, names in (("make", MAKEFILES), ("just", JUSTFILES)):
        file = place.first(*names)
        if not file:
            continue
        rules = _Rules(place, file)
        kinds: set[CheckKind] = set()
        for target, kind in TARGETS.items():
            if target in rules.targets and kind not in kinds:
                kinds.add(kind)
                why = f"{file} has the {'target' if program == 'make' else 'recipe'} {target!r}."
                line = f"{program} {target}"
                yield Check(name=line, line=line, kind=kind, why=why, means=rules.means(target))


class _Rules:
    """What a file of recipes says, with what it includes."""

    def __init__(self, place: Place, file: str) -> None:
        self._place = place
        self.targets: dict[str, list[str]] = {}
        self._settings: list[str] = []
        self._needs: dict[str, list[str]] = {}
        self._seen: set[str] = set()
        self._take(file)

    def means(self, target: str) -> str:
        """The recipe, those of all that it needs, and what is set for all of them."""
        found: list[str] = []
        left = [target]
        while left:
            name = left.pop(0)
            if name not in found and name in self.targets:
                found.append(name)
                left += self._needs[name]
        told = [f"{name}: {' '.join(self._needs[name])}\n" + "\n".join(self.targets[name]) for name in found]
        return "\n".join((*told, *self._settings))

    def _take(self, file: str) -> None:
        if file in self._seen or len(self._seen) >= MOST:
            return
        self._seen.add(file)
        current: list[str] = []
        for line in self._place.text(file).splitlines():
            if len(line) > LONGEST:
                continue
            if line[:1] in "\t " and line.strip():
                current.append(line.strip())
            elif line.strip() and not line.startswith("#"):
                current = self._head(line, current)

    def _meant(self, name: str) -> list[str]:
        """The files that a word stands for: one with a `*` stands for whatever lies there, also what is put there."""
        paths = [""]
        for part in name.split("/"):
            begins = [f"{path}/" if path else "" for path in paths]
            paths = [f"{begin}{one}" for begin in begins for one in self._like(begin, part)][:MOST]
        return paths

    def _like(self, begin: str, part: str) -> list[str]:
        if SIGNS.isdisjoint(part):
            return [part]
        there = self._place.inside(begin.rstrip("/")) if begin else self._place.names
        return sorted(fnmatch.filter(there, part))

    def _head(self, line: str, current: list[str]) -> list[str]:
        included = INCLUDE.match(line)
        if included:
            for name in WILDCARD.sub(" ", included[1]).split():
                for one in self._meant(name):
                    self._take(one)
            return []
        if SETS.match(line):
            self._settings.append(line.strip())
            return []
        names, colon, rest = line.partition(":")
        if not colon:
            return current
        needed, _, at_once = rest.lstrip(":").partition(";")
        recipe: list[str] = []
        for name in names.lstrip("@").split():
            if name != ".PHONY":
                recipe = self.targets.setdefault(name, recipe)
                self._needs.setdefault(name, []).extend(needed.split())
        if at_once:
            recipe.append(at_once.strip())
        return recipe
