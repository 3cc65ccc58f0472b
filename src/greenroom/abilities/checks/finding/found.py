"""All checks of a project, from its own files, the most useful first; each says which file wants it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, get_args

from greenroom.abilities.checks.finding.javascript import javascript, scripts_in
from greenroom.abilities.checks.finding.known_lines import only_runs
from greenroom.abilities.checks.finding.others import others
from greenroom.abilities.checks.finding.python import python
from greenroom.abilities.checks.finding.recipes import recipes
from greenroom.abilities.checks.looking import Look, Place
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check, CheckKind

FINDERS: Final[tuple[Callable[[Place], Iterator[Check]], ...]] = (python, javascript, others)
KINDS: Final[tuple[CheckKind, ...]] = get_args(CheckKind)
MOST: Final = 12
"""Checks that a person can be shown at once."""


def found(look: Look, folders: Sequence[str] = (".",)) -> tuple[Check, ...]:
    """The checks of these folders (the one somebody works in, the repository's root), none twice, none odd."""
    every: list[Check] = []
    for folder in dict.fromkeys(folders):
        place = Place(look, folder)
        direct = [one for find in FINDERS for one in find(place)]
        wrapped = [one.check for one in recipes(place) if not only_runs(one.lines, direct)]
        named = {one.name for one in every}
        for one in (*direct, *wrapped):
            placed = evolve(one, folder=folder)
            every.append(evolve(placed, name=f"{one.name} ({folder})") if one.name in named else placed)
    return tuple(sorted(every, key=lambda one: KINDS.index(one.kind))[:MOST])


def meant(check: Check, look: Look) -> str:
    """What its line stands for where it is run, whoever has named it: as that of a check which is found there, or the
    scripts that it calls."""
    same = next((one for one in found(look, (check.folder,)) if one.line == check.line), None)
    return same.means if same is not None else scripts_in(check.line, Place(look, check.folder))
