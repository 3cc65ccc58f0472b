"""`greenroom permissions`: what a person has agreed to for good, here and everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.text import Text

from greenroom.app.toolset.policy import persons_rules, written
from greenroom.app.workspace import current_folder, workspace_root
from greenroom.interfaces.cli.asked.allowing import PermissionsAdd, PermissionsList, PermissionsRemove
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.tables import Column, Fitted, row
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Desk

RULES: Final = (Column(name="rule", gives=True), Column(name="where", style="dim"))
EVERYWHERE: Final = "everywhere"


async def permissions_list(desk: Desk, _: PermissionsList) -> Exit:
    """A row per rule."""
    rules = [(rule, place or EVERYWHERE) for place, some in persons_rules().listed().items() for rule in some]
    desk.out.begin(command="permissions list", file=str(persons_rules().path))
    desk.out.expect("rules")
    for rule, place in rules:
        desk.out.item("rule", {"rule": rule, "where": place})
    if rules:
        desk.out.show(Fitted(RULES, [row(harmless(rule), Text(harmless(place))) for rule, place in rules]))
    else:
        desk.progress.note(
            "You have agreed to nothing for good. Reading and editing in a workspace needs no rule; for all else you "
            f"are asked, or you say it once: {command(desk, 'permissions', 'add')} allow command npm test"
        )
    return desk.out.result("ok", Exit.DONE)


async def permissions_add(desk: Desk, order: PermissionsAdd) -> Exit:
    """Keep a rule, for this workspace or for all."""
    new = persons_rules().add(order.rule, _place(everywhere=order.everywhere))
    desk.out.begin(command="permissions add")
    desk.out.show(
        f"{'Agreed' if new else 'Agreed already'}: {written(order.rule)} ({_where(everywhere=order.everywhere)})"
    )
    return desk.out.result("ok", Exit.DONE, rule=written(order.rule), new=new)


async def permissions_remove(desk: Desk, order: PermissionsRemove) -> Exit:
    """Keep it no more."""
    gone = persons_rules().remove(order.rule, _place(everywhere=order.everywhere))
    desk.out.begin(command="permissions remove")
    where = _where(everywhere=order.everywhere)
    desk.out.show(f"Removed: {order.rule}" if gone else f"There is no such rule ({where}): {order.rule}")
    return desk.out.result("ok" if gone else "unknown", Exit.DONE if gone else Exit.FAILED)


def _place(*, everywhere: bool) -> Path | None:
    return None if everywhere else workspace_root(current_folder())


def _where(*, everywhere: bool) -> str:
    return EVERYWHERE if everywhere else f"in {workspace_root(current_folder())}"
