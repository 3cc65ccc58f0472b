"""Which tools a run has executed, and how often: read from its log, which is the only place that knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TeamId
from greenroom.core.state.step import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """The tools that were really called, in order; what nobody agreed to is not among them."""

    tools: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def last(self) -> str:
        """The newest one; empty when there was none."""
        return self.tools[-1] if self.tools else ""

    @property
    def user_data(self) -> dict[str, object]:
        """The same under the names that Jarvis has for it."""
        return {"__last_executed_tool__": self.last, "__executed_tools__": list(self.tools)}


async def executed_in(runtime: Runtime, team: TeamId) -> Executed:
    """All calls of a run that were begun and are over."""
    found = [
        step.work.executor
        async for step in runtime.archive(team, "step")
        if isinstance(step, Step) and step.work.type == "tool" and step.started_at is not None
    ]
    return Executed(tools=tuple(found), counts=Counter(found))
