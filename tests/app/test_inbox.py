import asyncio
from pathlib import Path

import pytest

from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import RefusedError
from greenroom.core.base.ids import TaskId
from greenroom.core.rules.intents import CancelTask
from greenroom.testing.demo import AGENTS, TASK

PATIENCE = 20.0


async def test_an_intent_left_in_the_inbox_of_an_owner_that_ended_is_taken_by_who_asked(tmp_path: Path) -> None:
    owner, other = await Runtime.open(tmp_path), await Runtime.open(tmp_path)
    team = await owner.create("tea", AGENTS)
    await owner.ask(team, TASK)
    try:
        async with asyncio.timeout(PATIENCE):
            asked = asyncio.create_task(other.ask(team, CancelTask(task_id=TaskId("t1"))))
            async for _ in other.log.arrivals(team):
                break
            assert not asked.done(), "the owner does not serve its inbox before it runs"
            await owner.close()
            await asked
        assert (await other.status(team, TaskId("t1"))).state == "cancelled"
        with pytest.raises(RefusedError):
            await other.ask(team, CancelTask(task_id=TaskId("t1")))
    finally:
        await other.close()
