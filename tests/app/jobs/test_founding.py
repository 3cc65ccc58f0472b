"""Founding a job: what is queued before an agent's first turn, and on whose work the house has the last word."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.app.conversation.names import JOB
from greenroom.app.conversation.start import Cast, Wanted
from greenroom.app.jobs.kit import found_job
from greenroom.app.jobs.verdict import BASELINE, CONFIRM, DELIVER
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId
from greenroom.core.state.spec import AgentSpec

ANN, BOB = AgentId("ann"), AgentId("bob")
CAST = Cast(
    members=(
        (ANN, AgentSpec(name="ann", tools=("patch",), calls=("bob",))),
        (BOB, AgentSpec(name="bob", tools=("patch",))),
    ),
    workspace="/somewhere",
)


@pytest.mark.parametrize(
    ("setup", "question", "first"),
    [
        (False, False, [BASELINE, CONFIRM, "converse"]),
        (True, False, ["prepare", BASELINE, CONFIRM, "converse"]),
        (True, True, ["prepare", "converse"]),
    ],
)
async def test_a_worktree_is_prepared_then_checked_then_worked_in(
    tmp_path: Path, setup: bool, question: bool, first: list[str]
) -> None:
    runtime = await Runtime.open(tmp_path)
    wanted = Wanted(question=question)
    team = await found_job(runtime, CAST, "log\n\nDo it.", typed="Do it.", limits=Limits(), setup=setup, wanted=wanted)
    world = await runtime.world(team)
    await runtime.close()
    assert [one.work.executor for one in world.steps_of(ANN)] == first
    assert (world.team.kit, world.team.workspace) == (JOB, "/somewhere")
    (task,) = world.tasks.values()
    assert (task.intention, task.manager) == ("Do it.", ANN)


async def test_only_who_is_talked_to_is_judged_because_those_it_calls_answer_it(tmp_path: Path) -> None:
    runtime = await Runtime.open(tmp_path)
    team = await found_job(runtime, CAST, "Do it.", limits=Limits())
    agents = (await runtime.world(team)).agents
    await runtime.close()
    assert {name: agents[name].spec.proof for name in (ANN, BOB)} == {ANN: DELIVER, BOB: ""}
