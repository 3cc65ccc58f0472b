"""`greenroom trust` and `permissions`: what a person trusts in a workspace, and which rules they set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from greenroom.app.messages import translate
from greenroom.app.runs.checks import list_check_items, open_choices
from greenroom.app.toolset.policy import normalise_rule, open_user_rules
from greenroom.app.trust import find_troubles, open_trust_store
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.cli.render.questions import confirm
from greenroom.cli.start import TrustEntry, list_trust_entries, render_trust_entries

TRUST_QUESTION: Final = "Trust their current content? [y] yes  [n] no: "


async def trust(
    cli: Invocation,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Trust everything without being asked.")] = False,
    only_list: Annotated[bool, typer.Option("--list", help="Only list the items.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke all trust in this workspace.")] = False,
) -> Exit:
    """Review and trust what this workspace contains.

    Its agents, tools, callbacks and servers are used only after you trust them. You are asked again when they change.

    Examples:
      greenroom trust
      greenroom trust --list

    Exit codes: 0; 1 you answered no; 2; 3; 6 there is no terminal to ask you.
    """
    if yes + only_list + revoke > 1:
        raise typer.BadParameter(translate("trust.options_exclusive"))
    root = cli.app.root
    cli.out.begin(workspace=str(root))
    if revoke:
        return _revoke_trust(cli, root)
    untrusted = [item.trust_item for item in _show_entries(cli, root) if item.standing != "agreed"]
    if only_list or not untrusted:
        return cli.out.result("ok", Exit.DONE, open=len(untrusted))
    if not yes and not (cli.out.is_text and sys.stdin.isatty() and sys.stderr.isatty()):
        cli.progress.note(
            f"Not trusted: there is no terminal to ask you. To trust them, run: {render_command(cli, 'trust', '--yes')}"
        )
        return cli.out.result("waiting", Exit.WAITING, open=len(untrusted))
    if not yes and not confirm(TRUST_QUESTION):
        cli.progress.note("Nothing was trusted.")
        return cli.out.result("refused", Exit.FAILED, open=len(untrusted))
    open_trust_store().trust_items(root, untrusted)
    cli.progress.note(f"✓ Trusted. To revoke this, run: {render_command(cli, 'trust', '--revoke')}", style="green")
    return cli.out.result("agreed", Exit.DONE, open=0)


def _show_entries(cli: Invocation, root: Path) -> list[TrustEntry]:
    entries = list_trust_entries(root, list_check_items(root))
    fields = ("kind", "name", "shown", "digest")
    item_fields = (
        {"standing": item.standing, **{name: getattr(item.trust_item, name) for name in fields}} for item in entries
    )
    cli.out.listing("item", item_fields)
    cli.out.show(*render_trust_entries(entries))
    for fault in find_troubles(root):
        cli.progress.note(strip_control_characters(f"! {fault}"), style="yellow")
    if not entries:
        cli.progress.note("This workspace contains nothing that needs your trust.")
    return entries


def _revoke_trust(cli: Invocation, root: Path) -> Exit:
    count, choices = open_trust_store().revoke(root), open_choices()
    cli.progress.note(f"Revoked: {count} {'thing' if count == 1 else 'things'} that you trusted here.")
    chosen = choices.get(root)
    if chosen is not None:
        choices.forget(root)
        cli.progress.note("The next run at a terminal asks again which checks to use.")
    return cli.out.result("revoked", Exit.DONE, count=count, checks=chosen is not None)


RULE_COLUMNS: Final = (Column(name="rule", can_shrink=True), Column(name="where", style="dim"))
Rule: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="RULE", help="For instance: allow command npm test. Quote rules with options."),
]
Everywhere: TypeAlias = Annotated[bool, typer.Option("--everywhere", help="Apply it in all workspaces.")]


async def permissions_list(cli: Invocation) -> None:
    """List your permission rules.

    The second column says where a rule applies.

    Examples:
      greenroom permissions list
      greenroom permissions list --output-format json

    Exit codes: 0; 2; 3.
    """
    file = open_user_rules()
    rules = [(rule, place or "everywhere") for place, rules_there in file.list_rules().items() for rule in rules_there]
    cli.out.begin(file=str(file.path))
    cli.out.listing("rule", ({"rule": rule, "where": place} for rule, place in rules))
    if rules:
        cli.out.show(
            FittedTable(
                RULE_COLUMNS,
                [make_row(strip_control_characters(rule), strip_control_characters(place)) for rule, place in rules],
            )
        )
    else:
        cli.progress.note(
            "You have no permission rules. Reading and editing in a workspace needs none; for all else you "
            f"are asked. To add one: {render_command(cli, 'permissions', 'add')} allow command npm test"
        )


async def permissions_add(cli: Invocation, rule: Rule, *, everywhere: Everywhere = False) -> Exit:
    """Add a permission rule.

    A rule has three parts: allow, notify, ask or deny; command, line, path, host or tool; a pattern.

    Examples:
      greenroom permissions add allow command npm test
      greenroom permissions add --everywhere "deny path **/*.sql"

    Exit codes: 0; 2; 3.
    """
    text, (place, where) = " ".join(rule), _find_place(cli, everywhere=everywhere)
    new = open_user_rules().add(text, place)
    cli.out.show(f"{'Added' if new else 'Already there'}: {normalise_rule(text)} ({where})")
    return cli.out.result("ok", Exit.DONE, rule=normalise_rule(text), new=new)


async def permissions_remove(cli: Invocation, rule: Rule, *, everywhere: Everywhere = False) -> Exit:
    """Remove a permission rule.

    Type it as `greenroom permissions list` shows it.

    Examples:
      greenroom permissions remove allow command npm test
      greenroom permissions remove --everywhere "deny path **/*.sql"

    Exit codes: 0; 1 there is no such rule; 2; 3.
    """
    text, (place, where) = " ".join(rule), _find_place(cli, everywhere=everywhere)
    gone = open_user_rules().remove(text, place)
    cli.out.show(f"Removed: {text}" if gone else f"Unknown rule ({where}): {text}")
    return cli.out.result("ok" if gone else "unknown", Exit.DONE if gone else Exit.FAILED)


def _find_place(cli: Invocation, *, everywhere: bool) -> tuple[Path | None, str]:
    return (None, "everywhere") if everywhere else (cli.app.root, f"in {cli.app.root}")
