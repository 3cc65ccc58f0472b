"""`greenroom trust`: what this workspace brings that could act in a person's name, and whether they agree to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from greenroom.app.jobs.plan import brought_checks, own_choices
from greenroom.app.trust import own_ledger, troubles_in
from greenroom.interfaces.cli.context import Invocation, command
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.exit_codes import Exit
from greenroom.interfaces.cli.runs.trust import Item, agrees, at_terminal, items, lines, open_ones

QUESTION: Final = "Agree to them, as they are now? [y] yes  [n] no: "


async def trust(
    cli: Invocation,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Agree without being asked.")] = False,
    only_list: Annotated[bool, typer.Option("--list", help="Only list it.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take back all that you agreed to here.")] = False,
) -> Exit:
    """Show the agents, tools, callbacks and servers that this workspace brings; none is used before you agree to it.

    You agree to what they are now. One that changes is asked about again. Exit code 6 when nobody can be asked.
    """
    if yes + only_list + revoke > 1:
        raise typer.BadParameter("--yes, --list and --revoke are three different things. Say one of them.")
    root = cli.means.root
    cli.out.begin(command="trust", workspace=str(root))
    if revoke:
        return _revoke(cli, root)
    left = open_ones(_list(cli, root))
    if only_list or not left:
        return cli.out.result("ok", Exit.DONE, open=len(left))
    if not yes and not (cli.out.text and at_terminal()):
        cli.progress.note(f"Nobody is here to be asked. To agree to them: {command(cli, 'trust', '--yes')}")
        return cli.out.result("waiting", Exit.WAITING, open=len(left))
    if not yes and not agrees(QUESTION):
        cli.progress.note("Nothing was agreed to.")
        return cli.out.result("refused", Exit.FAILED, open=len(left))
    own_ledger().agree(root, left)
    cli.progress.note(f"✓ Agreed. To take it back: {command(cli, 'trust', '--revoke')}", style="green")
    return cli.out.result("agreed", Exit.DONE, open=0)


def _list(cli: Invocation, root: Path) -> list[Item]:
    found = items(root, own_ledger(), brought_checks(root))
    cli.out.listing("item", map(_fields, found))
    cli.out.show(*lines(found))
    for trouble in troubles_in(root):
        cli.progress.note(harmless(f"! {trouble}"), style="yellow")
    if not found:
        cli.progress.note("This workspace brings nothing that you would have to agree to.")
    return found


def _fields(item: Item) -> dict[str, object]:
    thing = item.brought
    told = {"kind": thing.kind, "name": thing.name, "standing": item.standing, "shown": thing.shown}
    return {**told, "digest": thing.digest}


def _revoke(cli: Invocation, root: Path) -> Exit:
    count, choices = own_ledger().revoke(root), own_choices()
    cli.progress.note(f"Taken back: {count} {'thing' if count == 1 else 'things'} that you had agreed to here.")
    chosen = choices.of(root)
    if chosen is not None:
        choices.forget(root)
        cli.progress.note("Which checks prove work here is asked anew, by the next run at a terminal.")
    return cli.out.result("revoked", Exit.DONE, count=count, checks=chosen is not None)
