"""Checks as what they also are: commands that a project brings, and that a person agrees to in exactly this form."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from greenroom.abilities.checks.finding.found import found
from greenroom.app.checks.folder import FolderLook
from greenroom.app.settings.layers import for_everybody
from greenroom.app.trust.brought import Brought
from greenroom.core.ports.checks import Check

LONG: Final = 160
"""Characters of what a command stands for."""


def brought(check: Check) -> Brought:
    """One check, as a person sees it before they agree. What its line stands for is agreed to as well."""
    means = " ".join(check.means.split())
    told = f" · {means if len(means) <= LONG else f'{means[: LONG - 1]}…'}" if means else ""
    line = f"{check.line} (in {check.folder})" if check.folder != "." else check.line
    return Brought(kind="check", name=check.name, shown=f"{line} · {check.why}{told}", digest=check.digest)


def brought_checks(root: Path) -> tuple[Brought, ...]:
    """The checks that a workspace brings; a place like /tmp brings none."""
    return () if for_everybody(root) else tuple(map(brought, found(FolderLook(root))))
