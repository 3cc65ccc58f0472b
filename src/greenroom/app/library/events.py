"""Events by name: callbacks around tasks, model calls, tools and summaries, as Jarvis has them. A view of the log.

They watch and decide nothing: a callback that fails harms nobody, and what it returns is not looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from greenroom.core.base.ids import StepId
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step, StepCancelling, StepEnded, StepStarted
from greenroom.core.state.task import TaskEnded, TaskStarted
from greenroom.core.state.thread import WindowMoved
from greenroom.core.state.world import World
from greenroom.core.sync.bus import Commit

Callback: TypeAlias = Callable[..., object]
Named: TypeAlias = tuple[str, dict[str, object]]

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
INTERRUPT_TRIGGERED: Final = "interrupt_triggered"


class EventBus:
    """Callbacks by the name of an event, called in the order in which they came."""

    def __init__(self) -> None:
        self._callbacks: dict[str, list[Callback]] = {}

    def subscribe(self, event: str, callback: Callback) -> None:
        """Call this whenever the event happens."""
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
        """Tell of what has just become true."""
        if self._callbacks:
            ended = {row.record.step_id: row.record for row in commit.archived if isinstance(row.record, Step)}
            for event in commit.events:
                for name, told in named(event, commit.world, ended):
                    self.emit(name, **told)


def named(event: Event, world: World, ended: dict[StepId, Step]) -> Iterator[Named]:
    """What an event of the log is called here; most have no name."""
    match event:
        case TaskStarted():
            yield TASK_STARTED, {"task": event.task_id}
        case TaskEnded():
            yield TASK_COMPLETED, {"task": event.task_id, "state": event.state, "summary": event.summary}
        case StepStarted() if event.step_id in world.steps:
            yield from _begun(world.steps[event.step_id])
        case StepEnded() if event.step_id in ended:
            yield from _over(ended[event.step_id])
        case StepCancelling():
            yield INTERRUPT_TRIGGERED, {"step": event.step_id}
        case WindowMoved():
            yield BEFORE_HISTORY_CLEAR, {"thread": event.thread_id}
            yield AFTER_HISTORY_CLEAR, {"thread": event.thread_id}
        case _:
            return


def _begun(step: Step) -> Iterator[Named]:
    told: dict[str, object] = {"agent": step.agent_id, "step": step.step_id}
    if step.work.type == "tool":
        yield BEFORE_TOOL_CALL, {**told, "tool": step.work.executor, "arguments": step.work.instruction_content or {}}
    elif step.work.executor == "converse":
        yield BEFORE_ADDON_PROMPT, told
        yield AFTER_ADDON_PROMPT, told
        yield BEFORE_MODEL_CALL, {**told, "message": step.work.text_content}
    elif step.work.executor == "summarize":
        yield BEFORE_SUMMARY, told


def _over(step: Step) -> Iterator[Named]:
    result = step.result or {}
    told: dict[str, object] = {"agent": step.agent_id, "step": step.step_id, "state": step.state}
    if step.work.type == "tool":
        output = step.error or str(result.get("output", ""))
        yield AFTER_TOOL_CALL, {**told, "tool": step.work.executor, "output": output}
    elif step.work.executor == "converse" and "deferred" not in result:
        yield AFTER_MODEL_CALL, {**told, "response": str(result.get("text", ""))}
    elif step.work.executor == "summarize":
        yield AFTER_SUMMARY, {**told, "summary": str(result.get("text", ""))}
