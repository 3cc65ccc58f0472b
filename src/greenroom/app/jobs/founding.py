"""Founding a job: the team that does it, and what it begins with."""

from __future__ import annotations

from typing import TypeAlias

from greenroom.app.jobs import setup as preparing
from greenroom.app.jobs.coder import proven
from greenroom.app.jobs.verdict import BASELINE, CONFIRM
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
    setup: bool = False,
    wanted: Wanted = NOTHING_SAID,
) -> TeamId:
    """A team whose work is judged by checks; it does not work yet. With `setup` its worktree is prepared first; then
    the checks run on the base, and a person is asked where nothing can judge and an answer is not all they want."""
    works = [turn(question, typed, wanted)]
    if not wanted.question:
        works.insert(0, _step(CONFIRM, "See whether anything can verify the change."))
        works.insert(0, _step(BASELINE, "Run the checks before any change."))
    if setup:
        works.insert(0, _step(preparing.NAME, "Prepare the worktree."))
    queued = QueueSteps(agent_id=cast.first, works=tuple(works), task_id=FIRST, origins=brought(question, typed))
    begin = (task_of(typed or question, cast), queued)
    return await runtime.create(JOB, judged(cast), kit=JOB, workspace=cast.workspace, limits=limits, begin=begin)


def _step(executor: str, intention: str) -> Work:
    return Work(type="tool", executor=executor, intention=intention, instruction_content={})


def judged(cast: Cast) -> Members:
    """Its members; on the work of the one that is talked to the house has the last word. Whoever that one calls only
    answers it, so their work is judged with its own."""
    (name, first), *others = cast.members
    return ((name, proven(first)), *others)
