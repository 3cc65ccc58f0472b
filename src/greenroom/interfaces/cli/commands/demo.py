"""`greenroom demo`: three scripted agents talk and work; with `--crash` they are killed and carry on."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.crash import crash_and_resume, prove
from greenroom.interfaces.cli.ending import close
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.kits import PACE, WATCHABLE
from greenroom.interfaces.cli.running import Ending, follow
from greenroom.interfaces.cli.session import Door, run
from greenroom.testing.demo import AGENTS, ASKING_KIT, KIT, PERSON, TASK

MISSING_CUE = "The script has no reply"
FIRST_LINE = "The agents' replies are scripted. Everything else is real: the log, the files, the crash, the recovery."


def demo(
    context: typer.Context,
    *,
    crash: Annotated[
        bool, typer.Option("--crash", help="Kill the process half-way and let another one go on.")
    ] = False,
    ask: Annotated[bool, typer.Option("--ask", help="Let the team ask you before it publishes.")] = False,
    pace: Annotated[
        float,
        typer.Option(
            "--pace",
            metavar="SECONDS",
            min=0.0,
            max=60.0,
            envvar=PACE,
            show_envvar=False,
            help="How long a reply or a tool takes; 0 is at once.",
        ),
    ] = WATCHABLE,
    team: Annotated[str | None, typer.Option("--team", hidden=True)] = None,
    fatal: Annotated[str | None, typer.Option("--fatal", hidden=True)] = None,
) -> int:
    """Watch three scripted agents talk and work; with --crash, see them die and carry on."""
    os.environ[PACE] = str(pace)
    work = partial(_demo, made=TeamId(team) if team else None, crash=crash, kit=ASKING_KIT if ask else KIT)
    return run(context, work, fatal=fatal)


async def _demo(door: Door, *, made: TeamId | None, crash: bool, kit: str) -> Exit:
    door.progress.note(FIRST_LINE, style="bold")
    team = made or await _make(door, kit)
    door.out.begin(team=team, command="demo", scripted=True, home=str(door.home))
    if not crash:
        return close(door, team, _covered(await follow(door, team, new=True)), name="last")
    await door.runtime.stop(team)
    ending = _covered(await crash_and_resume(door, team))
    fault = await prove(door, team)
    return close(door, team, replace(ending, fault=ending.fault or fault), name="last")


def _covered(ending: Ending) -> Ending:
    """A turn that the script does not cover is a failure, whatever the others made of it."""
    missed = [one for one in ending.teller.failures if MISSING_CUE in one]
    return replace(ending, fault=missed[0]) if missed else ending


async def _make(door: Door, kit: str) -> TeamId:
    team = await door.runtime.create("demo", (*AGENTS, PERSON) if kit == ASKING_KIT else AGENTS, kit=kit)
    await door.runtime.ask(team, TASK)
    return team
