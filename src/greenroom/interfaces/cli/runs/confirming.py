"""Asking a person which checks count in a project, once: what was found, and why. What they say is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from greenroom.app.checks.choices import own_choices
from greenroom.app.checks.planning import Plan, own_check
from greenroom.app.jobs.planning import plan_of
from greenroom.core.ports.checks import Check
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.questions import Gone, Person
from greenroom.interfaces.cli.runs.attending import somebody
from greenroom.interfaces.cli.runs.session import Door

QUESTION: Final = "[y] these prove the work  [n] none does  or type a command line of yours: "


def settled(door: Door, root: Path, *, walls: bool) -> Plan:
    """The plan of a job, after a person was asked about what is new in it."""
    plan = plan_of(root, walls=walls)
    if plan.open and somebody(door):
        chosen = _chosen(door, plan)
        if chosen is not None:
            own_choices().save(root, chosen, plan.open)
            plan = plan_of(root, walls=walls)
    for said in plan.left:
        door.progress.note(f"! {harmless(said)}", style="yellow")
    return plan


def _chosen(door: Door, plan: Plan) -> Sequence[Check] | None:
    """What they chose; None if they would not say."""
    kept = [one for one in plan.run if one.name in plan.confirmed]
    door.progress.note("Checks that were found here:")
    for one in plan.open:
        door.progress.note(harmless(f"  {one.name}: {one.line}   ({one.why})"))
    try:
        said = Person().line(QUESTION).strip()
    except Gone:
        return None
    if said.lower() in ("y", "yes"):
        return [*kept, *plan.open]
    if said.lower() in ("n", "no", "none"):
        return kept
    return [*kept, own_check(said, plan.open)] if said else None
