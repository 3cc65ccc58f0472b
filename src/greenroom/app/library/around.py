"""Around what is done: callbacks are told right before a model or a tool is called, and right after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from greenroom.abilities.skills.filter_tools import FilterTools
from greenroom.app.library import events
from greenroom.app.library.events import EventBus
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
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World

CALL: Final = (events.BEFORE_TOOL_CALL, events.AFTER_TOOL_CALL)
SUMMARY: Final = (events.BEFORE_SUMMARY, events.AFTER_SUMMARY)

HasAddon = Callable[[str], bool]
"""Whether the agent of this name is told something anew in each turn."""


class ToldModel:
    """A model of whose calls callbacks are told: of each that is made, also of one that fails or is cancelled."""

    def __init__(self, model: Model, bus: EventBus, has_addon: HasAddon) -> None:
        self._model = model
        self._bus = bus
        self._has_addon = has_addon

    @property
    def name(self) -> str:
        """Its own."""
        return self._model.name

    @property
    def card(self) -> ModelCard:
        """Its own."""
        return self._model.card

    def price(self, read: int, written: int) -> int | None:
        """Its own."""
        return self._model.price(read, written)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Its answer."""
        return self._model.stream(request) if self._bus.silent else self._told(request)

    async def _told(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        purpose = request.purpose
        who = {"run": purpose.team, "agent": purpose.agent, "step": purpose.step, "skill": purpose.skill}
        if purpose.skill == "converse" and self._has_addon(purpose.agent):
            self._bus.emit(events.BEFORE_ADDON_PROMPT, **who)
            self._bus.emit(events.AFTER_ADDON_PROMPT, **who)
        self._bus.emit(events.BEFORE_MODEL_CALL, **who, message=request.messages[-1].content)
        state, said = "cancelled", list[str]()
        try:
            async with Listening(self._model.stream(request)) as answer:
                async for event in answer:
                    state = _state(event, state)
                    _hear(event, said)
                    yield event
        except Exception:
            state = "failed"
            raise
        finally:
            self._bus.emit(events.AFTER_MODEL_CALL, **who, state=state, response="".join(said))


def _state(event: ModelEvent, before: str) -> str:
    """How the call stands after this."""
    if isinstance(event, Finished):
        return "finished"
    return "failed" if isinstance(event, Failed) else before


def _hear(event: ModelEvent, said: list[str]) -> None:
    if isinstance(event, TextDelta):
        said.append(event.text)
    elif isinstance(event, Retried):
        said.clear()


class ToldExecutor:
    """A skill or a tool of whose work callbacks are told."""

    def __init__(self, executor: Executor, bus: EventBus) -> None:
        self._executor = executor
        self._bus = bus
        self.type: StepType = executor.type
        self.name = executor.name
        self.description = executor.description

    def terms(self, world: World, step: Step) -> Terms:
        """Its own."""
        return self._executor.terms(world, step)

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
            self._bus.emit(events.BEFORE_HISTORY_CLEAR, run=bench.world.team.team_id, thread=moved.thread_id)
        return outcome

    async def _filtered(self, bench: Bench, executor: FilterTools) -> Outcome:
        who = {"run": bench.world.team.team_id, "agent": bench.step.agent_id, "step": bench.step.step_id}
        figures = {"total": len(executor.names(bench.world, bench.step)), "threshold": executor.threshold}
        self._bus.emit(events.BEFORE_TOOL_FILTER, **who, **figures)
        outcome = await executor.run(bench)
        self._bus.emit(events.TOOL_FILTERED, **who, **figures, selected=(outcome.result or {}).get("chosen", []))
        return outcome

    async def _told(self, bench: Bench, pair: tuple[str, str], **about: object) -> Outcome:
        step, (before, after) = bench.step, pair
        who = {"run": bench.world.team.team_id, "agent": step.agent_id, "step": step.step_id, **about}
        self._bus.emit(before, **who)
        state, output = "failed", ""
        try:
            outcome = await self._executor.run(bench)
            state, output = outcome.state, outcome.error or _output(outcome)
            return outcome
        except asyncio.CancelledError:
            state = "cancelled"
            raise
        except Exception as error:
            output = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._bus.emit(after, **who, state=state, output=output)


def _output(outcome: Outcome) -> str:
    result = outcome.result or {}
    return str(result.get("output", result.get("text", "")))
