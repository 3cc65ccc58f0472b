"""ask_user: a question to a person. The step waits for the answer as it waits for a yes: for days, if need be."""

from __future__ import annotations

from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World

DESCRIPTION = (
    "Ask the person you work for, and wait for the answer. Use it for what only they can know or decide, with as few "
    "questions as possible, all at once; not for what you can find out yourself, nor to report. "
    'Example: ask_user(question="Which database is this for: PostgreSQL or SQLite?")'
)
PARAMETERS: Data = {
    "type": "object",
    "properties": {"question": {"type": "string", "description": "With all that is needed to answer it."}},
    "required": ["question"],
    "additionalProperties": False,
}


class AskUser:
    """The question is asked by the house before the step starts, so the step only has to read the answer."""

    type: StepType = "tool"
    name: str = "ask_user"
    description: str = DESCRIPTION

    def __init__(self) -> None:
        spec = ToolSpec(name=self.name, description=DESCRIPTION, parameters=PARAMETERS, pure=True)
        self.card = ToolCard(spec=spec, group="human", effect="pure")

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """Nothing is touched."""
        return ()

    def terms(self, world: World, step: Step) -> Terms:
        """A person must answer first."""
        question = str((step.work.instruction_content or {}).get("question", "")).strip()
        return Terms(effect="pure", verdict="ask", words=True, question=question, digest=question)

    async def run(self, bench: Bench) -> Outcome:
        """Their words."""
        step = bench.world.steps[bench.step.step_id]
        approval = bench.world.approvals.get(step.approval) if step.approval is not None else None
        if approval is None or not approval.reason:
            return Outcome(state="failed", error="Nobody has answered.")
        return Outcome(result={"output": approval.reason, "by": approval.answered_by})
