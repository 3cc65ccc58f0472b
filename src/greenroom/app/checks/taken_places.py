"""Modules of the work that take the place of installed ones when checks run: asked of the Python that each runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from greenroom.abilities.checks.command_lines import placed
from greenroom.abilities.checks.judge_names import is_test
from greenroom.abilities.checks.looking import Look, Place
from greenroom.abilities.checks.meddling import Meddled
from greenroom.abilities.checks.own_packages import paths_of, python_of
from greenroom.abilities.checks.shadowing import ASKED, ASKS, TAKEN, new_modules
from greenroom.app.checks.syntax import asked
from greenroom.core.ports.checks import Check
from greenroom.core.ports.commands import Commands

ROOTS: Final = (".", "src", "lib")
BY: Final = re.compile(r"(?:uv|poetry|pdm|pipenv|hatch) run (?:--\S+ )*")
"""Programs that find a Python and run it; at the beginning of a line."""

MOST: Final = 50
"""Modules that are asked about at once: what is said of so many is heard whole, also where their names are as long as
those of files can be."""


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
        if not python_of(check) or look is None:
            continue
        folder = placed(within or ".", check.folder)
        roots = {placed(folder, one) for one in (*ROOTS, *paths_of(Place(look, check.folder)))}
        new = new_modules(before, added, roots)
        for name, why in (await _installed(check, commands, at, sorted(new))).items():
            found |= {path: Meddled(kind="set-up", path=path, said=f"{path}, {why}, was added.") for path in new[name]}
    return tuple(found.values())


async def _installed(check: Check, commands: Commands, at: Path, names: Sequence[str]) -> dict[str, str]:
    """Those of these modules that are installed for a check, or may be, each with what there is to say of it."""
    python = _python(check)
    found: dict[str, str] = {}
    for first in range(0, len(names), MOST):
        some = names[first : first + MOST]
        _, said = await asked(commands, (*python, "-c", ASKS, str(at), *some), check.folder)
        lines = said.splitlines()
        for name in some:
            if f"{TAKEN}{name}" in lines:
                found[name] = f"which takes the place of the installed {name!r} when checks run"
            elif ASKED not in lines:
                told = f"`{shlex.join(python)}`, with which {check.name!r} runs, could not be asked about that"
                found[name] = f"which may take the place of an installed module ({told})"
    return found


def _python(check: Check) -> tuple[str, ...]:
    """The words that run the same Python as the check: where another program finds it, by that."""
    by = BY.match(check.line)
    return (*(by.group().split() if by else ()), python_of(check))
