"""All skills of conversing agents. They share roles and transcripts."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom.abilities.skills.compact import CompactSkill
from greenroom.abilities.skills.conversation import builtin_calls
from greenroom.abilities.skills.conversation.completion import strip_mark
from greenroom.abilities.skills.conversation.reply_interpreter import SAVE_MEMORY, SAVE_MEMORY_SKILL
from greenroom.abilities.skills.conversation.roles import Role, RoleFactory
from greenroom.abilities.skills.conversation.transcript import Transcripts
from greenroom.abilities.skills.conversation_question import ConversationQuestion
from greenroom.abilities.skills.converse import Converse
from greenroom.abilities.skills.filter_tools import FilterToolsSkill
from greenroom.abilities.skills.handoff import ChooseReceiverSkill, HandoffSummarySkill
from greenroom.abilities.skills.plan_task import PlanTaskSkill
from greenroom.abilities.skills.prompts.builder import render_notice
from greenroom.abilities.skills.retrospect import KeepSkill, RetrospectSkill
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Executor, Outcome, StepContext
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.ports.reply_reader import ReplyCall, ReplyReader
from greenroom.core.ports.skill_library import SkillLibrary
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.step import Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState


class SummarizeSkill(ConversationQuestion):
    """Asks for a summary of the work, and ends it."""

    type: StepType = "skill"
    name: str = "summarize"
    description: str = "Sum up work that is over, and end it."

    def find_wish(self, role: Role) -> str:
        """Return how the person wants the summary."""
        return role.spec.history.summary_prompt

    async def run(self, context: StepContext) -> Outcome:
        """Ask for the summary and end the work with it. If the spec requires proof, the work is verified first."""
        spec, answer = context.agent.spec, await self.ask(context, "summarize", {})
        text = strip_mark(answer.reply.text) or answer.last_text
        after: Consequence = builtin_calls.build_finish(context.step, text)
        if spec.proof:
            works = (builtin_calls.build_proof_step(spec.proof, text),)
            after = QueueSteps(agent_id=context.step.agent_id, works=works, place="next")
        return Outcome(result=answer.reply.to_result(answer.asked), spent=answer.spent, intents=(after,))


class SaveMemorySkill(ConversationQuestion):
    """Asks what is worth remembering, and saves it by the tool. What fails is passed over."""

    type: StepType = "skill"
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
            answer = await self.ask(context, SAVE_MEMORY_SKILL, {}, acts=True)
        except (ModelFault, WorldFault) as fault:
            return Outcome(result={"skipped": str(fault)}, spent=context.step.reserved)
        reply, role = answer.reply, answer.role
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
            result={**reply.to_result(answer.asked, call_answers=answers), "saved": len(saves)},
            spent=answer.spent,
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
