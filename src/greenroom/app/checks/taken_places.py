"""Modules of the work that take the place of installed ones when checks run: asked of the Python that each runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from greenroom.abilities.checks.command_lines import placed
from greenroom.abilities.checks.judge_names import is_test
from greenroom.abilities.checks.looking import Look, Place
from greenroom.abilities.checks.meddling import Meddled
from greenroom.abilities.checks.own_packages import paths_of, python_of
from greenroom.abilities.checks.shadowing import ASKS, TAKEN, new_modules
from greenroom.app.checks.syntax import asked
from greenroom.core.ports.checks import Check
from greenroom.core.ports.commands import Commands

ROOTS: Final = (".", "src", "lib")
MOST: Final = 200
"""Modules that are asked about at once."""


async def taken_places(
    checks: Sequence[Check],
    commands: Commands,
    look: Look | None,
    at: Path,
    *,
    before: Collection[str],
    changes: Sequence[str],
    within: str = "",
) -> tuple[Meddled, ...]:
    """New files that Python would find before what is installed. `before` are all paths of the base, seen from where
    the repository begins; `within` is the folder in which checks run, and which lies `at`."""
    added = [one for one in changes if one not in before and not is_test(one)]
    found: dict[str, Meddled] = {}
    for check in checks:
        python, folder = python_of(check), placed(within or ".", check.folder)
        if not python or look is None:
            continue
        roots = {placed(folder, one) for one in (*ROOTS, *paths_of(Place(look, check.folder)))}
        new = new_modules(before, added, roots)
        words = (python, "-c", ASKS, str(at), *sorted(new)[:MOST])
        _, said = await asked(commands, words, check.folder) if new else (None, "")
        taken = {line.removeprefix(TAKEN) for line in said.splitlines() if line.startswith(TAKEN)}
        for name in sorted(taken & new.keys()):
            found |= {path: _taken(path, name) for path in new[name]}
    return tuple(found.values())


def _taken(path: str, name: str) -> Meddled:
    said = f"{path}, which takes the place of the installed {name!r} when checks run, was added."
    return Meddled(kind="set-up", path=path, said=said)
