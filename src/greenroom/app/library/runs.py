"""`Run`: one thing that an agent was given to do, while it goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic

from greenroom.app.library.blueprint import Blueprint
from greenroom.app.library.executed import Executed, executed_in
from greenroom.app.library.faults import fault, telling_of
from greenroom.app.library.following import Following, made
from greenroom.app.library.results import Heard, Result, T
from greenroom.app.lookup import Found
from greenroom.app.standing import Standing
from greenroom.app.talks.founding import FIRST
from greenroom.app.talks.outcome import last_error
from greenroom.app.talks.telling import tell
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.ids import TEAM_BUDGET, TeamId
from greenroom.core.rules.intents import CancelTask, ResumeTask


class Run(Generic[T]):
    """Heard as it goes on, or only waited for. `id` is its name in the log: with it one goes on with it later."""

    def __init__(self, agent: Blueprint[T], team: TeamId, following: Following) -> None:
        self.id = team
        self._agent = agent
        self._following = following
        self._runtime = following.runtime

    async def begin(self) -> None:
        """Let the agents work."""
        task = (await self._runtime.world(self.id)).tasks.get(FIRST)
        if task is not None and task.paused is not None:
            await self._runtime.ask(self.id, ResumeTask(task_id=FIRST))
        await self._following.begin(await self._runtime.start(self.id))

    async def close(self) -> None:
        """Stop; it goes on where it was when somebody resumes it."""
        await self._following.end(self.id)

    async def cancel(self) -> None:
        """End it for good."""
        await self._runtime.ask(self.id, CancelTask(task_id=FIRST))

    async def spent(self) -> Amounts:
        """What it has taken so far."""
        return (await self._runtime.world(self.id)).budgets[TEAM_BUDGET].spent

    async def executed(self) -> Executed:
        """Which tools it has executed so far, and how often."""
        return await executed_in(self._runtime, self.id)

    async def tell(self, text: str) -> None:
        """Say something to the agent; it reads that in its next turn."""
        with telling_of(lambda: self.id):
            await tell(self._runtime, Found(team=self.id, task=FIRST), text)

    async def result(self) -> Result[T]:
        """Wait for the result; raises by whom to blame if there is none. What it raises has `run`, the run's id."""
        deciding = self._following.deciding
        with telling_of(lambda: self.id):
            while True:
                stands = await deciding.until(self._runtime.wait(self.id, FIRST))
                if stands.word == "finished":
                    return made(self._agent, stands.why, self.id, await self.spent())
                if stands.word != "waiting" or not await deciding.next():
                    raise await self._fault(stands)

    async def heard(self) -> AsyncIterator[Heard[T]]:
        """What happens, as it happens; the result last."""
        async for heard in self._following.heard(self.result()):
            yield heard

    async def _fault(self, stands: Standing) -> GreenroomError:
        why = stands.why
        if stands.word == "idle":
            why = await last_error(self._runtime, self.id, FIRST)
        return fault(stands.word, why, go_on=f"`house.resume(agent, {str(self.id)!r})`")
