"""Completion: who ends the work, how an agent is nudged that does not, and whether it repeats itself."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from typing import Final, Literal

from greenroom.abilities.skills.prompts.builder import COMPLETION_MARK, PACK
from greenroom.core.base.records import encode, record
from greenroom.core.ports.checks import REPORT_KEY, report_from_data
from greenroom.core.state.spec import AgentSpec, TurnEnd
from greenroom.core.state.step import Step

LoopKind = Literal["same_call", "same_failure", "in_turn", "no_change"]

MAX_REPEATS: Final = 4
"""Maximum consecutive calls with the same result, and equal failures among the last `RECENT_CALLS` calls."""

RECENT_CALLS: Final = 12
"""Number of last calls in which equal failures are counted, even with successes in between."""

MAX_SAME_CHECK_FAILURES: Final = 6
"""Maximum consecutive check runs with exactly the same failures, regardless of edits in between."""

MAX_IDLE_CALLS: Final = 15
"""Maximum calls that change no file and find nothing new, where the state of the files is known."""

TRIVIAL_OUTPUT_CHARS: Final = 80
"""Maximum characters of a result that never counts as new. Reading files or running tests returns more."""

MAX_REMEMBERED_RESULTS: Final = 200
"""Number of results that are remembered to recognise repetitions."""

ALTERNATING_CALLS: Final = 8
"""Number of calls that alternate between two calls before that counts as a loop."""

MAX_UNCHANGED_CALLS: Final = 40
"""Maximum calls without a change to the files, regardless of their results. Enough for extensive reading."""

MAX_LOOP_WARNINGS: Final = 1
"""Number of warnings before the work ends."""

CALLS_TO_FORGET_WARNING: Final = 40
"""Number of calls without a loop after which warnings are forgotten."""


class LoopDetector:
    """Detects loops in the last calls of a thread. A warning or a new request resets it."""

    def __init__(self) -> None:
        self._calls: deque[bytes] = deque(maxlen=ALTERNATING_CALLS)
        self._failures: deque[str] = deque(maxlen=RECENT_CALLS)
        self._checks: deque[bytes] = deque(maxlen=MAX_SAME_CHECK_FAILURES)
        self._seen_outputs: deque[bytes] = deque(maxlen=MAX_REMEMBERED_RESULTS)
        self._tree = ""
        self._calls_since_change = self._idle_calls = self._calls_without_loop = self.warnings = 0

    @property
    def loop(self) -> LoopKind | None:
        """The detected loop, or None."""
        calls = list(self._calls) if len(self._calls) >= MAX_REPEATS else []
        if calls and len(set(calls[-MAX_REPEATS:])) == 1:
            return "same_call"
        if self._has_repeated_failure:
            return "same_failure"
        if (
            len(calls) == ALTERNATING_CALLS
            and len(set(calls)) == 2
            and calls[0::2].count(calls[0]) == ALTERNATING_CALLS // 2
        ):
            return "in_turn"
        if self._calls_since_change >= MAX_UNCHANGED_CALLS or self._idle_calls >= MAX_IDLE_CALLS:
            return "no_change"
        return None

    @property
    def _has_repeated_failure(self) -> bool:
        last = self._failures[-1] if self._failures else ""
        if last and self._failures.count(last) >= MAX_REPEATS:
            return True
        return len(self._checks) == MAX_SAME_CHECK_FAILURES and bool(self._checks[0]) and len(set(self._checks)) == 1

    @property
    def must_end(self) -> bool:
        """Whether there is a loop although the agent was warned."""
        return self.loop is not None and self.warnings >= MAX_LOOP_WARNINGS

    def add_step(self, step: Step) -> None:
        """Add an ended tool step."""
        result = step.result or {}
        if REPORT_KEY in result:
            self._checks.append(_digest_failures(result[REPORT_KEY]))
        tree = str(result.get("tree", ""))
        unchanged = bool(self._tree) and tree in ("", self._tree)
        new = self._is_new(str(result.get("output", "")))
        self._calls_since_change = self._calls_since_change + 1 if unchanged else 0
        self._idle_calls = self._idle_calls + 1 if unchanged and not new else 0
        self._tree = tree or self._tree
        self.add_call(step.work.executor, step.work.instruction_content or {}, str(result.get("output")), step.error)

    def add_call(self, name: str, arguments: object, output: str, error: str) -> None:
        """Add a call that was made, or answered immediately without effect."""
        self._calls.append(hashlib.sha256(encode([name, arguments, output, error])).digest())
        self._failures.append(error)
        self._calls_without_loop = 0 if self.loop is not None else self._calls_without_loop + 1
        if self._calls_without_loop >= CALLS_TO_FORGET_WARNING:
            self.warnings = 0

    def _is_new(self, output: str) -> bool:
        """Return whether the output is new and not trivial."""
        digest = hashlib.sha256(output.encode(errors="replace")).digest()
        known = digest in self._seen_outputs
        self._seen_outputs.append(digest)
        return not known and len(output) > TRIVIAL_OUTPUT_CHARS

    def add_warning(self) -> None:
        """Count a warning and reset."""
        self._clear(warnings=self.warnings + 1)

    def start_over(self) -> None:
        """Reset for a new request."""
        self._clear(warnings=0)

    def _clear(self, warnings: int) -> None:
        for known in (self._calls, self._failures, self._checks):
            known.clear()
        self._calls_since_change = self._idle_calls = self._calls_without_loop = 0
        self.warnings = warnings


def _digest_failures(held: object) -> bytes:
    """Return a digest of the failed checks, empty if all passed."""
    report = report_from_data(held)
    red = [entry for entry in report.checks if not entry.is_clean] if report is not None else []
    if red:
        return encode(
            [(entry.check, entry.outcome, entry.reason, entry.compared and entry.compared.new) for entry in red]
        )
    return b""


DEFAULT_MAX_TURNS: Final = 200
"""Maximum number of turns before an agent must answer, unless its spec sets it."""

MAX_NUDGES: Final[dict[TurnEnd, int]] = {"finish": 1, "mark": 5, "text": 0}
"""How often an agent that only writes text is reminded that its work is not over."""

CompletionSource = Literal["finish", "answer", "mark", "text", "unproven", "silent", "held", "limit", "circles"]

COMPLETION_REASONS: Final[dict[CompletionSource, str]] = {
    "silent": "It never said that it was done. Its last words:",
    "held": "It says that it is done, but may not end its task by itself (`auto_complete`), and it is alone.",
    "limit": "It has acted as often as it may, and did not end its work.",
    "circles": "It went in circles, and was stopped.",
}
"""Explanations of endings that the agent did not declare."""

LOOP_REASONS: Final[dict[LoopKind, str]] = {
    "same_call": "It made the same call again and again.",
    "same_failure": "Its calls failed again and again for the same reason.",
    "in_turn": "It made the same two calls in turn.",
    "no_change": "It made call after call that changed no file and found nothing new.",
}
"""Explanations of the detected loops."""


_QUOTED_MARK: Final = rf"""(?P<quote>['"`]?){re.escape(COMPLETION_MARK)}(?P=quote)"""
MARK_PATTERN: Final = re.compile(rf"ot\({_QUOTED_MARK.replace('quote', 'inner')}\)|{_QUOTED_MARK}")
"""The completion mark, bare, quoted, or as Jarvis wraps it: `ot('…')`."""


@record
class CompletionSignal:
    """The end of the work: its source and the result. `files` and `tests` come from a `finish` call."""

    source: CompletionSource
    text: str
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether the work did not reach its end."""
        return self.source in ("silent", "held", "limit", "circles")


def build_signal(source: CompletionSource, text: str, circle: LoopKind | None = None) -> CompletionSignal:
    """Build a completion signal with its explanation."""
    why = f"{COMPLETION_REASONS.get(source, '')} {LOOP_REASONS[circle] if circle is not None else ''}".strip()
    return CompletionSignal(source=source, text="\n".join(part for part in (why, text) if part.strip()))


def can_auto_complete(explicit: bool | None, *, non_interactive: bool, in_multi_agent: bool) -> bool:
    """Return whether an agent may end its task by itself: as its spec says; else only alone and unattended."""
    return explicit if explicit is not None else non_interactive and not in_multi_agent


def find_ending(spec: AgentSpec, *, subtask: bool) -> TurnEnd:
    """Return how the agent ends its work: as its spec says, else what suits its call protocol.

    A subtask ends with a call, because others depend on it. A question ends with a text answer.
    """
    if spec.turn.ends is not None:
        return spec.turn.ends
    if "xml_tool" in spec.turn.protocols:
        return "text"
    if spec.turn.protocols:
        return "mark"
    return "finish" if subtask else "text"


def detect_completion(ends: TurnEnd, text: str, *, auto_complete: bool, nudges: int) -> CompletionSource | None:
    """Return whether and how a reply without a call ends the work. After too many nudges it ends anyway."""
    if ends == "text":
        return "text"
    if ends == "mark" and COMPLETION_MARK in text:
        return "mark" if auto_complete else "held"
    if nudges < MAX_NUDGES[ends]:
        return None
    return "unproven" if ends == "finish" else "silent"


def strip_mark(text: str) -> str:
    """Remove the completion mark from the text."""
    return MARK_PATTERN.sub("", text).strip()


def render_nudge(spec: AgentSpec, ends: TurnEnd | Literal["answer"], *, empty: bool, why: str = "") -> str:
    """Render a reminder for an agent whose reply does not advance its work."""
    return PACK.render(spec.language, "nudge", {"ends": ends, "empty": empty, "mark": COMPLETION_MARK, "why": why})
