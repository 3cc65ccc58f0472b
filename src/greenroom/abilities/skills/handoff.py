"""The skills of a hand-over: `handoff_summary` sums the work up for the next agent, `choose_receiver` chooses it."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom.abilities.skills.conversation import builtin_calls, model_call
from greenroom.abilities.skills.conversation.completion import strip_mark
from greenroom.abilities.skills.conversation.reply import request_reply
from greenroom.abilities.skills.conversation.roles import Role
from greenroom.abilities.skills.conversation.transcript import Transcript
from greenroom.abilities.skills.conversation_question import ConversationQuestion
from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import ModelFault, ProviderFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ChatMessage, Model, ModelRequest, Models
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.spec import AgentSpec, Handoff
from greenroom.core.state.step import Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState


def should_clear(policy: Handoff | None, transcript: Transcript, size: int) -> bool:
    """Return whether handing over empties this conversation, whose system prompt has `size` bytes."""
    if policy is None or not policy.clear:
        return False
    limits = (policy.clear_tokens, transcript.estimate_tokens(size)), (policy.clear_turns, transcript.turns + 1)
    return not any(limit for limit, _ in limits) or any(0 < limit <= count for limit, count in limits)


async def _ask(context: StepContext, model: Model, request: ModelRequest) -> tuple[str, Amounts, str]:
    """Return the reply, its cost, and why there is none. The hand-over never fails with the question about it."""
    try:
        reply = await request_reply(context, model, request)
    except (ModelFault, ProviderFault) as fault:
        return "", context.step.reserved if fault.spent is None else fault.spent, str(fault)
    return strip_mark(reply.text).strip(), context.step.reserved if reply.cost is None else reply.cost, ""


class HandoffSummarySkill(ConversationQuestion):
    """Asks the sender's model, in its conversation, to sum up the work. Without an answer the summary is empty."""

    type: StepType = "skill"
    name: str = builtin_calls.HANDOFF_SUMMARY_SKILL
    description: str = "Sum up the work for the agent that goes on with it."

    def find_wish(self, role: Role) -> str:
        """Return the team's own words for the question."""
        return role.spec.handoff.summary_prompt if role.spec.handoff is not None else ""

    async def run(self, context: StepContext) -> Outcome:
        """Ask for the summary, and send the message with it."""
        step, given = context.step, context.step.work.instruction_content or {}
        try:
            answer = await self.ask(context, builtin_calls.HANDOFF_SUMMARY_SKILL, {})
            summary, spent, why = strip_mark(answer.reply.text).strip(), answer.spent, ""
        except (ModelFault, ProviderFault) as fault:
            summary, spent, why = "", step.reserved if fault.spent is None else fault.spent, str(fault)
        message = builtin_calls.build_handoff(step, given, summary, clear=bool(given.get("clear")))
        return Outcome(result={"summary": summary, "why": why}, spent=spent, intents=(message,))


class ChooseReceiverSkill:
    """Asks a model which agent goes on, if a message names none. An unusable answer means the main agent."""

    type: StepType = "skill"
    name: str = builtin_calls.CHOOSE_RECEIVER_SKILL
    description: str = "Choose the agent that goes on, for a message without a receiver."

    def __init__(self, models: Models) -> None:
        self._models = models

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms of a model call that reads the message and the list of agents."""
        spec = state.agents[step.agent_id].spec
        size = len(_render_choice(state, step, spec).encode())
        return model_call.build_terms(model_call.pick_model(self._models, spec), spec, size)

    async def run(self, context: StepContext) -> Outcome:
        """Ask for the receiver; then the summary or the message itself follows."""
        step, spec, state = context.step, context.agent.spec, context.state
        model = model_call.pick_model(self._models, spec)
        request = ModelRequest(
            purpose=model_call.build_purpose(step, state.team.team_id, step.ordinal),
            messages=(ChatMessage(role="user", content=_render_choice(state, step, spec)),),
            max_output=model_call.find_max_output(model, spec),
        )
        answer, spent, why = await _ask(context, model, request)
        names = [member.name for member in _list_others(state, step)]
        routing = state.tasks[step.task_id].routing
        chosen = find_named(answer, names) or (routing.main if routing is not None else "")
        result = {"chosen": chosen, "answer": answer, "why": why}
        arguments: Data = {**(step.work.instruction_content or {}), "receiver": chosen}
        policy, clear = spec.handoff or Handoff(), bool(arguments.get("clear"))
        follows: Consequence | Work = builtin_calls.plan_handoff(step, policy, arguments, clear=clear)
        if chosen not in names:  # the main agent itself did not say whom it means
            text = PACK.render(spec.language, "no_receiver", {"names": ", ".join(names)})
            follows = Work(type="skill", executor="converse", text_content=text)
        if isinstance(follows, Work):
            follows = QueueSteps(agent_id=step.agent_id, works=(follows,), place="next")
        return Outcome(result=result, spent=spent, intents=(follows,))


def find_named(answer: str, names: Sequence[str]) -> str:
    """Return the one name that the answer consists of or holds; empty if there is none, or more than one."""
    bare = answer.strip().strip("`'\"*. ")
    if bare in names:
        return bare
    words = set(answer.replace("`", " ").replace(",", " ").replace(".", " ").split())
    found = [name for name in names if name in words]
    return found[0] if len(found) == 1 else ""


def _list_others(state: TeamState, step: Step) -> list[AgentSpec]:
    routing = state.tasks[step.task_id].routing
    return [member for member in routing.members if member.name != step.agent_id] if routing is not None else []


def _render_choice(state: TeamState, step: Step, spec: AgentSpec) -> str:
    others = [
        {"name": other.name, "description": other.description or other.role} for other in _list_others(state, step)
    ]
    message = builtin_calls.read_text(step.work.instruction_content or {}, "message")
    return PACK.render(spec.language, "choose_receiver", {"others": others, "message": message})
