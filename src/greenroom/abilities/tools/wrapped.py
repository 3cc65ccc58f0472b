"""A tool around another one: it is called and judged like that one, and does something more."""

from __future__ import annotations

from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import Target, ToolCard, ToolExecutor
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World


class WrappedTool:
    """Everything is the tool's own; who derives from it says what is more in `run`."""

    type: StepType = "tool"

    def __init__(self, tool: ToolExecutor) -> None:
        self._tool = tool
        self.name = tool.name
        self.description = tool.description
        self.card: ToolCard = tool.card

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """The tool's."""
        return self._tool.targets(arguments)

    def terms(self, world: World, step: Step) -> Terms:
        """The tool's."""
        return self._tool.terms(world, step)

    async def run(self, bench: Bench) -> Outcome:
        """Call it."""
        return await self._tool.run(bench)
