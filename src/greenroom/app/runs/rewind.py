"""Going back: a new run that begins as another one was right after one of its steps, with the files of then.

The run that it comes from is not touched. What the new one begins with follows from its own log (`workspaces.opened`):
after a kill it goes on with the conversation, board and files of the same moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.app.conversation.names import JOB
from greenroom.app.conversation.send import tell
from greenroom.app.lookup import Found, refused
from greenroom.app.runs.workspaces import opened, outcome
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.records import record
from greenroom.core.ports.codec import decode_event
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.fold import fold
from greenroom.core.state.step import Step, StepEnded, Work, ended
from greenroom.core.state.world import NOWHERE
from greenroom.runs import checkout
from greenroom.runs.workspace import History

NAMED: Final = 5
"""Steps that a refusal names."""


@record
class Moment:
    """A step that has ended, and the `version` at which all that was written with its end was."""

    step: Step
    version: int


async def moments(runtime: Runtime, team: TeamId) -> list[Moment]:
    """All that one can go back to, oldest first."""
    world, found, open_ones = NOWHERE, list[Moment](), list[Step]()
    async for page in runtime.log.read(team):
        for stored in page:
            event = decode_event(stored)
            if isinstance(event, StepEnded):
                open_ones.append(ended(world.steps[event.step_id], event, stored.version))
            world = fold(world, event)
            if stored.ends:
                found += [Moment(step=one, version=stored.version) for one in open_ones]
                open_ones.clear()
    return found


async def moment(runtime: Runtime, team: TeamId, text: str) -> Moment:
    """The one that `text` names: by the step's id, or by its number where only one agent has it; `Refused` says what
    there is instead."""
    every = await moments(runtime, team)
    names = [one.step.step_id for one in every]
    waiting = {one: step.state for one, step in (await runtime.world(team)).steps.items()}
    wanted = _named([*names, *waiting], text.strip())
    if len(wanted) > 1:
        raise refused("ambiguous_step", f"{text!r} may be {', '.join(wanted)}.", "Type all of it.")
    there = f"The last that have: {', '.join(reversed(names[-NAMED:]))}." if names else "None has ended yet."
    if not wanted:
        raise refused("unknown_step", f"{team} has no step {text!r} that has ended.", there)
    if wanted[0] not in names:
        why = f"Step {wanted[0]} of {team} has not ended ({waiting[wanted[0]]}), so nobody can go back to its end."
        raise refused("open_step", why, there)
    found = every[names.index(wanted[0])]
    if not (await runtime.world(team, found.version)).tasks:
        why = f"With step {wanted[0]} the work of {team} was over: nothing would go on from there."
        raise refused("over_then", why, "Name an earlier step.")
    return found


def _named(names: Sequence[StepId], text: str) -> list[StepId]:
    if text in names:
        return [StepId(text)]
    number = text.removeprefix("#")
    return [one for one in dict.fromkeys(names) if number.isdecimal() and one.rpartition("#")[2] == number]


async def rewound(runtime: Runtime, history: History, team: TeamId, to: Moment) -> TeamId:
    """A new team that begins as this one was then; of a job with a copy of the files of then. It does not work yet."""
    world = await runtime.world(team)
    job = world.team.kit == JOB
    if job:
        await outcome(world.team, history)  # what cannot be had is refused before anything is made
    new = await runtime.fork(team, to.version)
    if job:
        await opened((await runtime.world(new)).team, history)
        await _prepared_again(runtime, history, new)
    return new


async def _prepared_again(runtime: Runtime, history: History, team: TeamId) -> None:
    """A copy that had to be prepared was, and this is another one."""
    done = [one for one in await history(team) if one.work.executor == checkout.NAME and one.state == "finished"]
    world = await runtime.world(team)
    if done and done[-1].task_id in world.tasks:
        work = Work(type="tool", executor=checkout.NAME, intention="Prepare the copy.", instruction_content={})
        again = QueueSteps(agent_id=done[-1].agent_id, works=(work,), task_id=done[-1].task_id, place="next")
        await runtime.ask(team, again)


async def told(runtime: Runtime, team: TeamId, text: str) -> None:
    """Say something to whoever goes on, before they do."""
    if text:
        await tell(runtime, Found(team=team), text)
