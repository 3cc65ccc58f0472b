"""call_agent: the result of a native call of another agent. Asking is a message; here its answer is read."""

from __future__ import annotations

from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World


class CallAgent:
    """The rules fill the answer in, or why there is none, and let the step begin only then."""

    type: StepType = "tool"
    name: str = "call_agent"
    description: str = "Give work to another agent and get its answer."

    def terms(self, _: World, __: Step) -> Terms:
        """Free: the agent that was called has paid."""
        return Terms(effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """Hand the answer on."""
        given = bench.step.work.instruction_content or {}
        if "answer" in given:
            return Outcome(result={"output": str(given["answer"]), "from": given.get("agent_name", "")})
        return Outcome(state="failed", error=str(given.get("error", "Nobody was asked: see the next message.")))
