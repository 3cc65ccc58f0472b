"""`greenroom trust` and `permissions`: what a person trusts in a workspace, and which rules they set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from greenroom.app.memories import find_memory_items
from greenroom.app.messages import count_things, translate
from greenroom.app.run_plan import TrustEntry, list_trust_entries
from greenroom.app.runs.checks import list_check_items, open_choices
from greenroom.app.toolset.policy import normalise_rule, open_user_rules
from greenroom.app.trust import find_troubles, open_trust_store
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.cli.render.questions import confirm
from greenroom.cli.start import render_trust_entries
from greenroom.core.base.errors import make_refusal
from greenroom.policy.rules import BadRule


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
        cli.progress.note(translate("trust.no_terminal", command=render_command(cli, "trust", "--yes")))
        return cli.out.result("waiting", Exit.WAITING, open=len(untrusted))
    if not yes and not confirm(translate("trust.question")):
        cli.progress.note(translate("trust.nothing_trusted"))
        return cli.out.result("refused", Exit.FAILED, open=len(untrusted))
    open_trust_store().trust_items(root, untrusted)
    command = render_command(cli, "trust", "--revoke")
    cli.progress.note(translate("trust.trusted", command=command), style="green")
    return cli.out.result("agreed", Exit.DONE, open=0)


def _show_entries(cli: Invocation, root: Path) -> list[TrustEntry]:
    entries = list_trust_entries(root, (*list_check_items(root), *find_memory_items(cli.app.memories(root))))
    fields = ("kind", "name", "shown", "digest")
    item_fields = (
        {"standing": item.standing, **{name: getattr(item.trust_item, name) for name in fields}} for item in entries
    )
    cli.out.listing("item", item_fields)
    cli.out.show(*render_trust_entries(entries))
    for fault in find_troubles(root):
        cli.progress.note(strip_control_characters(f"! {fault}"), style="yellow")
    if not entries:
        cli.progress.note(translate("trust.nothing_here"))
    return entries


def _revoke_trust(cli: Invocation, root: Path) -> Exit:
    count, choices = open_trust_store().revoke(root), open_choices()
    cli.progress.note(translate("trust.revoked", things=count_things("thing", count)))
    chosen = choices.get(root)
    if chosen is not None:
        choices.forget(root)
        cli.progress.note(translate("trust.checks_asked_again"))
    return cli.out.result("revoked", Exit.DONE, count=count, checks=chosen is not None)


EVERYWHERE: Final = "everywhere"  # where a rule applies, for programs
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
    rules = [(rule, place or EVERYWHERE) for place, rules_there in file.list_rules().items() for rule in rules_there]
    cli.out.begin(file=str(file.path))
    cli.out.listing("rule", ({"rule": rule, "where": place} for rule, place in rules))
    if rules:
        cli.out.show(
            FittedTable(
                RULE_COLUMNS,
                [make_row(strip_control_characters(rule), _render_place(place)) for rule, place in rules],
            )
        )
    else:
        command = render_command(cli, "permissions", "add", "allow command npm test")
        cli.progress.note(translate("trust.no_rules", command=command))


async def permissions_add(cli: Invocation, rule: Rule, *, everywhere: Everywhere = False) -> Exit:
    """Add a permission rule.

    A rule has three parts: allow, notify, ask or deny; command, line, path, host or tool; a pattern.

    Examples:
      greenroom permissions add allow command npm test
      greenroom permissions add --everywhere "deny path **/*.sql"

    Exit codes: 0; 2; 3.
    """
    text, (place, where) = " ".join(rule), _find_place(cli, everywhere=everywhere)
    try:
        new = open_user_rules().add(text, place)
    except BadRule as error:  # typed wrong
        raise make_refusal(error.code, str(error)) from error
    key = "trust.rule_added" if new else "trust.rule_there"
    cli.out.show(translate(key, rule=normalise_rule(text), where=where))
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
    cli.out.show(translate("trust.rule_removed" if gone else "trust.rule_unknown", rule=text, where=where))
    return cli.out.result("ok" if gone else "unknown", Exit.DONE if gone else Exit.FAILED)


def _render_place(place: str) -> str:
    return translate("trust.everywhere") if place == EVERYWHERE else strip_control_characters(place)


def _find_place(cli: Invocation, *, everywhere: bool) -> tuple[Path | None, str]:
    if everywhere:
        return None, translate("trust.everywhere")
    return cli.app.root, translate("trust.in_folder", folder=cli.app.root)
