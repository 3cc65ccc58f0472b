"""How to type what has to do with an organisation: `team` and `talk`."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from greenroom.interfaces.cli.asked.organising import (
    Talk,
    TeamDismiss,
    TeamList,
    TeamNew,
    TeamStart,
    TeamStatus,
    TeamStop,
)
from greenroom.interfaces.cli.entry.doing import do
from greenroom.interfaces.cli.entry.options import MaxCost, MaxTime, MaxTokens, ModelName, Record, Replay

Name: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="[NAME]", help="Which one: its name, or the beginning of its id. [default: the only one]"),
]


def team_new(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")],
    *,
    person: Annotated[
        list[str] | None,
        typer.Option("--person", metavar="NAME", help="Who belongs to it; again for more people. [default: you]"),
    ] = None,
    language: Annotated[
        str, typer.Option("--language", metavar="en|zh", help="In which language it speaks. [default: your settings']")
    ] = "",
    model: ModelName = "",
) -> int:
    """Write the file of a new organisation, to go on with in your editor."""
    return do(context, TeamNew(name=name, people=tuple(person or ()), language=language, model=model))


def team_start(
    context: typer.Context,
    name: Name = "",
    *,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Let an organisation work, here and until Ctrl-C. Whatever ended it, it goes on where it was."""
    order = TeamStart(name=name, cost=max_cost, tokens=max_tokens, time=max_time, record=record, replay=replay)
    return do(context, order)


def team_status(
    context: typer.Context,
    name: Name = "",
    *,
    kind: Annotated[
        str,
        typer.Option("--type", metavar="task|stage|agent|step", help="All states of one type, by their ids."),
    ] = "",
) -> int:
    """Show how an organisation stands, who does what, and who waits for whom; or all its states."""
    return do(context, TeamStatus(name=name, kind=kind))


def team_list(context: typer.Context) -> int:
    """List the organisations of this workspace, and those that run from others."""
    return do(context, TeamList())


def team_stop(context: typer.Context, name: Name = "") -> int:
    """Stop an organisation, also one that runs in another terminal. `greenroom team start` goes on with it."""
    return do(context, TeamStop(name=name))


def team_dismiss(
    context: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Who is to go.")],
    name: Name = "",
) -> int:
    """Let somebody go who has nothing open: an agent that a manager made, or whom the file does not name any more."""
    return do(context, TeamDismiss(agent=agent, name=name))


def talk(
    context: typer.Context,
    name: Name = "",
    *,
    person: Annotated[
        str, typer.Option("--as", metavar="NAME", help="Who you are. [default: the only person that there is]")
    ] = "",
    say: Annotated[
        str | None,
        typer.Option(
            "--say",
            metavar="TEXT",
            help="Do what this line does when it is typed, and leave: `/answer 1 Green`. A space before it says it as "
            "it is.",
        ),
    ] = None,
    to: Annotated[
        str, typer.Option("--to", metavar="AGENT", help="Say it to them, as it is. [default: the manager]")
    ] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Stay until nothing more happens by itself, and tell what comes.")
    ] = False,
    inbox: Annotated[bool, typer.Option("--inbox", help="Only show what waits for you.")] = False,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Talk to an organisation as one of its people: read, answer, ask for something. Each line of a pipe is one too."""
    if say is not None and not say.strip():
        raise typer.BadParameter("--say has nothing to say.")
    if say is not None and say in (name for param in context.command.params for name in param.opts):
        raise typer.BadParameter(f"--say has nothing to say: {say} is an option. To say it, put a space before it.")
    if to and not say:
        raise typer.BadParameter("--to says whom --say is for. Say something, too.")
    if to and not to.strip(", "):
        raise typer.BadParameter("--to names nobody.")
    if inbox and (say or wait):
        raise typer.BadParameter("--inbox only looks. Leave out --say and --wait.")
    order = Talk(name=name, person=person, say=say or "", to=to, wait=wait, inbox=inbox, record=record, replay=replay)
    return do(context, order)
