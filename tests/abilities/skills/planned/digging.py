"""A long-tail tool to play with: it digs deeper with every call."""

from __future__ import annotations

from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World

SPEC = ToolSpec(
    name="dig",
    description="Digs one shovel deeper.",
    parameters={"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]},
)


class Dig:
    """Digs deeper with every call; what it hits is raised."""

    type: StepType = "tool"
    name: str = "dig"
    description: str = SPEC.description

    def __init__(self, *hits: Exception | None, card: ToolCard | None = None) -> None:
        self.card = card or ToolCard(spec=SPEC, group="read", effect="pure", long_tail=True)
        self._hits = list(hits)
        self.depth = 0

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing outside."""
        return (Target(kind="tool", value=self.name),)

    def terms(self, _: World, __: Step) -> Terms:
        """Free."""
        return Terms(effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """Dig."""
        self.depth += 1
        hit = self._hits.pop(0) if self._hits else None
        if hit is not None:
            raise hit
        return Outcome(
            result={"output": f"depth {self.depth}", "where": dict(bench.step.work.instruction_content or {})}
        )
