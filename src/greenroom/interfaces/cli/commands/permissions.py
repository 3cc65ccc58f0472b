"""`greenroom permissions`: the permission rules that a person has agreed to for good, here and everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from greenroom.app.toolset.policy import persons_rules, written
from greenroom.interfaces.cli.context import Invocation, command
from greenroom.interfaces.cli.display.output import Column, Fitted, harmless, row
from greenroom.interfaces.cli.exit_codes import Exit

RULES: Final = (Column(name="rule", gives=True), Column(name="where", style="dim"))
Rule: TypeAlias = Annotated[list[str], typer.Argument(metavar="RULE", help="For instance: allow command npm test")]
Everywhere: TypeAlias = Annotated[bool, typer.Option("--everywhere", help="Not only in this workspace.")]


async def permissions_list(cli: Invocation) -> Exit:
    """List the rules that you have agreed to for good, and where each holds."""
    file = persons_rules()
    rules = [(rule, place or "everywhere") for place, some in file.listed().items() for rule in some]
    cli.out.begin(command="permissions list", file=str(file.path))
    cli.out.listing("rule", ({"rule": rule, "where": place} for rule, place in rules))
    if rules:
        cli.out.show(Fitted(RULES, [row(harmless(rule), harmless(place)) for rule, place in rules]))
    else:
        cli.progress.note(
            "You have agreed to nothing for good. Reading and editing in a workspace needs no rule; for all else you "
            f"are asked, or you say it once: {command(cli, 'permissions', 'add')} allow command npm test"
        )
    return cli.out.result("ok", Exit.DONE)


async def permissions_add(cli: Invocation, rule: Rule, *, everywhere: Everywhere = False) -> Exit:
    """Agree to a rule: allow, notify, ask or deny · command, line, path, host or tool · what."""
    text, (place, where) = " ".join(rule), _place(cli, everywhere=everywhere)
    new = persons_rules().add(text, place)
    cli.out.begin(command="permissions add")
    cli.out.show(f"{'Agreed' if new else 'Agreed already'}: {written(text)} ({where})")
    return cli.out.result("ok", Exit.DONE, rule=written(text), new=new)


async def permissions_remove(cli: Invocation, rule: Rule, *, everywhere: Everywhere = False) -> Exit:
    """Remove a rule."""
    text, (place, where) = " ".join(rule), _place(cli, everywhere=everywhere)
    gone = persons_rules().remove(text, place)
    cli.out.begin(command="permissions remove")
    cli.out.show(f"Removed: {text}" if gone else f"There is no such rule ({where}): {text}")
    return cli.out.result("ok" if gone else "unknown", Exit.DONE if gone else Exit.FAILED)


def _place(cli: Invocation, *, everywhere: bool) -> tuple[Path | None, str]:
    """Where a rule holds, also in words."""
    return (None, "everywhere") if everywhere else (cli.means.root, f"in {cli.means.root}")
