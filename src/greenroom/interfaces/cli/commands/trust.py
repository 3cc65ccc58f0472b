"""`greenroom trust`: what this workspace brings that could act in a person's name, and whether they agree to it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from greenroom.app.jobs.plan import brought_checks, own_choices
from greenroom.app.trust import own_ledger, troubles_in
from greenroom.app.workspace import current_folder, workspace_root
from greenroom.interfaces.cli.asked.allowing import Trust
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Desk
from greenroom.interfaces.cli.runs.trusting import Item, agrees, at_terminal, items, lines, open_ones

QUESTION: Final = "Agree to them, as they are now? [y] yes  [n] no: "


async def trust(desk: Desk, order: Trust) -> Exit:
    """List it; ask, or take a yes that was said before; or take it all back."""
    root = workspace_root(current_folder())
    desk.out.begin(command="trust", workspace=str(root))
    if order.revoke:
        return _revoked(desk, root)
    found = _listed(desk, root)
    left = open_ones(found)
    if order.only_list or not left:
        return desk.out.result("ok", Exit.DONE, open=len(left))
    if not order.yes and not (desk.out.text and at_terminal()):
        desk.progress.note(f"Nobody is here to be asked. To agree to them: {command(desk, 'trust', '--yes')}")
        return desk.out.result("waiting", Exit.WAITING, open=len(left))
    if not order.yes and not agrees(QUESTION):
        desk.progress.note("Nothing was agreed to.")
        return desk.out.result("refused", Exit.FAILED, open=len(left))
    own_ledger().agree(root, left)
    desk.progress.note(f"✓ Agreed. To take it back: {command(desk, 'trust', '--revoke')}", style="green")
    return desk.out.result("agreed", Exit.DONE, open=0)


def _listed(desk: Desk, root: Path) -> list[Item]:
    found = items(root, own_ledger(), brought_checks(root))
    desk.out.expect("items")
    for one in found:
        thing = one.brought
        told = {"kind": thing.kind, "name": thing.name, "standing": one.standing, "shown": thing.shown}
        desk.out.item("item", {**told, "digest": thing.digest})
    desk.out.show(*lines(found))
    for trouble in troubles_in(root):
        desk.progress.note(harmless(f"! {trouble}"), style="yellow")
    if not found:
        desk.progress.note("This workspace brings nothing that you would have to agree to.")
    return found


def _revoked(desk: Desk, root: Path) -> Exit:
    count, choices = own_ledger().revoke(root), own_choices()
    desk.progress.note(f"Taken back: {count} {'thing' if count == 1 else 'things'} that you had agreed to here.")
    chosen = choices.of(root)
    if chosen is not None:
        choices.forget(root)
        desk.progress.note("Which checks prove work here is asked anew, by the next run at a terminal.")
    return desk.out.result("revoked", Exit.DONE, count=count, checks=chosen is not None)
