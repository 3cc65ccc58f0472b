"""The rules that a person has agreed to for good: one file of theirs, never one of a workspace.

A line is a rule. A line in brackets begins the rules of one workspace; those above the first hold everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Final

from greenroom.abilities.permission.rules import BadRule, parse
from greenroom.app.settings.changing import change, refuse_writable
from greenroom.app.settings.home import config_folder
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

NAME: Final = "permissions"
EVERYWHERE: Final = ""
HEAD: Final = "# What agents may do. One rule per line, for instance: allow command npm test"


def persons_rules() -> RulesFile:
    """The person's own."""
    return RulesFile(config_folder() / NAME, own=True)


def written(rule: str) -> str:
    """A rule as it is kept; `WorldFault` for one that cannot be read."""
    return str(parse(rule))


@record
class Line:
    """A line as it is written, in the part of which workspace it stands, and the rule that it is, if it is one."""

    text: str
    place: str = EVERYWHERE
    rule: str = ""
    head: bool = False


class RulesFile:
    """Reads it anew each time: it is short, and a person may have changed it meanwhile.

    `own` says that it is the person's, so that nobody else may write it.
    """

    def __init__(self, path: Path, *, own: bool = False) -> None:
        self.path = path
        self._own = own

    def of(self, workspace: Path) -> tuple[str, ...]:
        """The rules that hold in a workspace."""
        rules = self.listed()
        return (*rules.get(EVERYWHERE, ()), *rules.get(str(workspace), ()))

    def listed(self) -> Mapping[str, tuple[str, ...]]:
        """All rules by workspace."""
        found: dict[str, tuple[str, ...]] = {}
        for line in self._read():
            if line.rule:
                found[line.place] = (*found.get(line.place, ()), line.rule)
        return found

    def add(self, rule: str, workspace: Path | None) -> bool:
        """Agree to a rule from now on; False when it holds already. What else stands in the file stays as it is."""
        said, place = written(rule), EVERYWHERE if workspace is None else str(workspace)

        def more(lines: list[Line]) -> list[Line] | None:
            known = any((one.place, one.rule) == (place, said) for one in lines)
            return None if known else with_rule(lines, said, place)

        return self._change(more)

    def remove(self, rule: str, workspace: Path | None) -> bool:
        """Agree to it no more; False when it was not there."""
        said, place = written(rule), EVERYWHERE if workspace is None else str(workspace)

        def less(lines: list[Line]) -> list[Line] | None:
            left = [one for one in lines if (one.place, one.rule) != (place, said)]
            return without_empty(left, place) if len(left) < len(lines) else None

        return self._change(less)

    def _change(self, changes: Callable[[list[Line]], list[Line] | None]) -> bool:
        changed = False

        def made() -> str | None:
            nonlocal changed
            lines = changes(self._read())
            changed = lines is not None
            return None if lines is None else "".join(f"{one.text}\n" for one in lines)

        change(self.path, made)
        return changed

    def _read(self) -> list[Line]:
        try:
            text = self.path.read_text(encoding="utf-8")
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise WorldFault(f"{self.path} cannot be read: {error}. Mend it, or move it away.") from None
        if self._own:
            refuse_writable(self.path, mode, "what agents may do")
        return list(self._lines(text))

    def _lines(self, text: str) -> Iterator[Line]:
        place = EVERYWHERE
        for number, line in enumerate(text.splitlines(), start=1):
            bare = line.strip()
            if bare.startswith("[") and bare.endswith("]"):
                place = bare[1:-1]
                yield Line(text=line, place=place, head=True)
            else:
                rule = self._checked(bare, number) if bare and not bare.startswith("#") else ""
                yield Line(text=line, place=place, rule=rule)

    def _checked(self, line: str, number: int) -> str:
        try:
            return str(parse(line))
        except BadRule as fault:
            raise WorldFault(f"{self.path}, line {number}: {fault}") from None


def with_rule(lines: list[Line], rule: str, place: str) -> list[Line]:
    """The same lines and this one, behind the last rule of its workspace."""
    new, lines = Line(text=rule, place=place, rule=rule), lines or [Line(text=HEAD)]
    said = (number for number, one in enumerate(lines, start=1) if one.place == place and (one.rule or one.head))
    behind = max(said, default=0)
    if not behind and place != EVERYWHERE:
        return [*lines, Line(text=""), Line(text=f"[{place}]", place=place, head=True), new]
    behind = behind or sum(1 for _ in takewhile(lambda one: one.text.startswith("#"), lines))
    rest = lines[behind:]
    gap = [Line(text="")] if rest and rest[0].head else []
    return [*lines[:behind], new, *gap, *rest]


def without_empty(lines: list[Line], place: str) -> list[Line]:
    """The same lines, but for those of a workspace of which nothing is said any more."""
    if place == EVERYWHERE or any(one.text.strip() and not one.head for one in lines if one.place == place):
        return lines
    return [one for one in lines if one.place != place]
