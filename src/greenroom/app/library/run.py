"""`Run` and `Conversation`: the handles of a running task and of a conversation."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final, Generic, TypeAlias, TypedDict, cast

from msgspec import json

from greenroom.app.conversation.attachments import Attachments
from greenroom.app.conversation.chat import TEXT_SKILLS, Chat, Turn, find_last_error, make_resume_intents
from greenroom.app.conversation.send import send_to_run
from greenroom.app.conversation.start import FIRST_TASK_ID
from greenroom.app.library.agent_definition import AgentDefinition
from greenroom.app.library.approval import ApprovalCallback, ApprovalHandler
from greenroom.app.library.events import BEFORE_HISTORY_CLEAR, INTERRUPT_TRIGGERED, EventBus
from greenroom.app.library.run_result import (
    ExecutedTools,
    ReasoningDelta,
    RetryScheduled,
    RunEvent,
    RunLimits,
    RunResult,
    RunUsage,
    T,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    attach_run_id,
    find_executed_tools,
    make_run_error,
    make_usage,
)
from greenroom.app.lookup import TaskReference
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import TaskStatus, find_partial
from greenroom.app.team_host import TeamHost, watch_steps
from greenroom.app.toolset.pipeline import answer_pending
from greenroom.core.base.amounts import NOTHING
from greenroom.core.base.errors import GreenroomError, WorldFault
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, StepId, TeamId
from greenroom.core.ports.executor import LiveEvent
from greenroom.core.ports.model import ModelReasoningDelta, ModelTextDelta, Retried
from greenroom.core.rules.intents import CancelTask, ChangeAgent, Intent, SetLimits
from greenroom.core.rules.steps import CALL_TOOL
from greenroom.core.state.step import Step, StepQueued
from greenroom.core.sync.bus import CommitNotice

PartialEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCallStarted | ToolCallFinished | RetryScheduled

MAX_EARLY_EVENTS: Final = 1_000
"""How many events are kept before the first consumer starts to read."""


class RunArguments(TypedDict, total=False):
    """What the methods that run an agent accept beside the prompt. A conversation takes `resume`, `approve` and
    `context`; its messages take `attachments`.

    - `resume`: The id of an interrupted run to continue, or `"last"` for the agent's newest open run. Give either this
      or a prompt.
    - `approve`: A function that decides about tool calls that need approval.
    - `context`: The value that tools receive in a `Context` parameter.
    - `attachments`: Images and files for the model: paths, or `Media` with bytes.
    - `limits`: Limits of this run. With `resume` they replace those that the run had.
    """

    resume: str
    approve: ApprovalCallback | None
    context: object
    attachments: Attachments
    limits: RunLimits | None


class EventBuffer:
    """Passes events to all consumers in order. Keeps up to `max_early` events until there is a consumer."""

    def __init__(self, max_early: int | None) -> None:
        self._early_events: deque[PartialEvent] = deque(maxlen=max_early)
        self._queues: list[asyncio.Queue[PartialEvent | None]] = []
        self._agent_calls: set[StepId] = set()

    def clear(self) -> None:
        """Drop the events that no consumer has read."""
        self._early_events.clear()

    async def stream_until(self, done: asyncio.Future[Any]) -> AsyncIterator[PartialEvent]:
        """Yield events until `done` is done."""
        queue: asyncio.Queue[PartialEvent | None] = asyncio.Queue()
        for early_event in self._early_events:
            queue.put_nowait(early_event)
        self._early_events.clear()
        self._queues.append(queue)
        done.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._queues.remove(queue)

    def on_live_event(self, step: Step, event: LiveEvent) -> None:
        """Publish a piece of a model's reply."""
        if step.work.executor not in TEXT_SKILLS:
            return
        match event:
            case ModelTextDelta():
                self._publish(TextDelta(agent=step.agent_id, text=event.text))
            case ModelReasoningDelta():
                self._publish(ReasoningDelta(agent=step.agent_id, text=event.text))
            case Retried():
                self._publish(RetryScheduled(agent=step.agent_id, reason=event.failed.why))
            case _:
                pass

    def on_step_started(self, step: Step) -> None:
        """Publish the start of a tool call."""
        if step.work.type == "tool" and step.step_id not in self._agent_calls:
            self._publish_call(step)

    def on_commit(self, commit: CommitNotice) -> None:
        """Publish calls of agents before those begin. The step of such a call starts when the answer is there."""
        for event in commit.events:
            if isinstance(event, StepQueued):
                self.add_agent_call(event)

    def add_agent_call(self, step: Step | StepQueued) -> None:
        """Publish a call of another agent, with the arguments that the model gave."""
        if step.work.executor == CALL_TOOL:
            self._agent_calls.add(step.step_id)
            self._publish_call(step)

    def _publish_call(self, step: Step | StepQueued) -> None:
        arguments, work = dict(step.work.instruction_content or {}), step.work
        self._publish(
            ToolCallStarted(agent=step.agent_id, tool=work.executor, arguments=arguments, call_id=work.call_id or "")
        )

    def on_step_ended(self, step: Step) -> None:
        """Publish the end of a tool call."""
        if step.work.type == "tool":
            output, is_error = str((step.result or {}).get("output", "")), step.state != "finished"
            name, call = step.work.executor, step.work.call_id or ""
            finished = ToolCallFinished(
                agent=step.agent_id, tool=name, output=step.error or output, is_error=is_error, call_id=call
            )
            self._publish(finished)

    def _publish(self, event: PartialEvent) -> None:
        for queue in self._queues:
            queue.put_nowait(event)
        if not self._queues:
            self._early_events.append(event)


class RunObserver:
    """The common parts of a run and a conversation. A `max_early` of 0 disables streaming; None keeps all events."""

    def __init__(
        self, runtime: Runtime, events: EventBus, approvals: ApprovalHandler, *, unattended: bool, max_early: int | None
    ) -> None:
        self.runtime = runtime
        self.events = events
        self.buffer = EventBuffer(max_early)
        self.approvals = approvals
        self._unattended = unattended
        self._is_streamed = max_early != 0
        self._unsubscribes: list[Callable[[], None]] = []

    def attach(self, host: TeamHost) -> None:
        """Subscribe to the events of a team."""
        self._unsubscribes = [host.listen(self.events.follow)]
        if self._is_streamed:
            buffer = self.buffer
            for step in host.state.steps.values():
                if step.state == "pending":
                    buffer.add_agent_call(step)
            self._unsubscribes += (
                host.listen(buffer.on_commit),
                watch_steps(host, buffer.on_step_started, buffer.on_step_ended),
                host.watch(buffer.on_live_event),
            )
        if self.approvals.can_ask:
            self._unsubscribes.append(host.listen(self.approvals.follow))

    async def begin(self, host: TeamHost) -> None:
        """Subscribe to a team that has just been restarted, and handle its pending approvals."""
        self.attach(host)
        if self._unattended:
            await answer_pending(host)
        self.approvals.ask_pending(host.state)

    async def stream_events(self, result: Coroutine[Any, Any, RunResult[T]]) -> AsyncIterator[RunEvent[T]]:
        """Yield events until there is a result, then the result."""
        waiting = asyncio.ensure_future(result)
        try:
            async for event in self.buffer.stream_until(waiting):
                yield event
            yield await waiting
        finally:
            waiting.cancel()

    def make_error(self, state: str, why: str, **details: str) -> GreenroomError:
        """Make the error for a run without a result. A failure of a validator is not the model's."""
        faults = [fault for fault in self.events.validator_faults if str(fault) == why]
        if faults:
            self.events.validator_faults.remove(faults[0])
        return faults[0] if faults else make_run_error(state, why, **details)

    async def end(self, team: TeamId | None) -> None:
        """Stop the team, then unsubscribe, so that the events of stopping are still delivered."""
        await self.approvals.close()
        try:
            if team is not None:
                await self.runtime.stop(team)
        finally:
            for stop in self._unsubscribes:
                stop()


def make_result(agent: AgentDefinition[T], text: str, run_id: TeamId, usage: RunUsage) -> RunResult[T]:
    """Make a result whose output has the agent's `output_type`."""
    output = text if agent.output_adapter is None else agent.output_adapter.validate(json.decode(text))
    said = output if isinstance(output, str) else text
    return RunResult(output=cast("T", output), text=said, run_id=run_id, usage=usage)


class Run(Generic[T]):
    """A run that has started. Wait for `result`, or iterate over `stream`. `id` identifies it for `resume`."""

    def __init__(self, agent: AgentDefinition[T], team: TeamId, observer: RunObserver) -> None:
        self.id = team
        self._agent = agent
        self._observer = observer
        self._runtime = observer.runtime

    async def begin(self, limits: RunLimits | None = None) -> None:
        """Start the agents, after resuming what is paused. `limits` replace those of the run."""
        state, intents = await self._runtime.state(self.id), list[Intent]()
        if limits is not None:
            name, budget = AgentId(self._agent.name), state.budgets[TEAM_BUDGET]
            intents.append(SetLimits(budget_id=TEAM_BUDGET, limits=limits.apply_to(budget.limits)))
            intents.append(ChangeAgent(agent_id=name, spec=limits.apply_to_spec(state.agents[name].spec)))
        intents += make_resume_intents(state)
        if intents:
            await self._runtime.ask(self.id, *intents)
        await self._observer.begin(await self._runtime.start(self.id))

    async def close(self) -> None:
        """Stop the run. It can be resumed later."""
        await self._observer.end(self.id)

    async def cancel(self) -> None:
        """Cancel the run permanently."""
        await self._runtime.ask(self.id, CancelTask(task_id=FIRST_TASK_ID))

    async def usage(self) -> RunUsage:
        """Return the usage so far."""
        return make_usage((await self._runtime.state(self.id)).budgets[TEAM_BUDGET].spent)

    async def executed_tools(self) -> ExecutedTools:
        """Return the tools executed so far, with counts."""
        return await find_executed_tools(self._runtime, self.id)

    async def send(self, text: str) -> None:
        """Send a message to the agent. It reads the message in its next turn."""
        with attach_run_id(lambda: self.id):
            await send_to_run(self._runtime, TaskReference(team=self.id, task=FIRST_TASK_ID), text)

    async def result(self) -> RunResult[T]:
        """Wait for the result. Raise a `GreenroomError`, with the run's id in `run_id`, if there is none."""
        approvals = self._observer.approvals
        with attach_run_id(lambda: self.id):
            while True:
                status = await approvals.wait_for(self._runtime.wait(self.id, FIRST_TASK_ID))
                if status.state == "finished":
                    return make_result(self._agent, status.reason, self.id, await self.usage())
                if status.state != "waiting" or not await approvals.wait_for_decision():
                    raise await self._make_error(status)

    async def stream(self) -> AsyncIterator[RunEvent[T]]:
        """Yield events as they happen. The last event is the `RunResult`."""
        async for event in self._observer.stream_events(self.result()):
            yield event

    async def _make_error(self, status: TaskStatus) -> GreenroomError:
        reason = status.reason
        if status.state == "idle":
            reason = await find_last_error(self._runtime, self.id, FIRST_TASK_ID)
        hint, state = f"`greenroom.resume(agent, {str(self.id)!r})`", await self._runtime.state(self.id)
        return self._observer.make_error(status.state, reason, resume_hint=hint, partial=find_partial(state))


SubmitMessage = Callable[[str, Attachments], Awaitable[None]]
"""Sends a message. The first one creates the conversation."""


class Conversation(Generic[T]):
    """A conversation with an agent, from `greenroom.chat(agent)`. Pass `resume=id` to continue an earlier one.

    Messages are answered one at a time; a second `send` waits. After a crash or a provider error, send another message
    or call `resume`.
    """

    def __init__(self, agent: AgentDefinition[T], chat: Chat, observer: RunObserver, submit: SubmitMessage) -> None:
        self._agent = agent
        self._chat = chat
        self._observer = observer
        self._submit = submit
        self._is_open = False
        self._turn_lock = asyncio.Lock()

    @property
    def id(self) -> str:
        """The conversation's id, empty until the first message."""
        return self._chat.team or ""

    async def send(self, text: str, *, attachments: Attachments = ()) -> RunResult[T]:
        """Send a message and wait for the answer. Raise a `GreenroomError` if there is none."""
        with attach_run_id(lambda: self.id):
            async with self._turn_lock:
                await self._submit_text(text, attachments)
                return await self._wait_for_answer()

    async def stream(self, text: str, *, attachments: Attachments = ()) -> AsyncIterator[RunEvent[T]]:
        """Send a message and yield events. The last event is the `RunResult`.

        Leaving the loop does not stop the answer; call `interrupt`.
        """
        with attach_run_id(lambda: self.id):
            await self._turn_lock.acquire()
            try:
                await self._submit_text(text, attachments)
            except BaseException:
                self._turn_lock.release()
                raise
            async for event in self._observer.stream_events(self._finish_turn()):
                yield event

    async def resume(self) -> RunResult[T]:
        """Continue an interrupted turn and wait for the answer."""
        with attach_run_id(lambda: self.id):
            async with self._turn_lock:
                self._check_started()
                await self._chat.resume()
                await self._ensure_open()
                return await self._wait_for_answer()

    async def interrupt(self) -> None:
        """Interrupt the current answer. The pending call raises; the text so far stays in the conversation."""
        if self._is_open and await self._chat.is_working():
            self._observer.events.emit(INTERRUPT_TRIGGERED, run_id=self.id, agent=self._agent.name)
            await self._chat.interrupt()

    async def turns(self) -> list[Turn]:
        """Return the turns since the conversation was last cleared, oldest first."""
        return await self._chat.list_turns() if self._chat.team is not None else []

    async def executed_tools(self) -> ExecutedTools:
        """Return the tools executed so far, with counts."""
        return (
            await find_executed_tools(self._observer.runtime, self._chat.team) if self._chat.team else ExecutedTools()
        )

    async def clear(self) -> None:
        """Start over with an empty history. The log keeps the old turns."""
        self._check_started()
        await self._ensure_open()
        self._observer.events.emit(BEFORE_HISTORY_CLEAR, run_id=self.id, thread=self._chat.thread)
        await self._chat.clear()

    async def close(self) -> None:
        """Leave the conversation. It can be resumed later."""
        self._chat.close()
        await self._observer.end(self._chat.team)

    async def _finish_turn(self) -> RunResult[T]:
        """Wait for the answer and end the turn, even if the consumer has stopped reading."""
        try:
            return await self._wait_for_answer()
        finally:
            self._turn_lock.release()

    async def _submit_text(self, text: str, attachments: Attachments) -> None:
        if not text.strip():
            raise WorldFault("library.message_empty")
        self._observer.buffer.clear()
        await self._submit(text, attachments)
        await self._ensure_open()

    async def _ensure_open(self) -> None:
        if not self._is_open:
            await self._observer.begin(await self._chat.open())
            self._is_open = True

    def _check_started(self) -> None:
        if self._chat.team is None:
            raise WorldFault("library.no_messages_yet")

    async def _wait_for_answer(self) -> RunResult[T]:
        spent, approvals = NOTHING, self._observer.approvals
        while True:
            outcome = await approvals.wait_for(self._chat.wait())
            spent = spent.plus(outcome.spent)
            if outcome.state != "waiting" or not await approvals.wait_for_decision():
                break
        if outcome.state == "answered" or (outcome.state == "finished" and self._agent.output_adapter is None):
            return make_result(self._agent, outcome.answer or outcome.why, self._chat.existing_team, make_usage(spent))
        raise self._observer.make_error(
            outcome.state,
            outcome.why,
            resume_hint=f"`conversation.resume()` in `greenroom.chat(agent, resume={self.id!r})`",
            partial=find_partial(await self._chat.state()),
        )
