"""Following a run with somebody at the terminal: what it waits for is asked there and then, and it goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.display.questions import Gone, Person
from greenroom.interfaces.cli.runs.deciding import answered, is_plan, kept, question, waiting
from greenroom.interfaces.cli.runs.running import Ending, follow
from greenroom.interfaces.cli.runs.session import Door

Ear: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Hears what is typed meanwhile."""


async def attended(door: Door, team: TeamId, *, new: bool = False, ear: Ear = nullcontext) -> Ending:
    """Follow it to its end; where somebody can be asked, they are. Who says nothing leaves it parked. The `ear` is open
    while it is worked, and not while something is asked."""
    with ear() if somebody(door) else nullcontext():
        ending = await follow(door, team, new=new)
    while ending.status == "waiting" and somebody(door):
        try:
            await _ask(door, team)
        except Gone:
            break
        with ear():
            ending = await follow(door, team)
    return ending


def somebody(door: Door) -> bool:
    """Whether a person is there to be asked."""
    at_terminal = door.out.text and not door.setup.quiet and sys.stdin.isatty() and sys.stderr.isatty()
    return at_terminal and door.means.attended


async def _ask(door: Door, team: TeamId) -> None:
    person = Person()
    while asked := waiting(await door.runtime.world(team)):
        world, one = await door.runtime.world(team), asked[0]
        plan = is_plan(world, one)
        answer = answered(one, person.line(question(one, plan=plan)), plan=plan)
        if answer is None:
            door.progress.note("That is none of the answers.", style="yellow")
            continue
        note = kept(world, one, answer)
        await door.runtime.ask(team, answer)
        if note:
            door.progress.note(note, style="dim")
