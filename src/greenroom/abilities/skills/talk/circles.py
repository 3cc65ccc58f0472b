"""Whether an agent goes in circles: the same call again and again, the same failure, two calls in turn, no change.

It is told so once, and may try something else. If it happens again it may not act any more, and says what it has tried.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Final, Literal

from greenroom.core.base.records import encode
from greenroom.core.state.step import Step

Circle = Literal["same_call", "same_failure", "in_turn", "no_change"]

SAME: Final = 4
"""How often in a row a call may have the same result, or calls the same failure."""

IN_TURN: Final = 8
"""Calls that are two in turn."""

UNCHANGED: Final = 40
"""Calls without a change to the files, where it is known what they are."""

TOLD: Final = 1
"""How often an agent is only told."""


class Circles:
    """The last calls of a thread, as far as they matter. It forgets them when the agent is told, and when it gets
    something new to do."""

    def __init__(self) -> None:
        self._calls: deque[bytes] = deque(maxlen=IN_TURN)
        self._failures: deque[str] = deque(maxlen=SAME)
        self._tree = ""
        self._since = 0
        self.told = 0

    @property
    def found(self) -> Circle | None:
        """What it does again and again; None when it gets on."""
        calls = list(self._calls)
        if len(calls) >= SAME and len(set(calls[-SAME:])) == 1:
            return "same_call"
        if len(self._failures) == SAME and self._failures[0] and len(set(self._failures)) == 1:
            return "same_failure"
        if len(calls) == IN_TURN and len(set(calls)) == 2 and calls[0::2].count(calls[0]) == IN_TURN // 2:
            return "in_turn"
        return "no_change" if self._since >= UNCHANGED else None

    @property
    def ends(self) -> bool:
        """Whether being told was not enough."""
        return self.found is not None and self.told >= TOLD

    def take(self, step: Step) -> None:
        """A call has ended."""
        result = step.result or {}
        made = encode([step.work.executor, step.work.instruction_content or {}, str(result.get("output")), step.error])
        self._calls.append(hashlib.sha256(made).digest())
        self._failures.append(step.error)
        tree = str(result.get("tree", ""))
        self._since = self._since + 1 if self._tree and tree in ("", self._tree) else 0
        self._tree = tree or self._tree

    def tell(self) -> None:
        """The agent was told."""
        self._forget()
        self.told += 1

    def begin(self) -> None:
        """It got something new to do."""
        self._forget()
        self.told = 0

    def _forget(self) -> None:
        self._calls.clear()
        self._failures.clear()
        self._since = 0
