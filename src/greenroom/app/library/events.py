"""Named events: callbacks around tasks, model calls, tool calls and summaries, as in Jarvis.

Callbacks only observe. Their return values are ignored, and their errors are logged. Paired events are emitted right
before and right after the operation, once each time it runs.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, TypeAlias

from greenroom.abilities.skills.filter_tools import FilterToolsSkill
from greenroom.adapters.models.retry import ModelWrapper
from greenroom.core.base.errors import GreenroomError, WorldFault
from greenroom.core.ports.executor import Capabilities, CloseCallback, Executor, Outcome, StepContext
from greenroom.core.ports.model import (
    ClosingStream,
    Failed,
    Finished,
    Model,
    ModelEvent,
    ModelRequest,
    ModelTextDelta,
    Retried,
)
from greenroom.core.rules.intents import MoveWindow
from greenroom.core.state.step import StepType
from greenroom.core.state.task import TaskEnded, TaskStarted
from greenroom.core.state.thread import WindowMoved
from greenroom.core.sync.bus import CommitNotice

Callback: TypeAlias = Callable[..., object]

TASK_STARTED: Final = "task_started"
TASK_COMPLETED: Final = "task_completed"
BEFORE_ADDON_PROMPT: Final = "before_addon_prompt"
AFTER_ADDON_PROMPT: Final = "after_addon_prompt"
BEFORE_MODEL_CALL: Final = "before_model_call"
AFTER_MODEL_CALL: Final = "after_model_call"
BEFORE_TOOL_CALL: Final = "before_tool_call"
AFTER_TOOL_CALL: Final = "after_tool_call"
BEFORE_HISTORY_CLEAR: Final = "before_history_clear"
AFTER_HISTORY_CLEAR: Final = "after_history_clear"
BEFORE_SUMMARY: Final = "before_summary"
AFTER_SUMMARY: Final = "after_summary"
BEFORE_TOOL_FILTER: Final = "before_tool_filter"
TOOL_FILTERED: Final = "tool_filtered"
INTERRUPT_TRIGGERED: Final = "interrupt_triggered"


class EventBus:
    """Callbacks by event name, called in the order of subscription. Every callback receives `run_id`.

    Single events are `task_started`, `task_completed`, `interrupt_triggered` and `tool_filtered`. Paired events start
    with `before_` and `after_`: `model_call`, `tool_call`, `summary`, `history_clear`, and `addon_prompt` for agents
    that act in text. Events after a call have `state`: finished, failed or cancelled. `before_tool_filter` has the
    number of tools and the `threshold`. `tool_filtered` has the `selected` tools; an empty list keeps all tools.
    """

    def __init__(self) -> None:
        self._callbacks: dict[str, list[Callback]] = {}
        self.validator_faults = deque[GreenroomError](maxlen=50)  # of the program; runs raise them

    @property
    def is_silent(self) -> bool:
        """Whether there are no callbacks."""
        return not self._callbacks

    def subscribe(self, event: str, callback: Callback) -> None:
        """Call a plain function each time the event happens."""
        target: object = callback
        if not callable(target) or inspect.iscoroutinefunction(target):
            raise WorldFault("library.callback_is_coroutine", callback=callback, event=event)
        self._callbacks.setdefault(event, []).append(callback)

    def unsubscribe(self, event: str, callback: Callback) -> None:
        """Remove a callback."""
        remaining = [subscribed for subscribed in self._callbacks.get(event, ()) if subscribed != callback]
        if remaining:
            self._callbacks[event] = remaining
        else:
            self._callbacks.pop(event, None)

    def emit(self, event: str, **arguments: object) -> None:
        """Call all callbacks of the event in order. A callback that fails does not stop the others."""
        for callback in tuple(self._callbacks.get(event, ())):
            try:
                callback(**arguments)
            except Exception:
                logging.getLogger(__name__).exception("A callback of %s failed", event)

    def follow(self, commit: CommitNotice) -> None:
        """Emit events for a commit: a task starts or ends, a conversation is cleared."""
        if self.is_silent:
            return
        run_id = commit.state.team.team_id
        for event in commit.events:
            if isinstance(event, TaskStarted):
                self.emit(TASK_STARTED, run_id=run_id, task=event.task_id)
            elif isinstance(event, TaskEnded):
                self.emit(TASK_COMPLETED, run_id=run_id, task=event.task_id, state=event.state, summary=event.summary)
            elif isinstance(event, WindowMoved):
                self.emit(AFTER_HISTORY_CLEAR, run_id=run_id, thread=event.thread_id)


TOOL_CALL_EVENTS: Final = (BEFORE_TOOL_CALL, AFTER_TOOL_CALL)
SUMMARY_EVENTS: Final = (BEFORE_SUMMARY, AFTER_SUMMARY)

HasAddon = Callable[[str], bool]
"""Returns whether an agent gets an add-on prompt in each turn."""


class ObservedModel(ModelWrapper):
    """A model that emits events around each call, including calls that fail or are cancelled."""

    def __init__(self, model: Model, bus: EventBus, has_addon: HasAddon) -> None:
        super().__init__(model)
        self._bus = bus
        self._has_addon = has_addon

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Stream the model's answer."""
        purpose = request.purpose
        labels = {"run_id": purpose.team, "agent": purpose.agent, "step": purpose.step, "skill": purpose.skill}
        if purpose.skill == "converse" and self._has_addon(purpose.agent):
            self._bus.emit(BEFORE_ADDON_PROMPT, **labels)
            self._bus.emit(AFTER_ADDON_PROMPT, **labels)
        self._bus.emit(BEFORE_MODEL_CALL, **labels, message=request.messages[-1].content)
        state, parts = "cancelled", list[str]()
        try:
            async with ClosingStream(self._model.stream(request)) as answer:
                async for event in answer:
                    state = _track_state(event, state, parts)
                    yield event
        except Exception:
            state = "failed"
            raise
        finally:
            self._bus.emit(AFTER_MODEL_CALL, **labels, state=state, response="".join(parts))


def _track_state(event: ModelEvent, state: str, parts: list[str]) -> str:
    """Return the call's state after a model event, and add text to `parts`."""
    match event:
        case Finished():
            return "finished"
        case Failed():
            return "failed"
        case ModelTextDelta():
            parts.append(event.text)
        case Retried():
            parts.clear()
        case _:
            pass
    return state


class ObservedExecutor:
    """A skill or tool that emits events around each step."""

    def __init__(self, executor: Executor, bus: EventBus) -> None:
        self._executor = executor
        self._bus = bus
        self.type: StepType = executor.type
        self.name = executor.name
        self.description = executor.description
        self.terms = executor.terms

    async def run(self, context: StepContext) -> Outcome:
        """Run the step and emit its events."""
        if self.type == "tool":
            arguments = dict(context.step.work.instruction_content or {})
            return await self._run_with_events(context, TOOL_CALL_EVENTS, tool=self.name, arguments=arguments)
        if self.name == "summarize":
            return await self._run_with_events(context, SUMMARY_EVENTS)
        if isinstance(self._executor, FilterToolsSkill):
            return await self._run_filter(context, self._executor)
        outcome = await self._executor.run(context)
        for moved in (intent for intent in outcome.intents if isinstance(intent, MoveWindow)):
            # The history is cleared when this is committed; `follow` emits the event afterwards.
            self._bus.emit(BEFORE_HISTORY_CLEAR, run_id=context.state.team.team_id, thread=moved.thread_id)
        return outcome

    async def _run_filter(self, context: StepContext, executor: FilterToolsSkill) -> Outcome:
        labels = {"run_id": context.state.team.team_id, "agent": context.step.agent_id, "step": context.step.step_id}
        figures = {"total": len(executor.list_choices(context.state, context.step)), "threshold": executor.threshold}
        self._bus.emit(BEFORE_TOOL_FILTER, **labels, **figures)
        outcome = await executor.run(context)
        self._bus.emit(TOOL_FILTERED, **labels, **figures, selected=(outcome.result or {}).get("chosen", []))
        return outcome

    async def _run_with_events(self, context: StepContext, pair: tuple[str, str], **details: object) -> Outcome:
        step, (before, after) = context.step, pair
        labels = {"run_id": context.state.team.team_id, "agent": step.agent_id, "step": step.step_id, **details}
        self._bus.emit(before, **labels)
        state, output = "failed", ""
        try:
            outcome = await self._executor.run(context)
            result = outcome.result or {}
            state, output = outcome.state, outcome.error or str(result.get("output", result.get("text", "")))
            return outcome
        except asyncio.CancelledError:
            state = "cancelled"
            raise
        except Exception as error:
            output = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._bus.emit(after, **labels, state=state, output=output)


class ObservedCapabilities(Capabilities):
    """Capabilities whose executors emit events while there are callbacks."""

    def __init__(
        self,
        executors: Iterable[Executor],
        bus: EventBus,
        *,
        on_close: CloseCallback | None = None,
        approvals_expire: int | None = None,
    ) -> None:
        super().__init__(executors, on_close=on_close, approvals_expire=approvals_expire)
        self._bus = bus

    def get(self, type_: StepType, name: str) -> Executor | None:
        """Return the executor of a step, or None."""
        executor = super().get(type_, name)
        return executor if executor is None or self._bus.is_silent else ObservedExecutor(executor, self._bus)
