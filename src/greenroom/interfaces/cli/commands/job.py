"""A job at this door: a request becomes a change in a copy of the person's files, which they take over or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from greenroom.app.conversation.chat import models_of
from greenroom.app.conversation.start import Wanted
from greenroom.app.jobs.place import workspace
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked.orders import Run
from greenroom.interfaces.cli.asked.taking import Apply, Branch
from greenroom.interfaces.cli.display.work import Work
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.attending import attended
from greenroom.interfaces.cli.runs.beginning import Begun, with_context
from greenroom.interfaces.cli.runs.handing import handed_over, not_begun
from greenroom.interfaces.cli.runs.hearing import Hearing
from greenroom.interfaces.cli.runs.jobs import founded, sure_of_checks, tier
from greenroom.interfaces.cli.runs.session import Door

UNTOUCHED = "your files stay untouched"


async def job(door: Door, order: Run, beginning: Begun) -> Exit:
    """Found the team, follow it, and hand over what came of it; if that was ordered, take it over at once."""
    if isinstance(order.take, Branch):
        await (await workspace(door.means.root)).expect(branch=order.take.branch)
    talk, cast = Work(door.setup, door.out), beginning.cast
    whole = with_context(order.question, order.context, beginning.language)
    wanted = Wanted(
        question=order.wants_answer,
        tests_may_change=order.tests_may_change,
        allow_unverified=order.allow_unverified,
    )
    team = await founded(door, beginning, whole, order.question, wanted)
    door.out.begin(team=team, command="run", model=cast.models[0], agent=cast.first, home=str(door.home))
    talk.own = order.question
    talk.facts(f"run {team}", beginning.line, tier(door.means), UNTOUCHED)
    for note in filter(None, (*beginning.notes, beginning.outside)):
        talk.note(note, style="dim")
    told = replace(door, progress=talk)
    if not sure_of_checks(told, door.means.root):
        return not_begun(told, team)
    ending = await attended(told, team, new=True, ear=Hearing(told, team, talk).open)
    return await handed_over(told, team, ending, name="last", spoken=talk.spoken, take=order.take)


async def job_again(door: Door, world: World, take: Apply | Branch | None = None) -> Exit:
    """Go on with a job that nobody runs: the same row, and the same end."""
    talk, team, root = Work(door.setup, door.out), world.team.team_id, Path(world.team.workspace)
    if isinstance(take, Branch):
        await (await workspace(root)).expect(branch=take.branch)
    told = replace(door, progress=talk)
    talk.facts(f"run {team} goes on", ", ".join(models_of(world)), tier(door.means), UNTOUCHED)
    if not sure_of_checks(told, root):
        return not_begun(told, team)
    ending = await attended(told, team, ear=Hearing(told, team, talk).open)
    return await handed_over(told, team, ending, spoken=talk.spoken, take=take)
