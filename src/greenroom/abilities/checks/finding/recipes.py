"""Checks that a project runs by a recipe of its own: targets of a Makefile, recipes of a justfile."""

from __future__ import annotations

import fnmatch
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from greenroom.abilities.checks.command_lines import set_in, with_settings
from greenroom.abilities.checks.looking import Place
from greenroom.core.base.records import record
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


ELSEWHERE: Final = re.compile(r"\$\((\w+)\)")
DEFAULT: Final = ".DEFAULT_GOAL"


@record
class Wrapped:
    """A check that is a recipe, and the command lines that it comes down to."""

    check: Check
    lines: tuple[str, ...]


def recipes(place: Place) -> Iterator[Wrapped]:
    """Those that are checks by their names. Of `check` and `test` in one file the first that is there says it all."""
    for program, names in (("make", MAKEFILES), ("just", JUSTFILES)):
        file = place.first(*names)
        if not file:
            continue
        rules = Rules(place, file)
        kinds: set[CheckKind] = set()
        for target, kind in TARGETS.items():
            if target in rules.targets and kind not in kinds:
                kinds.add(kind)
                why = f"{file} has the {'target' if program == 'make' else 'recipe'} {target!r}."
                line = f"{program} {target}"
                check = Check(name=line, line=line, kind=kind, why=why, means=rules.means(target))
                yield Wrapped(check=check, lines=rules.lines(target))


class Rules:
    """What files of recipes say, with what they include. `files` are all of them, also those that are not there."""

    def __init__(self, place: Place, *files: str) -> None:
        self._place = place
        self.targets: dict[str, list[str]] = {}
        self._settings: list[str] = []
        self._needs: dict[str, list[str]] = {}
        self.files: dict[str, None] = {}
        for file in files:
            self._take(file)

    @property
    def usual(self) -> tuple[str, ...]:
        """What is made when nobody says what: the first one, or what a setting says, which may be any of them."""
        plain = [name for name in self.targets if name[0] not in ".%"]
        return tuple(plain if any(one.startswith(DEFAULT) for one in self._settings) else plain[:1])

    def means(self, *targets: str) -> str:
        """The recipes, those of all that they need, and what is set for all of them."""
        found = self._reached(targets)
        told = [f"{name}: {' '.join(self._needs[name])}\n" + "\n".join(self.targets[name]) for name in found]
        return "\n".join((*told, *self._settings))

    def lines(self, target: str) -> tuple[str, ...]:
        """The command lines that a target comes down to, with what is set in the place of its name. What is set
        elsewhere is one word, as in a shell."""
        known = set_in("\n".join(self._settings))
        every = (with_settings(line, known) for name in self._reached([target]) for line in self.targets[name])
        return tuple(ELSEWHERE.sub(r"${\1}", line) for line in every)

    def _reached(self, targets: Iterable[str]) -> list[str]:
        """These, and all that they need. Where nobody can tell what one needs, it may be any."""
        known = set_in("\n".join(self._settings))
        seen: dict[str, None] = {}
        left = deque(targets)
        while left:
            name = left.popleft()
            if name not in seen:
                seen[name] = None
                left += self._needs[name] if name in self.targets else self._instead(name, known)
        return [name for name in seen if name in self.targets]

    def _instead(self, name: str, known: Mapping[str, str]) -> list[str]:
        """The targets that a word stands for which is none itself: it holds a variable, or a pattern is like it."""
        words = with_settings(name, known).split()
        if any("$" in one for one in words):
            return list(self.targets)
        patterns = [one for one in self.targets if "%" in one][:MOST]
        like = [one for one in patterns for word in words if fnmatch.fnmatch(word, one.replace("%", "*"))]
        return [*(one for one in words if one in self.targets), *like]

    def _take(self, file: str) -> None:
        if file in self.files or len(self.files) >= MOST:
            return
        self.files[file] = None
        current: list[str] = []
        for line in _whole_heads(self._place.text(file)):
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


def _whole_heads(text: str) -> Iterator[str]:
    """The lines. One that goes on in the next is one line, unless it is a part of a recipe: a shell reads those."""
    begun = ""
    for line in text.splitlines():
        whole = f"{begun} {line.strip()}" if begun else line
        goes_on = whole.endswith("\\") and whole[:1] not in "\t " and len(whole) <= LONGEST
        begun = whole[:-1].rstrip() if goes_on else ""
        if not goes_on:
            yield whole
    if begun:
        yield begun
