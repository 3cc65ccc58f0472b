"""All skills of conversing agents. They share roles and transcripts."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom.abilities.skills.compact import CompactSkill
from greenroom.abilities.skills.conversation import builtin_calls, model_call
from greenroom.abilities.skills.conversation.completion import strip_mark
from greenroom.abilities.skills.conversation.reply import ModelReply, request_reply
from greenroom.abilities.skills.conversation.reply_interpreter import SAVE_MEMORY, SAVE_MEMORY_SKILL
from greenroom.abilities.skills.conversation.roles import Role, RoleFactory
from greenroom.abilities.skills.conversation.transcript import Transcripts
from greenroom.abilities.skills.converse import Converse
from greenroom.abilities.skills.filter_tools import FilterToolsSkill, find_chosen_tools
from greenroom.abilities.skills.handoff import ChooseReceiverSkill, HandoffSummarySkill
from greenroom.abilities.skills.plan_task import PlanTaskSkill
from greenroom.abilities.skills.prompts.builder import PACK, render_notice
from greenroom.abilities.skills.retrospect import KeepSkill, RetrospectSkill
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Executor, Outcome, StepContext
from greenroom.core.ports.model import ChatMessage, ModelRequest, Models, ToolSpec
from greenroom.core.ports.reply_reader import ReplyCall, ReplyReader
from greenroom.core.ports.skill_library import SkillLibrary
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.step import Step, StepTerms, StepType, Work
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

    async def ask(
        self, context: StepContext, prompt: str, wishes: Data, *, acts: bool = False
    ) -> tuple[str, ModelReply, Role, str]:
        """Ask in the conversation. Return the question, the reply, the role, and the last text before."""
        model, team = model_call.pick_model(self._models, context.agent.spec), context.state.team.team_id
        chosen = find_chosen_tools(context.state, context.step)
        role = self._role_factory.get_role(context.state, context.step, model.card, chosen)
        spec, history = role.spec, await context.history()
        transcript = self._transcripts.get(
            team, context.step.thread_id, history, native=role.is_native, language=spec.language
        )
        asked = PACK.render(spec.language, prompt, wishes)
        request = ModelRequest(
            purpose=model_call.build_purpose(context.step, team, transcript.turns + 1),
            messages=(role.system, *transcript.messages, ChatMessage(role="user", content=asked)),
            tools=role.tools,
            tool_choice="none" if role.tools and not acts else "auto",
            max_output=model_call.find_max_output(model, spec),
            **model_call.build_request_options(spec),
        )
        return asked, await request_reply(context, model, request), role, transcript.last_text

    async def run(self, context: StepContext) -> Outcome:
        """Ask for the summary and end the work with it. If the spec requires proof, the work is verified first."""
        spec = context.agent.spec
        asked, reply, _, last = await self.ask(context, "summarize", {"wish": spec.history.summary_prompt})
        text = strip_mark(reply.text) or last
        after: Consequence = builtin_calls.build_finish(context.step, text)
        if spec.proof:
            works = (builtin_calls.build_proof_step(spec.proof, text),)
            after = QueueSteps(agent_id=context.step.agent_id, works=works, place="next")
        return Outcome(
            result=reply.to_result(asked),
            spent=context.step.reserved if reply.cost is None else reply.cost,
            intents=(after,),
        )


class SaveMemorySkill(SummarizeSkill):
    """Asks in the same conversation what is worth remembering, and saves it by the tool. What fails is passed over."""

    name: str = SAVE_MEMORY_SKILL
    description: str = "Save what is worth remembering."

    def __init__(
        self, models: Models, role_factory: RoleFactory, transcripts: Transcripts, reader: ReplyReader | None
    ) -> None:
        super().__init__(models, role_factory, transcripts)
        self._reader = reader

    async def run(self, context: StepContext) -> Outcome:
        """Queue a step for each call of save_memory. Other calls are not made."""
        try:
            asked, reply, role, _ = await self.ask(context, SAVE_MEMORY_SKILL, {}, acts=True)
        except (ModelFault, WorldFault) as fault:
            return Outcome(result={"skipped": str(fault)}, spent=context.step.reserved)
        if self._reader is not None and not role.is_native:
            found = self._reader.read(role.spec, reply.text, role.all_tools, role.others, ended=True)
            reply.calls += [evolve(found.call, call_id=context.step.step_id)] if isinstance(found, ReplyCall) else []
        saves = [call for call in reply.calls if call.name == SAVE_MEMORY and not call.unread]
        refusal = render_notice(role.spec.language, "no_more")
        works = [
            Work(
                type="tool",
                executor=SAVE_MEMORY,
                intention="Save what is worth remembering.",
                instruction_content=call.arguments,
                call_id=call.call_id,
            )
            for call in saves
        ]
        queued = QueueSteps(agent_id=context.step.agent_id, works=tuple(works), place="next")
        answers = {call.call_id: refusal for call in reply.calls if call not in saves}
        return Outcome(
            result={**reply.to_result(asked, call_answers=answers), "saved": len(saves)},
            spent=context.step.reserved if reply.cost is None else reply.cost,
            intents=(queued,) if works else (),
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
    save_memory = SaveMemorySkill(models, converse.role_factory, converse.transcripts, reader)
    retrospect = RetrospectSkill(models, converse.role_factory, converse.transcripts)
    return (
        *(converse, CompactSkill(models), summarize, filter_tools, plan_task, *handoffs, CallAgentTool()),
        *(save_memory, EndWorkSkill(), *((retrospect, KeepSkill(skills)) if skills is not None else ())),
    )
