"""A long-tail tool for tests: it digs deeper with every call."""

from __future__ import annotations

from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState

SPEC = ToolSpec(
    name="dig",
    description="Digs one shovel deeper.",
    parameters={"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]},
)


class Dig:
    """Digs deeper with every call, and raises what it hits."""

    type: StepType = "tool"
    name: str = "dig"
    description: str = SPEC.description

    def __init__(self, *hits: Exception | None, card: ToolCard | None = None) -> None:
        self.card = card or ToolCard(spec=SPEC, group="read", effect="pure", long_tail=True)
        self._hits = list(hits)
        self.depth = 0

    def targets(self, _: Data) -> tuple[Target, ...]:
        return (Target(kind="tool", value=self.name),)

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        return StepTerms(effect="pure")

    async def run(self, context: StepContext) -> Outcome:
        self.depth += 1
        hit = self._hits.pop(0) if self._hits else None
        if hit is not None:
            raise hit
        return Outcome(
            result={"output": f"depth {self.depth}", "where": dict(context.step.work.instruction_content or {})}
        )
