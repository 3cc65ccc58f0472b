"""A program is killed with -9 while the second part of a plan is worked on: the first one is not done again."""

from __future__ import annotations

from pathlib import Path

from greenroom import Greenroom
from tests.conformance.running import until_there
from tests.crash.lives import fork_server
from tests.crash.plan import live, planner, script


async def test_after_a_kill_between_the_parts_of_a_plan_only_the_rest_is_done(tmp_path: Path) -> None:
    process = fork_server().Process(target=live, args=(str(tmp_path),))
    process.start()
    try:
        await until_there(tmp_path / "up")
    finally:
        process.kill()
        process.join(10)
    model = script(lambda _: "Three.")
    async with Greenroom(tmp_path, models=model) as greenroom:
        result = await greenroom.run(planner(), resume="last")
    assert result.text == "There are ten."
    asked = [(each.purpose.agent, each.purpose.skill) for each in model.requests]
    assert asked == [("ann.1", "converse"), ("ann", "plan_task"), ("ann", "converse")]
    report = model.requests[-1].messages[-2].content
    assert "Seven." in report
    assert "Three." in report
