"""The skills `retrospect` and `keep_skill`: look back at finished work with the person, and keep what was learned.

Both come before the end of a task and never decide about it: a denied or failed step is passed over.
"""

from __future__ import annotations

import re
from typing import Final

from greenroom.abilities.skills.conversation_question import ConversationQuestion
from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.skill_library import OfferedSkill, SkillLibrary
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState

RETROSPECT: Final = "retrospect"
KEEP_SKILL: Final = "keep_skill"
_PROPOSAL: Final = re.compile(r"<skill>\s*name: *([^\n]+)\n\s*description:(.+?)\n---\n(.+?)</skill>", re.DOTALL)


class RetrospectSkill(ConversationQuestion):
    """Asks the person whether they are satisfied, then the model what can be learned. It may propose a skill."""

    type: StepType = "skill"
    name: str = RETROSPECT
    description: str = "Look back at the work with the person."

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms of a model call that waits for the person's answer."""
        question = PACK.render(state.agents[step.agent_id].spec.language, "satisfied", {})
        return evolve(super().terms(state, step), verdict="ask", words=True, question=question, digest=question)

    async def run(self, context: StepContext) -> Outcome:
        """Ask the model. Return its suggestions, and the step that offers its skill to the person."""
        said = _read_answer(context)
        try:
            answer = await self.ask(context, RETROSPECT, {"answer": said})
        except (ModelFault, WorldFault) as fault:  # what was learned is not worth failing finished work
            return Outcome(result={"satisfied": said, "skipped": str(fault)}, spent=context.step.reserved)
        proposed = _PROPOSAL.search(answer.reply.text)
        works = [_build_offer(*proposed.groups())] if proposed is not None else []
        return Outcome(
            result={**answer.reply.to_result(answer.asked), "satisfied": said},
            spent=answer.spent,
            intents=(QueueSteps(agent_id=context.step.agent_id, works=tuple(works), place="next"),) if works else (),
        )


def _build_offer(name: str, description: str, text: str) -> Work:
    name = re.sub(r"[^\w-]+", "-", name).strip("-_").lower()[:60] or "skill"
    content = {"name": name, "description": " ".join(description.split()), "text": text.strip()}
    return Work(type="skill", executor=KEEP_SKILL, intention=f"Keep the skill {name}.", instruction_content=content)


def _read_answer(context: StepContext) -> str:
    step = context.state.steps[context.step.step_id]
    approval = context.state.approvals.get(step.approval) if step.approval is not None else None
    return approval.reason if approval is not None else ""


class KeepSkill:
    """Shows a proposed skill to the person, and saves it if they agree."""

    type: StepType = "skill"
    name: str = KEEP_SKILL
    description: str = "Save a skill that the person agreed to."

    def __init__(self, library: SkillLibrary) -> None:
        self._library = library

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Require the person's consent to the whole text of the skill."""
        language = state.agents[step.agent_id].spec.language
        question = PACK.render(language, KEEP_SKILL, dict(step.work.instruction_content or {}))
        return StepTerms(effect="pure", verdict="ask", question=question, digest=question)

    async def run(self, context: StepContext) -> Outcome:
        """Save the skill. The step only starts if the person agrees."""
        content = {name: str(value) for name, value in (context.step.work.instruction_content or {}).items()}
        skill = OfferedSkill(name=content["name"], description=content["description"], text=content["text"])
        try:
            return Outcome(result={"kept": await self._library.save(skill)})
        except WorldFault as fault:
            return Outcome(state="failed", error=str(fault))
