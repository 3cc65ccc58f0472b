"""The rules that a person has agreed to for good: one file of theirs, never one of a workspace.

A line is a rule. A line in brackets begins the rules of one workspace; those above the first hold everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from greenroom.abilities.permission.rules import BadRule, parse
from greenroom.app.settings.home import config_folder
from greenroom.app.settings.keys import replace
from greenroom.core.base.errors import WorldFault

NAME: Final = "permissions"
EVERYWHERE: Final = ""
HEAD: Final = "# What agents may do. One rule per line, for instance: allow command npm test"


def persons_rules() -> RulesFile:
    """The person's own."""
    return RulesFile(config_folder() / NAME)


def written(rule: str) -> str:
    """A rule as it is kept; `WorldFault` for one that cannot be read."""
    return str(parse(rule))


class RulesFile:
    """Reads it anew each time: it is short, and a person may have changed it meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def of(self, workspace: Path) -> tuple[str, ...]:
        """The rules that hold in a workspace."""
        rules = self._read()
        return (*rules.get(EVERYWHERE, ()), *rules.get(str(workspace), ()))

    def listed(self) -> Mapping[str, tuple[str, ...]]:
        """All rules by workspace."""
        return {name: tuple(rules) for name, rules in self._read().items() if rules}

    def add(self, rule: str, workspace: Path | None) -> bool:
        """Agree to a rule from now on; False when it holds already."""
        said = written(rule)
        rules = self._read()
        mine = rules.setdefault(EVERYWHERE if workspace is None else str(workspace), [])
        if said in mine:
            return False
        mine.append(said)
        self._write(rules)
        return True

    def remove(self, rule: str, workspace: Path | None) -> bool:
        """Agree to it no more; False when it was not there."""
        said = written(rule)
        rules = self._read()
        mine = rules.get(EVERYWHERE if workspace is None else str(workspace), [])
        if said not in mine:
            return False
        mine.remove(said)
        self._write(rules)
        return True

    def _read(self) -> dict[str, list[str]]:
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise WorldFault(f"{self.path} cannot be read: {error}. Mend it, or move it away.") from None
        found: dict[str, list[str]] = {}
        place = EVERYWHERE
        for number, line in enumerate(map(str.strip, lines), start=1):
            if line.startswith("[") and line.endswith("]"):
                place = line[1:-1]
            elif line and not line.startswith("#"):
                found.setdefault(place, []).append(self._checked(line, number))
        return found

    def _checked(self, line: str, number: int) -> str:
        try:
            return str(parse(line))
        except BadRule as fault:
            raise WorldFault(f"{self.path}, line {number}: {fault}") from None

    def _write(self, rules: Mapping[str, list[str]]) -> None:
        lines = [HEAD, *rules.get(EVERYWHERE, ())]
        for name, some in rules.items():
            if name != EVERYWHERE and some:
                lines += ["", f"[{name}]", *some]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace(self.path, "\n".join(lines) + "\n")
