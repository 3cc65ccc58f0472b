"""A tool that is all on its card: what it is called by and how it runs stands there."""

from __future__ import annotations

from greenroom.core.base.records import Data
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World


class CardedTool:
    """What tools share that have nothing to say of themselves beyond their card. Unless one says otherwise, it works on
    the log alone, so nobody has to be asked about it."""

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
        """As the card says. Whether at all is the policy's word."""
        return Terms(effect=self.card.effect)
