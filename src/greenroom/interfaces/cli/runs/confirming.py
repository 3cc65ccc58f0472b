"""Asking a person which checks count in a project, once: what was found, and why. What they say is kept."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from greenroom.app.jobs.plan import Plan, own_check, own_choices, plan_of
from greenroom.core.ports.checks import Check
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.questions import Gone, Person
from greenroom.interfaces.cli.runs.attending import somebody
from greenroom.interfaces.cli.runs.session import Door

QUESTION: Final = "[y] use all  [n] use none  [2 3] leave these out  or type a command line: "


NUMBERS: Final = re.compile(r"\d{1,2}(?:[ ,]+\d{1,2})*")
PLAIN: Final = re.compile(r"[^\s/=$(){}\"'`|&;<>\\]+")
"""A word that can only be the name of a program: no variable, no path, nothing that a shell reads."""

NONE: Final = "Checks: none found, so nothing can verify the change."


def settled(door: Door, root: Path, *, walls: bool) -> Plan | None:
    """The plan of a job, after a person was asked about what is new in it; None when they went away."""
    plan = plan_of(root, walls=walls)
    if plan.open and somebody(door):
        try:
            chosen = _chosen(door, plan, root)
        except Gone:
            return None
        if chosen is not None:
            own_choices().save(root, chosen, plan.open)
            plan = plan_of(root, walls=walls)
    else:
        for one in plan.run:
            door.progress.note(harmless(f"Checks: {one.name}: {one.line}   ({one.why})"))
    if not plan.run:
        door.progress.note(NONE, style="yellow")
    for said in plan.left:
        door.progress.note(f"! {harmless(said)}", style="yellow")
    return plan


def _chosen(door: Door, plan: Plan, root: Path) -> Sequence[Check] | None:
    """What they chose; None if they would not say. `Gone` if they are."""
    kept = [one for one in plan.run if one.name in plan.confirmed]
    door.progress.note("Checks found here:")
    for number, check in enumerate(plan.open, start=1):
        door.progress.note(harmless(f"  {number}. {check.name}: {check.line}   ({check.why})"))
    said = Person().line(QUESTION).strip()
    if said.lower() in ("y", "yes"):
        return [*kept, *plan.open]
    if said.lower() in ("n", "no", "none"):
        return kept
    left_out = {int(word) for word in said.replace(",", " ").split()} if NUMBERS.fullmatch(said) else set()
    if left_out:
        return [*kept, *(check for number, check in enumerate(plan.open, start=1) if number not in left_out)]
    if said and not _is_program(said, root):
        door.progress.note(
            f"There is no program {said.split()[0]!r}: type y, n, numbers or a command line.", style="yellow"
        )
        return _chosen(door, plan, root)
    return [*kept, own_check(said, plan.open)] if said else None


def _is_program(line: str, root: Path) -> bool:
    """Whether something is there that it could begin with: what was typed by mistake would fail for good."""
    first = line.split(maxsplit=1)[0]
    plain = PLAIN.fullmatch(first)
    return not plain or shutil.which(first, path=f"{root}:{os.environ.get('PATH', os.defpath)}") is not None
