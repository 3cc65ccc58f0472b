"""What happens while somebody types is kept back until the prompt has made room for it."""

from __future__ import annotations

from collections.abc import Callable

from greenroom.core.ports.executor import Live
from greenroom.core.state.step import Step
from greenroom.interfaces.cli.display.progress import Progress
from greenroom.interfaces.cli.display.telling import Line, Teller


class Held:
    """A progress that shows nothing while it is held, and then all of it in order."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._kept: list[Callable[[], None]] = []
        self._held = True

    def hold(self) -> None:
        """From now on somebody types."""
        self._held = True

    def release(self) -> None:
        """The screen is free."""
        self._held = False
        kept, self._kept = self._kept, []
        for show in kept:
            show()

    def begin(self, teller: Teller) -> None:
        """Something runs from now on."""
        self._show(lambda: self._progress.begin(teller))

    def line(self, teller: Teller, line: Line) -> None:
        """One more event."""
        self._show(lambda: self._progress.line(teller, line))

    def piece(self, step: Step, event: Live) -> None:
        """A piece of a model's reply."""
        self._show(lambda: self._progress.piece(step, event))

    def began(self, step: Step) -> None:
        """A step has begun."""
        self._show(lambda: self._progress.began(step))

    def ended(self, step: Step) -> None:
        """A step is over."""
        self._show(lambda: self._progress.ended(step))

    def note(self, text: str, *, style: str = "") -> None:
        """The door's own words."""
        self._show(lambda: self._progress.note(text, style=style))

    def trouble(self, text: str | None) -> None:
        """Something outside is in the way, or no longer is: that is said at once."""
        self._progress.trouble(text)

    def end(self) -> None:
        """Nothing runs any more."""
        self._show(self._progress.end)

    def _show(self, show: Callable[[], None]) -> None:
        if self._held:
            self._kept.append(show)
        else:
            show()
