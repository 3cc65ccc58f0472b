"""Whether a check in a copy tests the copy: asked of the Python that it runs, before what it says counts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from greenroom.abilities.checks.looking import Look, Place
from greenroom.abilities.checks.own_packages import LISTS, SAID, imports_them, python_of
from greenroom.app.checks.syntax import asked
from greenroom.core.ports.checks import Check
from greenroom.core.ports.commands import Commands

TO_DO: Final = (
    "Turn the walls on (`greenroom doctor` says why there are none): behind them the copy is seen at the place of your "
    "own files. Or install it where the checks run, by a command that you write as `setup` below [workspace]."
)


async def tests_own_code(checks: Sequence[Check], commands: Commands, look: Look | None, at: Path) -> tuple[str, ...]:
    """Why what checks say is not about the work, each in a sentence. `commands` run in a copy of what lies `at`."""
    found: list[str] = []
    for check in checks:
        python = python_of(check)
        if not python or look is None:
            continue
        _, said = await asked(commands, (python, "-c", LISTS, str(at), check.folder), check.folder)
        place = Place(look, check.folder)
        folders = {line.removeprefix(SAID) for line in said.splitlines() if line.startswith(SAID)}
        own = sorted(one for one in folders if imports_them(check, one, place))
        found += [_said(check, str(at), own[0])] if own else []
    return tuple(found)


def _said(check: Check, at: str, own: str) -> str:
    folder = os.path.normpath(f"{at}/{check.folder}/{own}")
    return (
        f"{check.name!r} tests your own files, and not the work: a package is installed from {folder!r}, and Python "
        f"imports it from there. {TO_DO}"
    )
