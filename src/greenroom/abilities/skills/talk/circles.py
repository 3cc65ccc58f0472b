"""Whether an agent goes in circles: the same call again and again, the same failure, two calls in turn, no change.

It is told so once, and may try something else. If it happens again it may not act any more, and says what it has tried.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Final, Literal

from greenroom.core.base.records import encode
from greenroom.core.ports.checks import REPORT, from_data
from greenroom.core.state.step import Step

Circle = Literal["same_call", "same_failure", "in_turn", "no_change"]

SAME: Final = 4
"""How often in a row a call may have the same result, and how often among the `RECENT` calls the same failure."""

RECENT: Final = 12
"""Calls among which a failure is the same one again, also when something else went well in between."""

SAME_CHECKS: Final = 6
"""How often in a row the project's checks may find the very same fault, whatever was edited in between."""

IDLE: Final = 15
"""Calls that change no file and find nothing new, where it is known what the files are."""

TRIVIAL: Final = 80
"""Characters of a result that is too short to be something new: whoever reads files or runs tests gets more."""

REMEMBERED: Final = 200
"""Results that are known again."""

IN_TURN: Final = 8
"""Calls that are two in turn."""

UNCHANGED: Final = 40
"""Calls without a change to the files, whatever else they find: long enough to read a lot."""

TOLD: Final = 1
"""How often an agent is only told."""

SETTLED: Final = 40
"""Calls without a circle, after which being told is long ago."""


class Circles:
    """The last calls of a thread, as far as they matter. It forgets them when the agent is told, and when it gets
    something new to do."""

    def __init__(self) -> None:
        self._calls: deque[bytes] = deque(maxlen=IN_TURN)
        self._failures: deque[str] = deque(maxlen=RECENT)
        self._checks: deque[bytes] = deque(maxlen=SAME_CHECKS)
        self._seen: deque[bytes] = deque(maxlen=REMEMBERED)
        self._tree = ""
        self._since = 0
        self._idle = 0
        self._well = 0
        self.told = 0

    @property
    def found(self) -> Circle | None:
        """What it does again and again; None when it gets on."""
        calls = list(self._calls)
        if len(calls) >= SAME and len(set(calls[-SAME:])) == 1:
            return "same_call"
        if self._fails_the_same:
            return "same_failure"
        if len(calls) == IN_TURN and len(set(calls)) == 2 and calls[0::2].count(calls[0]) == IN_TURN // 2:
            return "in_turn"
        return "no_change" if self._since >= UNCHANGED or self._idle >= IDLE else None

    @property
    def _fails_the_same(self) -> bool:
        last = self._failures[-1] if self._failures else ""
        if last and self._failures.count(last) >= SAME:
            return True
        return len(self._checks) == SAME_CHECKS and bool(self._checks[0]) and len(set(self._checks)) == 1

    @property
    def ends(self) -> bool:
        """Whether being told was not enough."""
        return self.found is not None and self.told >= TOLD

    def take(self, step: Step) -> None:
        """A call has ended."""
        result = step.result or {}
        self._made(step.work.executor, step.work.instruction_content or {}, str(result.get("output")), step.error)
        if REPORT in result:
            self._checks.append(_faults(result[REPORT]))
        tree = str(result.get("tree", ""))
        unchanged = bool(self._tree) and tree in ("", self._tree)
        new = self._is_new(str(result.get("output", "")))
        self._since = self._since + 1 if unchanged else 0
        self._idle = self._idle + 1 if unchanged and not new else 0
        self._tree = tree or self._tree
        self._went()

    def refuse(self, name: str, arguments: object, why: str) -> None:
        """A call was answered at once, and nothing was done."""
        self._made(name, arguments, "", why)
        self._went()

    def _made(self, name: str, arguments: object, output: str, error: str) -> None:
        self._calls.append(hashlib.sha256(encode([name, arguments, output, error])).digest())
        self._failures.append(error)

    def _went(self) -> None:
        self._well = 0 if self.found is not None else self._well + 1
        if self._well >= SETTLED:
            self.told = 0

    def _is_new(self, output: str) -> bool:
        """Whether a call has shown something that no other one has, and that is worth a look."""
        digest = hashlib.sha256(output.encode(errors="replace")).digest()
        known = digest in self._seen
        self._seen.append(digest)
        return not known and len(output) > TRIVIAL

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
        self._checks.clear()
        self._since = 0
        self._idle = 0
        self._well = 0


def _faults(held: object) -> bytes:
    """What a run of the checks found; empty where all went well."""
    report = from_data(held)
    red = [one for one in report.checks if not one.clean] if report is not None else []
    return (
        encode([(one.check, one.outcome, one.reason, one.compared and one.compared.new) for one in red]) if red else b""
    )
