"""What the tools for memories share: they touch nothing outside, and are called by nobody who has to be asked."""

from __future__ import annotations

from greenroom.abilities.tools.memory.stores import Stores
from greenroom.core.base.records import Data
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World


class MemoryTool:
    """A tool for the memories of a team."""

    type: StepType = "tool"
    card: ToolCard

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    @property
    def name(self) -> str:
        """What a step calls it by."""
        return self.card.spec.name

    @property
    def description(self) -> str:
        """When to use it."""
        return self.card.spec.description

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing outside."""
        return (Target(kind="tool", value=self.name),)

    def terms(self, _: World, __: Step) -> Terms:
        """Run again freely, unless a store has files or the like."""
        return Terms(effect=self.card.effect)
