"""`greenroom demo`: three scripted agents talk and work; with `--crash` they are killed and carry on."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated

import typer

from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.crash import crash_and_resume, proofs
from greenroom.interfaces.cli.ending import close
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.kits import PACE, WATCHABLE
from greenroom.interfaces.cli.running import follow
from greenroom.interfaces.cli.session import Door, run
from greenroom.testing.demo import AGENTS, ASKING_KIT, KIT, PERSON, TASK

FIRST_LINE = "The agents' replies are scripted. Everything else is real: the log, the files, the crash, the recovery."


def demo(
    context: typer.Context,
    *,
    crash: Annotated[
        bool, typer.Option("--crash", help="Kill the process half-way and let another one go on.")
    ] = False,
    ask: Annotated[bool, typer.Option("--ask", help="Let the team ask you before it publishes.")] = False,
    pace: Annotated[
        float, typer.Option("--pace", min=0.0, max=60.0, envvar=PACE, help="Seconds that a reply or a tool takes.")
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
        return close(door, team, await follow(door, team, new=True), name="last")
    await door.runtime.stop(team)
    ending = await crash_and_resume(door, team)
    door.progress.note("")
    door.progress.note("Counted in the log and on the disk:", style="bold")
    right = True
    for proof in await proofs(door, team):
        door.progress.note(
            f"  {'✓' if proof.right else '✗'} {proof.what:<9} {proof.found}", style="green" if proof.right else "red"
        )
        right = right and proof.right
    code = close(door, team, ending, name="last")
    return code if right else Exit.FAILED


async def _make(door: Door, kit: str) -> TeamId:
    team = await door.runtime.create("demo", (*AGENTS, PERSON) if kit == ASKING_KIT else AGENTS, kit=kit)
    await door.runtime.ask(team, TASK)
    return team
