"""The bus: tells of every commit, after it is durable. It makes no decisions and stores nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from greenroom.core.base.records import record
from greenroom.core.ports.executor import Live
from greenroom.core.state.archive import Archived
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step
from greenroom.core.state.world import World


@record
class Commit:
    """What has just become true: `version` is that of the last event."""

    version: int
    events: Sequence[Event]
    world: World
    archived: Sequence[Archived] = ()


Listener: TypeAlias = Callable[[Commit], None]
TroubleListener: TypeAlias = Callable[[str | None], None]
LiveListener: TypeAlias = Callable[[Step, Live], None]


class Bus:
    """Listeners are called in the order they came; one that raises does not keep the others from hearing."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._worried: list[TroubleListener] = []
        self._watching: list[LiveListener] = []
        self.trouble: str | None = None

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear of every commit from now on; call what is returned to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def subscribe_trouble(self, listener: TroubleListener) -> Callable[[], None]:
        """Hear when the log cannot be written, and (with None) when it can again; call what is returned to stop."""
        self._worried.append(listener)
        return lambda: self._worried.remove(listener) if listener in self._worried else None

    def subscribe_live(self, listener: LiveListener) -> Callable[[], None]:
        """See replies as they come, long before they are facts; call what is returned to stop."""
        self._watching.append(listener)
        return lambda: self._watching.remove(listener) if listener in self._watching else None

    def close(self) -> None:
        """Tell nobody any more."""
        for listeners in (self._listeners, self._worried, self._watching):
            listeners.clear()

    def show(self, step: Step, event: Live) -> None:
        """Show a piece of a reply, or of what a tool prints, to those who watch. One that raises harms nobody else."""
        for listener in tuple(self._watching):
            try:
                listener(step, event)
            except Exception:
                logging.getLogger(__name__).exception("Whoever watches step %s failed", step.step_id)

    def worry(self, trouble: str | None) -> None:
        """Say that the log cannot be written and why, or that it can."""
        if trouble != self.trouble:
            self.insist(trouble)

    def insist(self, trouble: str | None) -> None:
        """The same, even if it was said before: there is more to it now."""
        self.trouble = trouble
        for listener in tuple(self._worried):
            listener(trouble)

    def publish(self, commit: Commit) -> None:
        """Tell everybody."""
        for listener in tuple(self._listeners):
            try:
                listener(commit)
            except Exception:
                logging.getLogger(__name__).exception("A listener failed on version %d", commit.version)
