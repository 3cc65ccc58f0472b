"""`greenroom show` of a run whose agent split its task."""

import asyncio
from pathlib import Path

import pytest
from msgspec import convert

from greenroom import Greenroom
from greenroom.app.runs.report import AgentPlan
from tests.cli.conftest import Type
from tests.crash.plan import planner, script


@pytest.mark.req("AG-107", "AG-111")
def test_show_lists_the_parts_of_an_agents_plan_with_what_came_of_them(greenroom: Type, home: Path) -> None:
    async def run() -> None:
        async with Greenroom(home, models=script(lambda _: "Three.")) as opened:
            await opened.run(planner(), "Count the animals.")

    asyncio.run(run())
    told = greenroom("show", "last")
    assert (
        "ann splits the task into 2 parts:\n  1. Count the sheep.  finished\n  2. Count the goats.  finished"
        in told.out
    )
    plans = convert(greenroom("show", "last", "--output-format", "json").json["plans"], list[AgentPlan])
    assert [(plan.agent, plan.states) for plan in plans] == [("ann", ("finished", "finished"))]
    parts = [(part.name, part.agent) for part in plans[0].plan.subtasks]
    assert parts == [("Count the sheep.", "ann.1"), ("Count the goats.", "ann.1")]
