"""The bus: publishes every commit after it is durable. It decides nothing and stores nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from greenroom.core.base.records import record
from greenroom.core.ports.executor import LiveEvent
from greenroom.core.state.archive import ArchiveEntry
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState


@record
class CommitNotice:
    """A durable commit. `version` is the version of its last event."""

    version: int
    events: Sequence[Event]
    state: TeamState
    archived: Sequence[ArchiveEntry] = ()


Listener: TypeAlias = Callable[[CommitNotice], None]
TroubleListener: TypeAlias = Callable[[str | None], None]
LiveListener: TypeAlias = Callable[[Step, LiveEvent], None]


class Bus:
    """Calls listeners in the order of their subscription. A listener that raises does not stop the others."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._trouble_listeners: list[TroubleListener] = []
        self._live_listeners: list[LiveListener] = []
        self.trouble: str | None = None

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every commit. Call the returned function to unsubscribe."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def subscribe_trouble(self, listener: TroubleListener) -> Callable[[], None]:
        """Call `listener` when the log cannot be written, and with None when it can. Call the result to unsubscribe."""
        self._trouble_listeners.append(listener)
        return lambda: self._trouble_listeners.remove(listener) if listener in self._trouble_listeners else None

    def subscribe_live(self, listener: LiveListener) -> Callable[[], None]:
        """Call `listener` with pieces of replies and output before their commit. Call the result to unsubscribe."""
        self._live_listeners.append(listener)
        return lambda: self._live_listeners.remove(listener) if listener in self._live_listeners else None

    def close(self) -> None:
        """Remove all listeners."""
        for listeners in (self._listeners, self._trouble_listeners, self._live_listeners):
            listeners.clear()

    def show(self, step: Step, event: LiveEvent) -> None:
        """Send a piece of a reply or tool output to live listeners. A listener that raises does not stop the others."""
        for listener in tuple(self._live_listeners):
            try:
                listener(step, event)
            except Exception:
                logging.getLogger(__name__).exception("A live listener of step %s failed", step.step_id)

    def set_trouble(self, trouble: str | None) -> None:
        """Publish why the log cannot be written, or None when it can, if that changed."""
        if trouble != self.trouble:
            self.announce_trouble(trouble)

    def announce_trouble(self, trouble: str | None) -> None:
        """Publish the trouble even if it did not change."""
        self.trouble = trouble
        for listener in tuple(self._trouble_listeners):
            listener(trouble)

    def publish(self, commit: CommitNotice) -> None:
        """Send a commit to all listeners."""
        for listener in tuple(self._listeners):
            try:
                listener(commit)
            except Exception:
                logging.getLogger(__name__).exception("A listener failed on version %d", commit.version)
