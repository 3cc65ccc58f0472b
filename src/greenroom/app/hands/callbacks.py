"""Callbacks after every tool call: what they are told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from greenroom.app.hands.telling import SECONDS, Callback, Telling
from greenroom.core.ports.executor import Outcome
from greenroom.core.state.step import Step


class Callbacks:
    """All callbacks. One that fails or does not end is told of in the log of the program, and costs nobody anything."""

    def __init__(self, callbacks: Iterable[Callback] = (), seconds: float = SECONDS) -> None:
        self._telling = Telling(callbacks, seconds)

    async def __call__(self, step: Step, outcome: Outcome) -> None:
        """Tell all of them."""
        await self._telling.tell(told_of(step, outcome), step.work.executor)


def told_of(step: Step, outcome: Outcome) -> Mapping[str, object]:
    """What a callback is told."""
    return {
        "agent": step.agent_id,
        "tool": step.work.executor,
        "arguments": dict(step.work.instruction_content or {}),
        "state": outcome.state,
        "output": str((outcome.result or {}).get("output", "")),
        "error": outcome.error,
    }
