"""The skills `retrospect` and `keep_skill`: look back at finished work with the person, and keep what was learned.

Both come before the end of a task and never decide about it: a denied or failed step is passed over.
"""

from __future__ import annotations

import re
from typing import Final

from greenroom.abilities.skills.conversation import model_call
from greenroom.abilities.skills.conversation.reply import request_reply
from greenroom.abilities.skills.conversation.roles import RoleFactory
from greenroom.abilities.skills.conversation.transcript import Transcripts
from greenroom.abilities.skills.filter_tools import find_chosen_tools
from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ChatMessage, ModelRequest, Models
from greenroom.core.ports.skill_library import OfferedSkill, SkillLibrary
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState

RETROSPECT: Final = "retrospect"
KEEP_SKILL: Final = "keep_skill"
_PROPOSAL: Final = re.compile(
    r"<skill>\s*name:[ \t]*([^\n]+)\ndescription:[ \t]*([^\n]+)\n---\n(.+?)</skill>", re.DOTALL
)


class RetrospectSkill:
    """Asks the person whether they are satisfied, then the model what can be learned. It may propose a skill."""

    type: StepType = "skill"
    name: str = RETROSPECT
    description: str = "Look back at the work with the person."

    def __init__(self, models: Models, role_factory: RoleFactory, transcripts: Transcripts) -> None:
        self._models = models
        self._role_factory = role_factory
        self._transcripts = transcripts

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms of a model call that waits for the person's answer."""
        model = model_call.pick_model(self._models, state.agents[step.agent_id].spec)
        role = self._role_factory.get_role(state, step, model.card, find_chosen_tools(state, step))
        thread = state.threads.get(step.thread_id)
        terms = model_call.build_terms(model, role.spec, role.size + (thread.size if thread else 0))
        question = PACK.render(role.spec.language, "satisfied", {})
        return evolve(terms, verdict="ask", words=True, question=question, digest=question)

    async def run(self, context: StepContext) -> Outcome:
        """Ask the model. Return its suggestions, and the step that offers its skill to the person."""
        model, team = model_call.pick_model(self._models, context.agent.spec), context.state.team.team_id
        role = self._role_factory.get_role(
            context.state, context.step, model.card, find_chosen_tools(context.state, context.step)
        )
        transcript = self._transcripts.get(
            team, context.step.thread_id, await context.history(), native=role.is_native, language=role.spec.language
        )
        answer = _read_answer(context)
        asked = PACK.render(role.spec.language, RETROSPECT, {"answer": answer})
        request = ModelRequest(
            purpose=model_call.build_purpose(context.step, team, transcript.turns + 1),
            messages=(role.system, *transcript.messages, ChatMessage(role="user", content=asked)),
            tools=role.tools,
            tool_choice="none" if role.tools else "auto",
            max_output=model_call.find_max_output(model, role.spec),
            **model_call.build_request_options(role.spec),
        )
        try:
            reply = await request_reply(context, model, request)
        except (ModelFault, WorldFault) as fault:  # what was learned is not worth failing finished work
            return Outcome(result={"satisfied": answer, "skipped": str(fault)}, spent=context.step.reserved)
        proposed = _PROPOSAL.search(reply.text)
        works = [_build_offer(*proposed.groups())] if proposed is not None else []
        return Outcome(
            result={**reply.to_result(asked), "satisfied": answer},
            spent=context.step.reserved if reply.cost is None else reply.cost,
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
