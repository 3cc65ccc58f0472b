"""When work is over: who says so, what an agent is told that has not said it, and whether it goes in circles."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Final, Literal

from greenroom.abilities.skills.prompts.builder import MARK, PACK
from greenroom.core.base.records import encode, record
from greenroom.core.ports.checks import REPORT, from_data
from greenroom.core.state.spec import AgentSpec, Ends
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
        self._since = self._idle = self._well = self.told = 0

    @property
    def found(self) -> Circle | None:
        """What it does again and again; None when it gets on."""
        calls = list(self._calls) if len(self._calls) >= SAME else []
        if calls and len(set(calls[-SAME:])) == 1:
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
        if REPORT in result:
            self._checks.append(_faults(result[REPORT]))
        tree = str(result.get("tree", ""))
        unchanged = bool(self._tree) and tree in ("", self._tree)
        new = self._is_new(str(result.get("output", "")))
        self._since = self._since + 1 if unchanged else 0
        self._idle = self._idle + 1 if unchanged and not new else 0
        self._tree = tree or self._tree
        self.made(step.work.executor, step.work.instruction_content or {}, str(result.get("output")), step.error)

    def made(self, name: str, arguments: object, output: str, error: str) -> None:
        """A call was made, or answered at once with nothing done."""
        self._calls.append(hashlib.sha256(encode([name, arguments, output, error])).digest())
        self._failures.append(error)
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
        self._forget(told=self.told + 1)

    def begin(self) -> None:
        """It got something new to do."""
        self._forget(told=0)

    def _forget(self, told: int) -> None:
        for known in (self._calls, self._failures, self._checks):
            known.clear()
        self._since = self._idle = self._well = 0
        self.told = told


def _faults(held: object) -> bytes:
    """What a run of the checks found; empty where all went well."""
    report = from_data(held)
    red = [one for one in report.checks if not one.clean] if report is not None else []
    return (
        encode([(one.check, one.outcome, one.reason, one.compared and one.compared.new) for one in red]) if red else b""
    )


CAP: Final = 200
"""How often an agent acts before it has to answer, if its spec does not say."""

PATIENCE: Final[dict[Ends, int]] = {"finish": 1, "mark": 5, "text": 0}
"""How often an agent that only talks is told that its work is not over."""

Source = Literal["finish", "answer", "mark", "text", "unproven", "silent", "held", "limit", "circles"]

WHY: Final[dict[Source, str]] = {
    "silent": "It never said that it was done. Its last words:",
    "held": "It says that it is done, but may not end its task by itself (`auto_complete`), and nobody else is here.",
    "limit": "It has acted as often as it may, and did not end its work.",
    "circles": "It went in circles, and was stopped.",
}
"""What is said of an end that is not the agent's own word."""

AGAIN: Final[dict[Circle, str]] = {
    "same_call": "It made the same call again and again.",
    "same_failure": "Its calls failed again and again for the same reason.",
    "in_turn": "It made the same two calls in turn.",
    "no_change": "It made call after call that changed no file and found nothing new.",
}
"""Which circle it was."""


@record
class CompletionSignal:
    """The end of work, whatever form it had: who or what said so, and the result; `files` and `tests` as a `finish`
    call names them."""

    source: Source
    text: str
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the work has not come to its end."""
        return self.source in ("silent", "held", "limit", "circles")


def signal(source: Source, text: str, circle: Circle | None = None) -> CompletionSignal:
    """An end with what is to be said of it."""
    why = f"{WHY.get(source, '')} {AGAIN[circle] if circle is not None else ''}".strip()
    return CompletionSignal(source=source, text="\n".join(part for part in (why, text) if part.strip()))


def auto_completes(explicit: bool | None, *, non_interactive: bool, in_multi_agent: bool) -> bool:
    """Whether an agent may end its task by itself: as its spec says; else alone and unattended, but not in company."""
    return explicit if explicit is not None else non_interactive and not in_multi_agent


def ends_of(spec: AgentSpec, *, subtask: bool) -> Ends:
    """What says that the work is over, if the spec does not: what fits the form in which the agent acts.

    Who has a part in a plan says so with a call, so that others can build on it; a question is answered by an answer.
    """
    if spec.turn.ends is not None:
        return spec.turn.ends
    if "xml_tool" in spec.turn.protocols:
        return "text"
    if spec.turn.protocols:
        return "mark"
    return "finish" if subtask else "text"


def is_over(ends: Ends, text: str, *, auto_complete: bool, nudges: int) -> Source | None:
    """Whether a reply without a call ends the work, and how. Talk that goes on and on without saying so never will."""
    if ends == "text":
        return "text"
    if ends == "mark" and MARK in text:
        return "mark" if auto_complete else "held"
    if nudges < PATIENCE[ends]:
        return None
    return "unproven" if ends == "finish" else "silent"


def without_mark(text: str) -> str:
    """The text that a person reads."""
    return text.replace(f"`{MARK}`", "").replace(MARK, "").strip()


def nudge(spec: AgentSpec, ends: Ends | Literal["answer"], *, empty: bool, why: str = "") -> str:
    """What an agent is told whose reply does not move its work on."""
    return PACK.render(spec.language, "nudge", {"ends": ends, "empty": empty, "mark": MARK, "why": why})
