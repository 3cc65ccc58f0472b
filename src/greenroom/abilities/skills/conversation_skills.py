"""All skills of conversing agents. They share roles and transcripts."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom.abilities.skills.compact import CompactSkill
from greenroom.abilities.skills.conversation import builtin_calls, model_call
from greenroom.abilities.skills.conversation.completion import strip_mark
from greenroom.abilities.skills.conversation.reply import request_reply
from greenroom.abilities.skills.conversation.roles import RoleFactory
from greenroom.abilities.skills.conversation.transcript import Transcripts
from greenroom.abilities.skills.converse import Converse
from greenroom.abilities.skills.filter_tools import FilterToolsSkill, find_chosen_tools
from greenroom.abilities.skills.handoff import ChooseReceiverSkill, HandoffSummarySkill
from greenroom.abilities.skills.plan_task import PlanTaskSkill
from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.abilities.skills.retrospect import KeepSkill, RetrospectSkill
from greenroom.core.ports.executor import Executor, Outcome, StepContext
from greenroom.core.ports.model import ChatMessage, ModelRequest, Models, ToolSpec
from greenroom.core.ports.reply_reader import ReplyReader
from greenroom.core.ports.skill_library import SkillLibrary
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.step import Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState


class SummarizeSkill:
    """Asks for a summary in the same conversation, so that nothing has to be repeated."""

    type: StepType = "skill"
    name: str = "summarize"
    description: str = "Sum up work that is over, and end it."

    def __init__(self, models: Models, role_factory: RoleFactory, transcripts: Transcripts) -> None:
        self._models = models
        self._role_factory = role_factory
        self._transcripts = transcripts

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms of a model call."""
        model = model_call.pick_model(self._models, state.agents[step.agent_id].spec)
        role = self._role_factory.get_role(state, step, model.card, find_chosen_tools(state, step))
        thread = state.threads.get(step.thread_id)
        size = role.size + len(role.spec.history.summary_prompt) + (thread.size if thread else 0)
        return model_call.build_terms(model, role.spec, size, prompt=role.version)

    async def run(self, context: StepContext) -> Outcome:
        """Ask for the summary and end the work with it. If the spec requires proof, the work is verified first."""
        model, team = model_call.pick_model(self._models, context.agent.spec), context.state.team.team_id
        role = self._role_factory.get_role(
            context.state, context.step, model.card, find_chosen_tools(context.state, context.step)
        )
        spec = role.spec
        transcript = self._transcripts.get(
            team, context.step.thread_id, await context.history(), native=role.is_native, language=spec.language
        )
        asked = PACK.render(spec.language, "summarize", {"wish": spec.history.summary_prompt})
        request = ModelRequest(
            purpose=model_call.build_purpose(context.step, team, transcript.turns + 1),
            messages=(role.system, *transcript.messages, ChatMessage(role="user", content=asked)),
            tools=role.tools,
            tool_choice="none" if role.tools else "auto",
            max_output=model_call.find_max_output(model, spec),
            **model_call.build_request_options(spec),
        )
        reply = await request_reply(context, model, request)
        text = strip_mark(reply.text) or transcript.last_text
        after: Consequence = builtin_calls.build_finish(context.step, text)
        if spec.proof:
            works = (builtin_calls.build_proof_step(spec.proof, text),)
            after = QueueSteps(agent_id=context.step.agent_id, works=works, place="next")
        return Outcome(
            result=reply.to_result(asked),
            spent=context.step.reserved if reply.cost is None else reply.cost,
            intents=(after,),
        )


class EndWorkSkill:
    """Ends work whose closing steps are done, whether they succeeded or not."""

    type: StepType = "skill"
    name: str = "end_work"
    description: str = "End work that is over."

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return free terms: no model is called."""
        return StepTerms(effect="pure")

    async def run(self, context: StepContext) -> Outcome:
        """End the task with what the agent said."""
        return Outcome(intents=(builtin_calls.build_finish(context.step, context.step.work.text_content),))


class CallAgentTool:
    """Returns the answer of another agent. The rules start the step only when the answer, or an error, is there."""

    type: StepType = "tool"
    name: str = "call_agent"
    description: str = "Give work to another agent and get its answer."

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return free terms: the called agent has paid."""
        return StepTerms(effect="pure")

    async def run(self, context: StepContext) -> Outcome:
        """Return the answer."""
        given = context.step.work.instruction_content or {}
        if "answer" in given:
            return Outcome(result={"output": str(given["answer"]), "from": given.get("agent_name", "")})
        return Outcome(state="failed", error=str(given.get("error", "No agent was asked: see the next message.")))


def build_conversation_skills(
    models: Models,
    tools: Sequence[ToolSpec] = (),
    *,
    solo: bool = False,
    reader: ReplyReader | None = None,
    project: str = "",
    filter_above: int = 0,
    transcripts: Transcripts | None = None,
    skills: SkillLibrary | None = None,
) -> tuple[Executor, ...]:
    """Build `converse` and the skills that it uses in long conversations and at the end. See `Converse` for the
    parameters."""
    converse = Converse(
        models,
        tools,
        solo=solo,
        reader=reader,
        project=project,
        filter_above=filter_above,
        transcripts=transcripts,
        skills=skills,
    )
    summarize = SummarizeSkill(models, converse.role_factory, converse.transcripts)
    handoffs = (HandoffSummarySkill(models, converse.role_factory, converse.transcripts), ChooseReceiverSkill(models))
    filter_tools, plan_task = FilterToolsSkill(models, tools, filter_above), PlanTaskSkill(models, reader)
    retrospect = RetrospectSkill(models, converse.role_factory, converse.transcripts)
    return (
        *(converse, CompactSkill(models), summarize, filter_tools, plan_task, *handoffs, CallAgentTool()),
        *(EndWorkSkill(), *((retrospect, KeepSkill(skills)) if skills is not None else ())),
    )
