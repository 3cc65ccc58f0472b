"""Founding a job: the team that does it, and what it begins with."""

from __future__ import annotations

from greenroom.app.jobs import baseline
from greenroom.app.runtime import Runtime
from greenroom.app.talks.founding import FIRST, Cast, brought, task_of, turn
from greenroom.app.talks.names import JOB
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import TeamId
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Work


async def found_job(
    runtime: Runtime, cast: Cast, question: str, *, typed: str = "", limits: Limits, checks: bool
) -> TeamId:
    """A team whose work ends when it is proven; it does not work yet. With `checks` they are first run as it is."""
    first = Work(type="tool", executor=baseline.NAME, intention="See what passes now.", instruction_content={})
    works = (*((first,) if checks else ()), turn(question, typed))
    queued = QueueSteps(agent_id=cast.first, works=works, task_id=FIRST, origins=brought(question, typed))
    begin = (task_of(typed or question, cast), queued)
    return await runtime.create(JOB, cast.members, kit=JOB, workspace=cast.workspace, limits=limits, begin=begin)
