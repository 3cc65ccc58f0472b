"""A question to the model of an agent in its conversation, so that nothing has to be repeated."""

from __future__ import annotations

from dataclasses import dataclass

from greenroom.abilities.skills.conversation import model_call
from greenroom.abilities.skills.conversation.reply import ModelReply, request_reply
from greenroom.abilities.skills.conversation.roles import Role, RoleFactory
from greenroom.abilities.skills.conversation.transcript import Transcripts
from greenroom.abilities.skills.filter_tools import find_chosen_tools
from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import StepContext
from greenroom.core.ports.model import ChatMessage, ModelRequest, Models
from greenroom.core.state.step import Step, StepTerms
from greenroom.core.state.team_state import TeamState


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to the question `asked`. `last_text` is what the agent said before it."""

    asked: str
    reply: ModelReply
    role: Role
    last_text: str
    spent: Amounts


class ConversationQuestion:
    """The part that skills have in common which ask such a question."""

    def __init__(self, models: Models, role_factory: RoleFactory, transcripts: Transcripts) -> None:
        self._models = models
        self._role_factory = role_factory
        self._transcripts = transcripts

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms of a model call that reads the conversation once more."""
        spec = state.agents[step.agent_id].spec
        model = model_call.pick_model(self._models, spec)
        role = self._role_factory.get_role(state, step, model.card, find_chosen_tools(state, step))
        thread, wish = state.threads.get(step.thread_id), self.find_wish(role)
        size = role.size + len(wish.encode()) + (thread.size if thread else 0)
        return model_call.build_terms(model, role.spec, size, prompt=role.version)

    def find_wish(self, _: Role) -> str:
        """Return the words of a person about the answer, empty for none."""
        return ""

    async def ask(self, context: StepContext, prompt: str, variables: Data, *, acts: bool = False) -> Answer:
        """Ask in the conversation. With `acts` the agent may call its tools. Raise `ModelFault` or `ProviderFault`."""
        step, model = context.step, model_call.pick_model(self._models, context.agent.spec)
        role = self._role_factory.get_role(context.state, step, model.card, find_chosen_tools(context.state, step))
        spec, team, history = role.spec, context.state.team.team_id, await context.history()
        transcript = self._transcripts.get(team, step.thread_id, history, native=role.is_native, language=spec.language)
        asked = PACK.render(spec.language, prompt, {"wish": self.find_wish(role), **variables})
        request = ModelRequest(
            purpose=model_call.build_purpose(step, team, transcript.turns + 1),
            messages=(role.system, *transcript.messages, ChatMessage(role="user", content=asked)),
            tools=role.tools,
            tool_choice="none" if role.tools and not acts else "auto",
            max_output=model_call.find_max_output(model, spec),
            **model_call.build_request_options(spec),
        )
        reply = await request_reply(context, model, request)
        spent = step.reserved if reply.cost is None else reply.cost
        return Answer(asked=asked, reply=reply, role=role, last_text=transcript.last_text, spent=spent)
