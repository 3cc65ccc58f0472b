"""What tools share: a base for one that is all on its card, and wrappers around one."""

from __future__ import annotations

import logging

from greenroom.core.base.amounts import NOTHING
from greenroom.core.base.errors import ModelFault, ProviderFault, StaleOwner, WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard, ToolExecutor
from greenroom.core.rules.intents import NeedToolDecision
from greenroom.core.state.spec import Group
from greenroom.core.state.step import Effect, Step, StepType, Terms
from greenroom.core.state.world import World


def make_card(
    name: str,
    description: str,
    arguments: Data,
    *,
    group: Group,
    effect: Effect = "pure",
    pure: bool = False,
    seconds: int = 0,
    alias_of: str = "",
    ends_own: bool = False,
) -> ToolCard:
    """A card. `arguments` is their schema; `pure` says of a tool of any effect on the log that it changes nothing."""
    spec = ToolSpec(name=name, description=description, parameters=arguments, pure=pure)
    return ToolCard(spec=spec, group=group, effect=effect, seconds=seconds, alias_of=alias_of, ends_own=ends_own)


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


def long_tail(tool: ToolExecutor) -> ToolExecutor:
    """The tool, with a decision behind each call if its card says so."""
    return LongTail(tool) if tool.card.long_tail else tool


class LongTail(WrappedTool):
    """A tool whose every result is judged, also that it failed."""

    async def run(self, bench: Bench) -> Outcome:
        """Call it; then its agent decides, if it is one that plans."""
        spec, step = bench.agent.spec, bench.step
        # A native call has its conversation to come back to.
        if not (spec.kind == "llm" and spec.style == "plan" and step.work.call_id is None):
            return await super().run(bench)
        try:
            outcome = await super().run(bench)
        except (StaleOwner, ProviderFault):
            raise  # nothing came of it at all: it is made again, or somebody has to do something first
        except (ModelFault, WorldFault, OSError) as fault:
            outcome = _failed(step, str(fault), fault)
        except Exception as error:
            # A stranger's tool may raise anything. That is no end of its use: its agent decides about that, too.
            logging.getLogger(__name__).exception("%s failed in %s", self.name, step.step_id)
            outcome = _failed(step, f"{self.name} broke: {type(error).__name__}: {error}", error)
        stage, name = step.stage_id if step.stage_id in bench.world.stages else None, step.work.executor
        decide = NeedToolDecision(agent_id=step.agent_id, task_id=step.task_id, stage_id=stage, tool_name=name)
        return evolve(outcome, intents=(*outcome.intents, decide))


def _failed(step: Step, why: str, fault: Exception) -> Outcome:
    """What nobody knows the cost of has cost what was reserved for it, if a model was asked."""
    known = getattr(fault, "spent", None)
    unknown = step.reserved if step.terms is not None and step.terms.effect == "model" else NOTHING
    return Outcome(state="failed", error=why, spent=unknown if known is None else known)
