"""`greenroom show`: a team as it is now."""

from __future__ import annotations

import msgspec

from greenroom.app.conversation.names import JOB
from greenroom.app.jobs.verdict import Finding, Verdict, as_kept, sentence, verdict_in
from greenroom.app.lookup import find
from greenroom.interfaces.cli.asked.orders import Show
from greenroom.interfaces.cli.commands.portrait import Portrait, fields, portray, rendered
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command, unverified_code
from greenroom.interfaces.cli.runs.session import Door


async def show(door: Door, order: Show) -> Exit:
    """Print a portrait of the team."""
    found = await find(door.runtime, order.name)
    portrait = await portray(door, found.team)
    holder = await door.runtime.log.holder(found.team)
    owner = holder.owner if holder else None
    door.out.begin(team=found.team, command="show")
    how = f"version {portrait.teller.version} · " + (f"runs in {owner}" if owner else "nobody runs it")
    door.out.show(*rendered(portrait, how, found.task))
    verdict = await _verdict(door, portrait)
    if verdict is not None:
        language = door.means.provisions.loaded.settings.language
        reasons = (*verdict.reasons, *verdict.notes)
        door.out.show("", f"verdict: {verdict.state}", *(f"  {sentence(one, language)}" for one in reasons))
    if portrait.teller.world.tasks and owner is None:
        door.progress.note(f"\nGo on with: {command(door, 'resume', found.team)}")
    else:
        door.progress.note(f"\nThe whole story: {command(door, 'replay', order.name)}")
    if portrait.steps:
        door.progress.note(f"Its steps, to go back to one: {command(door, 'rewind', found.team)}")
    kept = {"verdict": as_kept(verdict)} if verdict is not None else {}
    return door.out.result("ok", Exit.DONE, **fields(portrait, owner, found.task), **kept)


async def _verdict(door: Door, portrait: Portrait) -> Verdict | None:
    """What the checks said of a run's change; None for a team that makes none."""
    team = portrait.teller.world.team
    if team.kit == JOB:
        return verdict_in(await door.means.steps(team.team_id))
    code = await unverified_code(door, team.team_id, portrait.teller)
    return Verdict(state="unverified", reasons=(msgspec.convert({"code": code}, Finding),)) if code else None
