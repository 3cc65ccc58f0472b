"""Long-tail tools: after each call an agent that plans decides whether to go on. One that talks sees by itself."""

from __future__ import annotations

import logging

from greenroom.abilities.tools.wrapped import WrappedTool
from greenroom.core.base.amounts import NOTHING
from greenroom.core.base.errors import ModelFault, ProviderFault, StaleOwner, WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.rules.intents import NeedToolDecision
from greenroom.core.state.step import Step


def long_tail(tool: ToolExecutor) -> ToolExecutor:
    """The tool, with a decision behind each call if its card says so."""
    return LongTail(tool) if tool.card.long_tail else tool


class LongTail(WrappedTool):
    """A tool whose every result is judged, also that it failed."""

    async def run(self, bench: Bench) -> Outcome:
        """Call it; then its agent decides, if it is one that plans."""
        if not _plans(bench):
            return await super().run(bench)
        try:
            outcome = await super().run(bench)
        except (StaleOwner, ProviderFault):
            raise  # nothing came of it at all: it is made again, or somebody has to do something first
        except (ModelFault, WorldFault, OSError) as fault:
            outcome = _failed(bench.step, str(fault), fault)
        except Exception as error:
            # A stranger's tool may raise anything. That is no end of its use: its agent decides about that, too.
            logging.getLogger(__name__).exception("%s failed in %s", self.name, bench.step.step_id)
            outcome = _failed(bench.step, f"{self.name} broke: {type(error).__name__}: {error}", error)
        return evolve(outcome, intents=(*outcome.intents, _decide(bench)))


def _plans(bench: Bench) -> bool:
    """Whether the call was planned: a native one has its conversation to come back to."""
    spec = bench.agent.spec
    return spec.kind == "llm" and spec.style == "plan" and bench.step.work.call_id is None


def _failed(step: Step, why: str, fault: Exception) -> Outcome:
    """What nobody knows the cost of has cost what was reserved for it, if a model was asked."""
    known = getattr(fault, "spent", None)
    unknown = step.reserved if step.terms is not None and step.terms.effect == "model" else NOTHING
    return Outcome(state="failed", error=why, spent=unknown if known is None else known)


def _decide(bench: Bench) -> NeedToolDecision:
    step = bench.step
    stage = step.stage_id if step.stage_id in bench.world.stages else None
    return NeedToolDecision(agent_id=step.agent_id, task_id=step.task_id, stage_id=stage, tool_name=step.work.executor)
