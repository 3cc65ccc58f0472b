"""The history of a conversation, cut to its last turns. It keeps the very messages it is given, and so their bytes.

A turn is what a person says and everything up to the next time they speak.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from greenroom.core.base.errors import Bug
from greenroom.core.ports.model import ChatMessage


class LLMContext:
    """What was said, oldest first; a system message stands before it and stays."""

    def __init__(self, context_size: int = 20) -> None:
        if context_size < 0:
            raise Bug(f"A history of {context_size} turns cannot be kept. Give 0 or more.")
        self.context_size = context_size
        self._history: list[ChatMessage] = []

    def add_message(self, message: ChatMessage) -> None:
        """Something more was said."""
        self._history.append(message)

    def remove_last_message(self) -> ChatMessage | None:
        """Take the newest message back."""
        return self._history.pop() if self._history else None

    def set_history(self, messages: Iterable[ChatMessage]) -> None:
        """Another history in the place of this one."""
        self._history = list(messages)

    def get_history(self) -> tuple[ChatMessage, ...]:
        """All messages, oldest first."""
        return tuple(self._history)

    def clear(self) -> None:
        """Forget everything, the system message too."""
        self._history.clear()

    def trim_history(self) -> None:
        """Keep the last `context_size` turns and every system message. A call is never parted from its result."""
        starts = self._turns()
        if len(starts) <= self.context_size:
            return
        first = starts[-self.context_size] if self.context_size else len(self._history)
        self._history = [
            message for place, message in enumerate(self._history) if place >= first or message.role == "system"
        ]

    def _turns(self) -> Sequence[int]:
        """Where turns begin: where a person speaks and no call waits for its result."""
        starts: list[int] = []
        waiting: set[str] = set()
        for place, message in enumerate(self._history):
            if message.role == "user" and not waiting:
                starts.append(place)
            elif message.role == "assistant":
                waiting = {call.call_id for call in message.calls}
            elif message.role == "tool":
                waiting.discard(message.call_id or "")
        return starts
