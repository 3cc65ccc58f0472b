"""How to type what only looks: `tasks`, `show`, `events`, `replay`, `cost`."""

from __future__ import annotations

from typing import Annotated

import typer

from greenroom.interfaces.cli.asked.orders import By, Cost, Events, Replay, Show, Tasks
from greenroom.interfaces.cli.entry.doing import do
from greenroom.interfaces.cli.entry.ids import OPTIONAL, Id


def tasks(
    context: typer.Context,
    *,
    every: Annotated[bool, typer.Option("--all", help="All teams, not only the newest.")] = False,
) -> int:
    """List what was and is being worked on, newest first."""
    return do(context, Tasks(every=every))


def show(context: typer.Context, name: Id) -> int:
    """Show a team (or one task of it): tasks, agents, messages, costs."""
    return do(context, Show(name=name))


def events(
    context: typer.Context,
    name: Id,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what happens, until no task is open.")
    ] = False,
    after: Annotated[int, typer.Option("--after", min=0, metavar="N", help="Only what came after version N.")] = 0,
) -> int:
    """Print what happened in a team, one line per event."""
    return do(context, Events(name=name, follow=follow, after=after))


def replay(
    context: typer.Context,
    name: Id,
    *,
    at: Annotated[int | None, typer.Option("--at", min=1, metavar="N", help="Show what was true at version N.")] = None,
) -> int:
    """Tell a run again as a story, or show what was true at one version of it."""
    return do(context, Replay(name=name, at=at))


def cost(
    context: typer.Context,
    name: Annotated[str, OPTIONAL] = "",
    *,
    by: Annotated[By, typer.Option("--by", metavar="run|agent|model", help="What each row is about.")] = "run",
) -> int:
    """Say what one team, or all of them, have cost: money, tokens, steps."""
    return do(context, Cost(name=name, by=by))
