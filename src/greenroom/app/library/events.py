"""Events by name: callbacks around tasks, model calls, tools and summaries, as Jarvis has them.

They watch and decide nothing: a callback that fails harms nothing, and what it returns is not looked at. Those that
come in pairs are told right before and right after what they are about, once for each time that it really happens.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeAlias

from greenroom.abilities.skills.filter_tools import FilterTools
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.executor import Bench, Executor, Outcome
from greenroom.core.ports.model import (
    Failed,
    Finished,
    Listening,
    Model,
    ModelCard,
    ModelEvent,
    ModelRequest,
    Retried,
    TextDelta,
)
from greenroom.core.rules.intents import MoveWindow
from greenroom.core.state.step import StepType
from greenroom.core.state.task import TaskEnded, TaskStarted
from greenroom.core.state.thread import WindowMoved
from greenroom.core.sync.bus import Commit

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
    """Callbacks by the name of an event, called in the order in which they came; `run` is always among the arguments.

    `task_started`, `task_completed`; `interrupt_triggered`, when somebody interrupts an answer; and in pairs, with
    `before_` and `after_`: `model_call`, `tool_call`, `summary`, `history_clear`, and `addon_prompt` for agents that
    have one. What comes after a call has its `state`: finished, failed or cancelled. `before_tool_filter` has the
    number of tools and the `threshold`, `tool_filtered` what was `selected` (nothing: all stay).
    """

    def __init__(self) -> None:
        self._callbacks: dict[str, list[Callback]] = {}

    @property
    def silent(self) -> bool:
        """Whether nobody listens."""
        return not self._callbacks

    def subscribe(self, event: str, callback: Callback) -> None:
        """Call this, a plain function, whenever the event happens."""
        given: object = callback
        if not callable(given) or inspect.iscoroutinefunction(given):
            raise WorldFault(f"{callback!r} cannot be told of {event!r}: give a plain function, not a coroutine.")
        self._callbacks.setdefault(event, []).append(callback)

    def unsubscribe(self, event: str, callback: Callback) -> None:
        """Call it no more."""
        left = [one for one in self._callbacks.get(event, ()) if one != callback]
        if left:
            self._callbacks[event] = left
        else:
            self._callbacks.pop(event, None)

    def emit(self, event: str, **told: object) -> None:
        """Tell all that listen, one after the other. Who fails is passed over; the others hear of it all the same."""
        for callback in tuple(self._callbacks.get(event, ())):
            try:
                callback(**told)
            except Exception:
                logging.getLogger(__name__).exception("A callback of %s failed", event)

    def follow(self, commit: Commit) -> None:
        """Tell of what has just become true: a task begins or is over, a conversation begins anew."""
        if self.silent:
            return
        run = commit.world.team.team_id
        for event in commit.events:
            if isinstance(event, TaskStarted):
                self.emit(TASK_STARTED, run=run, task=event.task_id)
            elif isinstance(event, TaskEnded):
                self.emit(TASK_COMPLETED, run=run, task=event.task_id, state=event.state, summary=event.summary)
            elif isinstance(event, WindowMoved):
                self.emit(AFTER_HISTORY_CLEAR, run=run, thread=event.thread_id)


CALL: Final = (BEFORE_TOOL_CALL, AFTER_TOOL_CALL)
SUMMARY: Final = (BEFORE_SUMMARY, AFTER_SUMMARY)

HasAddon = Callable[[str], bool]
"""Whether the agent of this name is told something anew in each turn."""


class ToldModel:
    """A model of whose calls callbacks are told: of each that is made, also of one that fails or is cancelled."""

    def __init__(self, model: Model, bus: EventBus, has_addon: HasAddon) -> None:
        self.name = model.name
        self.card: ModelCard = model.card
        self.price = model.price
        self._model = model
        self._bus = bus
        self._has_addon = has_addon

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Its answer."""
        return self._model.stream(request) if self._bus.silent else self._told(request)

    async def _told(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        purpose = request.purpose
        who = {"run": purpose.team, "agent": purpose.agent, "step": purpose.step, "skill": purpose.skill}
        if purpose.skill == "converse" and self._has_addon(purpose.agent):
            self._bus.emit(BEFORE_ADDON_PROMPT, **who)
            self._bus.emit(AFTER_ADDON_PROMPT, **who)
        self._bus.emit(BEFORE_MODEL_CALL, **who, message=request.messages[-1].content)
        state, said = "cancelled", list[str]()
        try:
            async with Listening(self._model.stream(request)) as answer:
                async for event in answer:
                    state = _hear(event, state, said)
                    yield event
        except Exception:
            state = "failed"
            raise
        finally:
            self._bus.emit(AFTER_MODEL_CALL, **who, state=state, response="".join(said))


def _hear(event: ModelEvent, state: str, said: list[str]) -> str:
    """How the call stands after this; its words go to `said`."""
    match event:
        case Finished():
            return "finished"
        case Failed():
            return "failed"
        case TextDelta():
            said.append(event.text)
        case Retried():
            said.clear()
        case _:
            pass
    return state


class ToldExecutor:
    """A skill or a tool of whose work callbacks are told."""

    def __init__(self, executor: Executor, bus: EventBus) -> None:
        self._executor = executor
        self._bus = bus
        self.type: StepType = executor.type
        self.name = executor.name
        self.description = executor.description
        self.terms = executor.terms

    async def run(self, bench: Bench) -> Outcome:
        """Do it, and tell of it."""
        if self._bus.silent:
            return await self._executor.run(bench)
        if self.type == "tool":
            given = dict(bench.step.work.instruction_content or {})
            return await self._told(bench, CALL, tool=self.name, arguments=given)
        if self.name == "summarize":
            return await self._told(bench, SUMMARY)
        if isinstance(self._executor, FilterTools):
            return await self._filtered(bench, self._executor)
        outcome = await self._executor.run(bench)
        for moved in (one for one in outcome.intents if isinstance(one, MoveWindow)):
            # It is cleared when this is written down: the log says so afterwards.
            self._bus.emit(BEFORE_HISTORY_CLEAR, run=bench.world.team.team_id, thread=moved.thread_id)
        return outcome

    async def _filtered(self, bench: Bench, executor: FilterTools) -> Outcome:
        who = {"run": bench.world.team.team_id, "agent": bench.step.agent_id, "step": bench.step.step_id}
        figures = {"total": len(executor.names(bench.world, bench.step)), "threshold": executor.threshold}
        self._bus.emit(BEFORE_TOOL_FILTER, **who, **figures)
        outcome = await executor.run(bench)
        self._bus.emit(TOOL_FILTERED, **who, **figures, selected=(outcome.result or {}).get("chosen", []))
        return outcome

    async def _told(self, bench: Bench, pair: tuple[str, str], **about: object) -> Outcome:
        step, (before, after) = bench.step, pair
        who = {"run": bench.world.team.team_id, "agent": step.agent_id, "step": step.step_id, **about}
        self._bus.emit(before, **who)
        state, output = "failed", ""
        try:
            outcome = await self._executor.run(bench)
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
            self._bus.emit(after, **who, state=state, output=output)
