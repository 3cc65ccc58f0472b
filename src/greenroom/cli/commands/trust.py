"""`greenroom trust` and `permissions`: what a person has agreed to, of what a workspace brings and agents may do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from greenroom.app.runs.checks import brought_checks, own_choices
from greenroom.app.toolset.policy import persons_rules, written
from greenroom.app.trust import own_ledger, troubles_in
from greenroom.cli.context import Invocation, command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.render.output import Column, Fitted, harmless, row
from greenroom.cli.render.questions import confirm
from greenroom.cli.start import Item, list_items, render_items

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
    cli.out.begin(workspace=str(root))
    if revoke:
        return _revoke(cli, root)
    left = [item.brought for item in _list(cli, root) if item.standing != "agreed"]
    if only_list or not left:
        return cli.out.result("ok", Exit.DONE, open=len(left))
    if not yes and not (cli.out.text and sys.stdin.isatty() and sys.stderr.isatty()):
        cli.progress.note(f"Nobody is here to be asked. To agree to them: {command(cli, 'trust', '--yes')}")
        return cli.out.result("waiting", Exit.WAITING, open=len(left))
    if not yes and not confirm(QUESTION):
        cli.progress.note("Nothing was agreed to.")
        return cli.out.result("refused", Exit.FAILED, open=len(left))
    own_ledger().agree(root, left)
    cli.progress.note(f"✓ Agreed. To take it back: {command(cli, 'trust', '--revoke')}", style="green")
    return cli.out.result("agreed", Exit.DONE, open=0)


def _list(cli: Invocation, root: Path) -> list[Item]:
    found = list_items(root, brought_checks(root))
    fields = ("kind", "name", "shown", "digest")
    told = ({"standing": item.standing, **{name: getattr(item.brought, name) for name in fields}} for item in found)
    cli.out.listing("item", told)
    cli.out.show(*render_items(found))
    for trouble in troubles_in(root):
        cli.progress.note(harmless(f"! {trouble}"), style="yellow")
    if not found:
        cli.progress.note("This workspace brings nothing that you would have to agree to.")
    return found


def _revoke(cli: Invocation, root: Path) -> Exit:
    count, choices = own_ledger().revoke(root), own_choices()
    cli.progress.note(f"Taken back: {count} {'thing' if count == 1 else 'things'} that you had agreed to here.")
    chosen = choices.of(root)
    if chosen is not None:
        choices.forget(root)
        cli.progress.note("Which checks prove work here is asked anew, by the next run at a terminal.")
    return cli.out.result("revoked", Exit.DONE, count=count, checks=chosen is not None)


RULES: Final = (Column(name="rule", gives=True), Column(name="where", style="dim"))
Rule: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="RULE", help="For instance: allow command npm test. Quote it where it has options."),
]
Everywhere: TypeAlias = Annotated[bool, typer.Option("--everywhere", help="Not only in this workspace.")]


async def permissions_list(cli: Invocation) -> None:
    """List the rules that you have agreed to for good, and where each holds."""
    file = persons_rules()
    rules = [(rule, place or "everywhere") for place, some in file.listed().items() for rule in some]
    cli.out.begin(file=str(file.path))
    cli.out.listing("rule", ({"rule": rule, "where": place} for rule, place in rules))
    if rules:
        cli.out.show(Fitted(RULES, [row(harmless(rule), harmless(place)) for rule, place in rules]))
    else:
        cli.progress.note(
            "You have agreed to nothing for good. Reading and editing in a workspace needs no rule; for all else you "
            f"are asked, or you say it once: {command(cli, 'permissions', 'add')} allow command npm test"
        )


async def permissions_add(cli: Invocation, rule: Rule, *, everywhere: Everywhere = False) -> Exit:
    """Agree to a rule: allow, notify, ask or deny · command, line, path, host or tool · what."""
    text, (place, where) = " ".join(rule), _place(cli, everywhere=everywhere)
    new = persons_rules().add(text, place)
    cli.out.show(f"{'Agreed' if new else 'Agreed already'}: {written(text)} ({where})")
    return cli.out.result("ok", Exit.DONE, rule=written(text), new=new)


async def permissions_remove(cli: Invocation, rule: Rule, *, everywhere: Everywhere = False) -> Exit:
    """Remove a rule."""
    text, (place, where) = " ".join(rule), _place(cli, everywhere=everywhere)
    gone = persons_rules().remove(text, place)
    cli.out.show(f"Removed: {text}" if gone else f"There is no such rule ({where}): {text}")
    return cli.out.result("ok" if gone else "unknown", Exit.DONE if gone else Exit.FAILED)


def _place(cli: Invocation, *, everywhere: bool) -> tuple[Path | None, str]:
    """Where a rule holds, also in words."""
    return (None, "everywhere") if everywhere else (cli.means.root, f"in {cli.means.root}")
