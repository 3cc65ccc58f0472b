"""A tool that is all on its card: what it is called by and how it runs stands there, and it touches nothing outside."""

from __future__ import annotations

from greenroom.core.base.records import Data
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World


class CardedTool:
    """What tools share that work on the log alone: nobody has to be asked about one, and it can be run again."""

    type: StepType = "tool"
    card: ToolCard

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
        """As the card says: of an attempt that was cut off nothing is written."""
        return Terms(effect=self.card.effect)
