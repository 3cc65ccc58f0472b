"""`greenroom rewind`: back to the end of a step, with conversation, files and board; and on from there."""

from __future__ import annotations

from pathlib import Path

from greenroom.app.conversation.chat import models_of
from greenroom.app.conversation.names import ASK, JOB
from greenroom.app.conversation.typed import message
from greenroom.app.jobs.place import workspace
from greenroom.app.jobs.rewind import Moment, moment, moments, rewound, told
from greenroom.app.jobs.verdict import COMMIT
from greenroom.app.library.results import kits_of_programs, refuse
from greenroom.app.lookup import Found, find
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.state.team import Team
from greenroom.interfaces.cli.asked.orders import Caps, Resume, Tape
from greenroom.interfaces.cli.asked.taking import Rewind
from greenroom.interfaces.cli.commands.resume import resume
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.words import shorten, step_words
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door
from greenroom.testing.demo import ASKING_KIT, KIT

SHOWN = 40
"""Steps that are listed, the newest; of more, how many there are."""

WIDE = 70
IN_PLACE = "The files stay as they are: it works in them itself, and nobody keeps what they were."


async def rewind(door: Door, order: Rewind) -> Exit:
    """Make the new run, say what it is, and let it go on."""
    found = await find(door.runtime, order.name)
    if not order.step:
        return await _listed(door, found, order)
    world = await door.runtime.world(found.team)
    team = world.team
    await _refuse(door, found, team, order)
    to = await moment(door.runtime, found.team, order.step)
    for model in models_of(world) if order.runs else ():
        door.means.named(model)
    new = await rewound(door.runtime, door.means.steps, found.team, to)
    await told(door.runtime, new, message(order.text) if order.text else "")
    await _noted(door, found, team, to, new)
    if order.runs:
        again = Resume(
            name=new,
            alone=order.alone,
            caps=Caps(cost=None, tokens=None, time=None),
            tape=Tape(record=None, replay=None),
        )
        return await resume(door, again)
    door.out.show(new)
    door.progress.note(f"Go on with: {command(door, 'resume', new)}")
    return door.out.result("rewound", Exit.DONE, team=new, origin=found.team, step=to.step.step_id, version=to.version)


async def _refuse(door: Door, found: Found, team: Team, order: Rewind) -> None:
    """All that can be said before anything is made."""
    if found.task is not None:
        raise Refused(Rejected(code="whole_teams", why="Only whole teams are rewound.", hint=f"Say {found.team}."))
    if team.kit in kits_of_programs():
        refuse(team)
    if order.text and team.kit in (KIT, ASKING_KIT):
        why = f"The agents of {found.team} follow a script, and read nothing else."
        raise Refused(Rejected(code="scripted", why=why, hint="Rewind it without words."))
    holder = await door.runtime.log.holder(found.team)
    if holder is not None:
        raise WorldFault(
            f"Team {found.team!r} runs, in {holder.owner}: two would do the same work. End that first (Ctrl-C there); "
            "nothing is lost. Then rewind it."
        )


async def _noted(door: Door, found: Found, team: Team, to: Moment, new: str) -> None:
    step = to.step.step_id
    door.progress.note(f"{new} begins as {found.team} was when {step} had ended. {found.team} stays as it is.")
    if team.kit != JOB:
        if team.kit != ASK:
            door.progress.note(IN_PLACE, style="yellow")
        return
    theirs = await workspace(Path(team.workspace))
    if any(one.state == "applied" for one in await theirs.applied(found.team)):
        back = command(door, "undo", found.team)
        door.progress.note(
            f"What {found.team} has changed is in your files. Before you apply {new}, take it back: {back}"
        )


async def _listed(door: Door, found: Found, order: Rewind) -> Exit:
    """The steps that one can go back to."""
    if order.text:
        raise Refused(Rejected(code="no_step", why="It is not said how far to go back.", hint="Say --to STEP."))
    every = await moments(door.runtime, found.team)
    door.out.begin(team=found.team, command="rewind", home=str(door.home))
    if not every:
        raise Refused(Rejected(code="no_steps", why=f"No step of {found.team} has ended, so there is no way back."))
    if len(every) > SHOWN:
        door.out.show(f"… {len(every) - SHOWN} before these")
    wide = max(len(one.step.step_id) for one in every[-SHOWN:])
    for one in every[-SHOWN:]:
        door.out.show(f"{one.step.step_id:<{wide}}  {_words(one)}")
    some = [one for one in every[:-1] if _commit(one)] or every[:-1] or every
    door.progress.note(f"Go back to one: {command(door, 'rewind', found.team, '--to', some[-1].step.step_id)}")
    rows = [{"step": one.step.step_id, "version": one.version, "commit": _commit(one)} for one in every]
    return door.out.result("listed", Exit.DONE, team=found.team, steps=rows)


def _words(one: Moment) -> str:
    how = "" if one.step.state == "finished" else f" ({one.step.state})"
    said = str((one.step.result or {}).get("text", "")) if one.step.work.type == "skill" else ""
    what = f"{step_words(one.step)}: {' '.join(said.split())}" if said.strip() else step_words(one.step)
    return harmless(shorten(what, WIDE)) + how + (" · files changed" if _commit(one) else "")


def _commit(one: Moment) -> str:
    return str((one.step.result or {}).get(COMMIT, ""))
