"""Founding a job: the team that does it, and what it begins with."""

from __future__ import annotations

from typing import TypeAlias

from greenroom.app.jobs import baseline, preparing
from greenroom.app.jobs.coder import proven
from greenroom.app.runtime import Runtime
from greenroom.app.talks.founding import FIRST, Cast, brought, task_of, turn
from greenroom.app.talks.names import JOB
from greenroom.app.talks.wanted import NOTHING_SAID, Wanted
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Work

Members: TypeAlias = tuple[tuple[AgentId, AgentSpec], ...]


async def found_job(
    runtime: Runtime,
    cast: Cast,
    question: str,
    *,
    typed: str = "",
    limits: Limits,
    checks: bool,
    setup: bool = False,
    wanted: Wanted = NOTHING_SAID,
) -> TeamId:
    """A team whose work ends when it is proven; it does not work yet. With `setup` its copy is prepared first, with
    `checks` they are then run as it is."""
    first = Work(type="tool", executor=preparing.NAME, intention="Prepare the copy.", instruction_content={})
    second = Work(type="tool", executor=baseline.NAME, intention="See what passes now.", instruction_content={})
    works = (*((first,) if setup else ()), *((second,) if checks else ()), turn(question, typed, wanted))
    queued = QueueSteps(agent_id=cast.first, works=works, task_id=FIRST, origins=brought(question, typed))
    begin = (task_of(typed or question, cast), queued)
    return await runtime.create(JOB, judged(cast), kit=JOB, workspace=cast.workspace, limits=limits, begin=begin)


def judged(cast: Cast) -> Members:
    """Its members; on the work of the one that is talked to the house has the last word. Whoever that one calls only
    answers it, so their work is judged with its own."""
    (name, first), *others = cast.members
    return ((name, proven(first)), *others)
