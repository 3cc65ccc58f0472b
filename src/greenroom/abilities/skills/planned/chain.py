"""The chain of a long-tail tool: what was done with it in one go, and what was decided in between.

    tool → tool_decision → (instruction_generation) → tool → tool_decision → …

Found backwards, from the newest call. Only what fills in the next call, or answers somebody, may stand in between: any
other step begins something else, and so does a decision to end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from greenroom.core.state.step import Step

DECISION: Final = "tool_decision"
GAPS: Final = frozenset({"instruction_generation", "send_message"})


def chain(steps: Sequence[Step], tool: str) -> tuple[Step, ...]:
    """The newest chain of this tool, oldest first: calls and decisions in turn, a call at either end."""
    place = _last_call(steps, len(steps), tool)
    found = [steps[place]] if place is not None else []
    while place is not None:
        decided = _decision_before(steps, place, tool)
        place = _call_before(steps, decided, tool) if decided is not None else None
        if decided is not None and place is not None:
            found += (steps[decided], steps[place])
    return tuple(reversed(found))


def _last_call(steps: Sequence[Step], end: int, tool: str) -> int | None:
    return next((place for place in reversed(range(end)) if _is_call(steps[place], tool)), None)


def _decision_before(steps: Sequence[Step], end: int, tool: str) -> int | None:
    """The decision from which a call comes; None if it comes from something else."""
    for place in reversed(range(end)):
        if _is_decision(steps[place], tool):
            return None if _ends(steps[place]) or steps[place].state != "finished" else place
        if steps[place].work.executor not in GAPS:
            return None
    return None


def _call_before(steps: Sequence[Step], end: int, tool: str) -> int | None:
    """The call about which was decided. A decision that could not be read was made again."""
    for place in reversed(range(end)):
        if _is_call(steps[place], tool):
            return place
        if steps[place].work.executor not in GAPS and not _is_decision(steps[place], tool):
            return None
    return None


def _is_call(step: Step, tool: str) -> bool:
    return step.work.type == "tool" and step.work.executor == tool


def _is_decision(step: Step, tool: str) -> bool:
    return step.work.executor == DECISION and step.work.text_content.strip() == tool


def _ends(step: Step) -> bool:
    made = (step.result or {}).get(DECISION)
    return isinstance(made, Mapping) and made.get("decision") == "end"
