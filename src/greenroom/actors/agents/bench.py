"""The bench: what an executor sees while its step runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from greenroom.actors.agents.windows import Windows
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.executor import Live, Outcome
from greenroom.core.ports.log import Blobs
from greenroom.core.ports.submit import Submit
from greenroom.core.rules.intents import PrepareEffect
from greenroom.core.state.agent import Agent
from greenroom.core.state.step import Prepared, Step
from greenroom.core.state.world import World


def _nothing() -> None:
    """Of most attempts nothing is left."""


@dataclass(slots=True, eq=False)
class StepBench:
    """One per attempt."""

    step: Step
    look: Callable[[], World]
    submit: Submit
    windows: Windows
    blobs: Blobs
    watch: Callable[[Step, Live], None]
    left: Callable[[], Outcome | None] = field(default=_nothing, init=False)

    @property
    def world(self) -> World:
        """The newest committed world."""
        return self.look()

    @property
    def agent(self) -> Agent:
        """Whose step it is."""
        return self.look().agents[self.step.agent_id]

    @property
    def key(self) -> str:
        """Unique over all teams, the same for every attempt."""
        return f"{self.look().team.team_id}/{self.step.step_id}"

    async def prepare(self, *prepared: Prepared) -> None:
        """Make known what is about to be done; a refusal means that this attempt is not the current one."""
        intent = PrepareEffect(step_id=self.step.step_id, attempt=self.step.attempt, prepared=prepared)
        (refused,) = await self.submit.submit(intent, by=self.step.agent_id)
        if refused is not None:
            raise WorldFault(f"The effect was not begun. {refused}")

    async def blob(self, digest: str) -> bytes:
        """A large result, whole."""
        return await self.blobs.get_blob(digest)

    async def keep(self, data: bytes) -> str:
        """Keep something large: durable before the event that names it."""
        return await self.blobs.put_blob(data)

    def show(self, event: Live) -> None:
        """Let those see it who watch; nothing of it is kept."""
        self.watch(self.step, event)

    def leave(self, left: Callable[[], Outcome | None]) -> None:
        """Say what stays if somebody cancels this."""
        self.left = left

    async def history(self) -> Sequence[Step]:
        """The thread's window: its ended steps, from where it begins."""
        return await self.windows.of(self.step.thread_id)
