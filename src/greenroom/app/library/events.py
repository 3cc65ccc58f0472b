"""Events by name: callbacks around tasks, model calls, tools and summaries, as Jarvis has them.

They watch and decide nothing: a callback that fails harms nobody, and what it returns is not looked at. Those that come
in pairs are told right before and right after what they are about, once for each time that it really happens.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Final, TypeAlias

from greenroom.core.base.errors import WorldFault
from greenroom.core.state.task import TaskEnded
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
        """Tell of what has just become true: a task is over, a conversation begins anew."""
        run = commit.world.team.team_id
        for event in commit.events:
            if isinstance(event, TaskEnded):
                self.emit(TASK_COMPLETED, run=run, task=event.task_id, state=event.state, summary=event.summary)
            elif isinstance(event, WindowMoved):
                self.emit(AFTER_HISTORY_CLEAR, run=run, thread=event.thread_id)
