"""`greenroom skills`: list and show the skills that agents get, and copy those of shared repositories."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Final, TypeAlias

import typer
from rich.text import Text

from greenroom.app.messages import count_things, translate
from greenroom.app.skill_folders import FileSkill, FoundSkills, find_skills
from greenroom.app.skill_sync import SyncedRepository, remove_other_copies, sync_repository
from greenroom.app.trust import TrustItem, make_skill_check
from greenroom.app.words import shorten
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.cli.render.questions import confirm
from greenroom.core.base.errors import WorldFault, make_refusal

COLUMNS: Final = (
    Column(name="skill"),
    Column(name="what it is for", can_shrink=True, min_terminal_width=40),
    Column(name="files", right=True, min_terminal_width=100),
    Column(name="from", can_shrink=True, style="dim"),
)
MAX_LINE_CHARS: Final = 100
SkillName: TypeAlias = Annotated[
    str, typer.Argument(metavar="SKILL", help="Name of the skill; see `greenroom skills list`.")
]


def _find(cli: Invocation) -> FoundSkills:
    return find_skills(cli.app.root, cli.app.settings.skills.repositories)


async def skills_list(cli: Invocation) -> None:
    """List the skills that agents can get here.

    A skill is a folder with a SKILL.md: of the project, your own, of Claude Code, of a shared repository.
    For each task, agents get the skills that fit it.

    Examples:
      greenroom skills list
      greenroom skills list --output-format json

    Exit codes: 0; 2; 3.
    """
    found, is_trusted = _find(cli), make_skill_check(cli.app.root)
    skills = found.by_name.values()
    cli.out.listing("skill", ({**_summary(skill), "agreed": is_trusted(skill)} for skill in skills))
    cli.out.listing("trouble", ({"scope": scope, "error": text} for scope, text in found.troubles))
    rows = list[list[Text]]()
    for skill in skills:
        label = skill.source.label
        place = label if is_trusted(skill) else translate("agents.not_trusted", folder=label)
        what = shorten(skill.description, MAX_LINE_CHARS)
        rows.append(make_row(skill.name, what, str(len(skill.files)), strip_control_characters(place)))
    if rows:
        cli.out.show(FittedTable(COLUMNS, rows))
    else:
        cli.progress.note(translate("skills.none"))
    for hidden in found.hidden:
        cli.progress.note(translate("skills.hidden", path=hidden.folder, nearer=found.by_name[hidden.name].folder))
    for _, text in found.troubles:
        cli.progress.note(strip_control_characters(f"! {text}"), style="yellow")
    if any(skill.source.scope == "project" and not is_trusted(skill) for skill in skills):
        cli.progress.note(translate("skills.untrusted", command=render_command(cli, "trust")))
    if not cli.app.settings.skills.use:
        cli.progress.note(translate("skills.off"))


def _summary(skill: FileSkill) -> dict[str, object]:
    return {
        "name": skill.name,
        "description": skill.description,
        "from": skill.source.label,
        "folder": str(skill.folder),
        "files": list(skill.files),
    }


async def skills_show(cli: Invocation, name: SkillName) -> Exit:
    """Show a skill: its folder, its files and its text.

    It also says if the skill is not trusted in this version.

    Examples:
      greenroom skills show release
      greenroom skills show release --output-format json

    Exit codes: 0; 2; 3.
    """
    found = _find(cli).by_name
    skill = found.get(name.strip())
    if skill is None:
        names = ", ".join(found) or translate("hints.none")
        raise make_refusal(
            "unknown_skill", translate("skills.unknown", name=name), translate("hints.there", there=names)
        )
    agreed = make_skill_check(cli.app.root)(skill)
    if not agreed:
        cli.progress.note(f"! {translate('skills.not_trusted', name=skill.name)}\n", style="yellow")
    heading = Text(skill.name, style="bold").append(f"  {skill.source.label} · {skill.folder}", style="not bold dim")
    cli.out.show(heading, Text(skill.description), Text(", ".join(skill.files), style="dim"), Text(""))
    cli.out.write(f"{skill.body}\n")
    return cli.out.result("ok", Exit.DONE, **_summary(skill), agreed=agreed, text=skill.body)


async def skills_sync(
    cli: Invocation,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Trust new and changed skills without being asked.")] = False,
) -> Exit:
    """Copy the skills of the repositories in your settings.

    Name them in your settings: [skills] repositories = ["https://…", "git@host:team/skills.git"].
    You are asked before a new or changed skill is used.

    Examples:
      greenroom skills sync
      greenroom skills sync --yes

    Exit codes: 0; 1 a repository cannot be copied, or you answered no; 2; 3; 6 there is no terminal to ask you.
    """
    addresses = cli.app.settings.skills.repositories
    removed = remove_other_copies(addresses)
    if not addresses:
        cli.progress.note(translate("skills.no_repositories"))
        return cli.out.result("ok", Exit.DONE, repositories=[], open=0)
    synced, failed = list[SyncedRepository](), list[str]()
    for address in addresses:
        try:
            synced.append(await sync_repository(address, os.environ, cli.app.root))
        except WorldFault as fault:
            failed.append(str(fault))
            cli.progress.note(strip_control_characters(f"! {fault}"), style="yellow")
    new = [(repository, _show(cli, repository)) for repository in synced]
    cli.out.listing("repository", ({"address": each.address, "commit": each.commit} for each in synced))
    code = Exit.FAILED if failed else Exit.DONE
    count = sum(len(items) for _, items in new)
    if not count:
        return cli.out.result("failed" if failed else "ok", code, open=0, removed=removed)
    if not yes and not (cli.out.is_text and sys.stdin.isatty() and sys.stderr.isatty()):
        cli.progress.note(translate("trust.no_terminal", command=render_command(cli, "skills", "sync", "--yes")))
        return cli.out.result("waiting", Exit.WAITING, open=count)
    if not yes and not confirm(translate("trust.question")):
        cli.progress.note(translate("trust.nothing_trusted"))
        return cli.out.result("refused", Exit.FAILED, open=count)
    for repository, items in new:
        repository.trust(items)
    cli.progress.note(translate("skills.synced", things=count_things("skill", count)), style="green")
    return cli.out.result("failed" if failed else "agreed", code, open=0, removed=removed)


def _show(cli: Invocation, repository: SyncedRepository) -> list[TrustItem]:
    """Show the skills of a repository, and return those that are not trusted in their current version."""
    new = list[TrustItem]()
    cli.out.show(Text(strip_control_characters(f"{repository.address}  {repository.commit[:12]}"), style="bold"))
    for _, item, state in repository.list_items():
        mark = "" if state == "agreed" else f" ({translate(f'skills.{state}')})"
        cli.out.show(Text(strip_control_characters(f"  {item.name}{mark}  {item.shown}")))
        new += [] if state == "agreed" else [item]
    for _, text in repository.found.troubles:
        cli.progress.note(strip_control_characters(f"! {text}"), style="yellow")
    return new
