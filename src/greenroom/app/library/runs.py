"""`Run`: one thing that an agent was given to do, while it goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, Generic, TypeAlias, cast

from msgspec import json

from greenroom.app.library.blueprint import Blueprint
from greenroom.app.library.events import TASK_STARTED, EventBus
from greenroom.app.library.results import Again, Called, Heard, Result, Returned, Said, T, Thought
from greenroom.app.runtime import Runtime
from greenroom.app.standing import Standing
from greenroom.app.talks.outcome import last_error
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import GreenroomError, ModelFault, ProviderFault, Refused, Rejected
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TeamId, task_id
from greenroom.core.ports.model import ModelEvent, ReasoningDelta, Retried, TextDelta
from greenroom.core.rules.intents import AnswerApproval, CancelTask, QueueSteps, ResumeTask
from greenroom.core.state.approval import Answer, Approval, ApprovalRequested
from greenroom.core.state.step import Step, StepStarted, Work
from greenroom.core.sync.bus import Commit

Approve: TypeAlias = Callable[[Approval], Awaitable[bool]]
"""Who decides whether a call may be made. `question` says what is asked."""

FIRST: Final = task_id(1)
"""A run has one task."""


class Run(Generic[T]):
    """Heard as it goes on, or only waited for. What is decided here is asked of `approve`, call by call."""

    def __init__(
        self, runtime: Runtime, agent: Blueprint[T], team: TeamId, approve: Approve | None, events: EventBus
    ) -> None:
        self.team = team
        self._runtime = runtime
        self._agent = agent
        self._task = FIRST
        self._events = events
        self._approve = approve
        self._news: asyncio.Queue[object] = asyncio.Queue()
        self._deciding: set[asyncio.Task[None]] = set()
        self._stops: list[Callable[[], None]] = []

    async def begin(self) -> None:
        """Let the agents work."""
        host = await self._runtime.start(self.team)
        self._stops = [host.listen(self._follow), host.listen(self._events.follow), host.watch(self._watch)]
        task = host.world.tasks.get(self._task)
        if task is not None and host.world.agents[task.manager].steps_made <= 1:
            self._events.emit(TASK_STARTED, task=self._task)  # it was founded before anybody could listen
        if task is not None and task.paused is not None:
            await self._runtime.ask(self.team, ResumeTask(task_id=self._task))
        for approval in host.world.approvals.values():
            self._asks(approval)

    async def close(self) -> None:
        """Stop; it goes on where it was when somebody resumes it."""
        for stop in self._stops:
            stop()
        for deciding in self._deciding:
            deciding.cancel()
        await asyncio.gather(*self._deciding, return_exceptions=True)
        await self._runtime.stop(self.team)

    async def cancel(self) -> None:
        """End it for good."""
        await self._runtime.ask(self.team, CancelTask(task_id=self._task))

    async def spent(self) -> Amounts:
        """What it has taken so far."""
        return (await self._runtime.world(self.team)).budgets[TEAM_BUDGET].spent

    async def tell(self, text: str) -> None:
        """Say something to the agent; it reads that in its next turn."""
        name = AgentId(self._agent.name)
        work = Work(type="skill", executor="converse", text_content=text)
        await self._runtime.ask(self.team, QueueSteps(agent_id=name, works=(work,), task_id=self._task))

    async def result(self) -> Result[T]:
        """Wait for the result; raises by whom to blame if there is none."""
        while True:
            stands = await self._runtime.wait(self.team, self._task)
            if stands.word == "waiting" and self._deciding:
                await asyncio.wait(self._deciding, return_when=asyncio.FIRST_COMPLETED)
                continue
            if stands.word == "finished":
                return await self._made(stands.why)
            raise await self._fault(stands)

    async def heard(self) -> AsyncIterator[Heard[T]]:
        """What happens, as it happens; the result last."""
        waiting = asyncio.create_task(self.result())
        waiting.add_done_callback(lambda _: self._news.put_nowait(_END))
        try:
            while (heard := await self._news.get()) is not _END:
                yield cast("Heard[T]", heard)
            yield await waiting
        finally:
            waiting.cancel()

    async def _made(self, text: str) -> Result[T]:
        shape = self._agent.shape
        output = text if shape is None else shape.read(json.decode(text))
        return Result(output=cast("T", output), text=text, run=self.team, spent=await self.spent())

    async def _fault(self, stands: Standing) -> GreenroomError:
        name = self.team
        match stands.word:
            case "failed":
                return ModelFault(stands.why)
            case "idle":
                return ModelFault(await last_error(self._runtime, self.team, self._task))
            case "provider":
                return ProviderFault(f"{stands.why.partition(': ')[2]} Go on later: `house.resume(agent, {name!r})`.")
            case "waiting":
                why, hint = f"A person is asked: {stands.why}", "Give `approve`, an async function that answers."
            case _:
                why, hint = f"The run is {stands.word}: {stands.why}", f"Go on with `house.resume(agent, {name!r})`."
        return Refused(Rejected(code=stands.word, why=why, hint=hint))

    # ------------------------------------------------------------------------------------------------- listening

    def _watch(self, step: Step, event: ModelEvent) -> None:
        if step.work.executor != "converse":
            return
        match event:
            case TextDelta():
                self._news.put_nowait(Said(agent=step.agent_id, text=event.text))
            case ReasoningDelta():
                self._news.put_nowait(Thought(agent=step.agent_id, text=event.text))
            case Retried():
                self._news.put_nowait(Again(agent=step.agent_id, why=event.failed.why))
            case _:
                pass

    def _follow(self, commit: Commit) -> None:
        for event in commit.events:
            if isinstance(event, StepStarted) and event.step_id in commit.world.steps:
                self._began(commit.world.steps[event.step_id])
            elif isinstance(event, ApprovalRequested):
                self._asks(commit.world.approvals[event.approval_id])
        for row in commit.archived:
            if isinstance(row.record, Step):
                self._ended(row.record)

    def _began(self, step: Step) -> None:
        if step.work.type == "tool":
            given = dict(step.work.instruction_content or {})
            call = Called(
                agent=step.agent_id, tool=step.work.executor, arguments=given, call_id=step.work.call_id or ""
            )
            self._news.put_nowait(call)

    def _ended(self, step: Step) -> None:
        if step.work.type == "tool":
            output = step.error or str((step.result or {}).get("output", ""))
            done = Returned(
                agent=step.agent_id,
                tool=step.work.executor,
                output=output,
                failed=step.state != "finished",
                call_id=step.work.call_id or "",
            )
            self._news.put_nowait(done)

    def _asks(self, approval: Approval) -> None:
        if self._approve is not None and approval.state == "pending":
            deciding = asyncio.create_task(self._decide(self._approve, approval))
            self._deciding.add(deciding)
            deciding.add_done_callback(self._deciding.discard)

    async def _decide(self, approve: Approve, approval: Approval) -> None:
        """Who cannot decide has said no: an exception is no yes."""
        try:
            answer = await approve(approval)
        except Exception as error:
            logging.getLogger(__name__).exception("Nobody decided about %s", approval.approval_id)
            answer, reason = False, f"whoever decides failed: {error}"
        else:
            reason = ""
        word: Answer = "approved" if answer is True else "denied"
        intent = AnswerApproval(approval_id=approval.approval_id, answer=word, reason=reason)
        await self._runtime.ask(self.team, intent)


_END: Final = object()
