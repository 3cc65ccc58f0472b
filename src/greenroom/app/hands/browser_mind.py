"""The model that leads a browser: that of the agent whose errand it is, asked within what is reserved for it."""

from __future__ import annotations

from typing import Final

from greenroom.abilities.skills.talk import voice
from greenroom.abilities.skills.talk.reply import Reply, answer
from greenroom.abilities.tools.browser_use import ACTIONS, Question, Thought
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.ports.executor import Bench, Live
from greenroom.core.ports.model import ChatMessage, Model, ModelRequest, Models
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.world import World

ANSWER: Final = 4096
"""Tokens of one answer at most: a move, or all that was found."""

WRITTEN: Final = 8
"""Of so many tokens that an errand may use one is reserved as written, which costs more than to read one."""

LEAST: Final = 20_000
"""Tokens without which an errand is not worth to begin."""

NO_MODEL: Final = "There is no model here to lead a browser."
ENOUGH: Final = (
    "What was reserved for the errand is used up. A person can give more: `tokens` below [browser] in their settings."
)


class ModelMind:
    """Asks `models`; one errand may use so many `tokens`, and what that many cost."""

    def __init__(self, models: Models | None, tokens: int) -> None:
        self._models = models
        self._tokens = tokens

    def terms(self, world: World, step: Step) -> Terms:
        """All that the errand may use is reserved before it begins; where limits leave less, as much as fits."""
        spec = world.agents[step.agent_id].spec
        model = self._model(spec)
        needs, priced = _needs(model, self._tokens)
        while needs.tokens > LEAST and not _fits(world, step, needs):
            needs, priced = _needs(model, max(LEAST, needs.tokens // 2))
        return Terms(effect="effectful", needs=needs, priced=priced, model=model.name, spec=spec.version)

    def calls(self, bench: Bench) -> bool:
        """Whether the model makes calls."""
        return self._model(bench.agent.spec).card.tools

    async def think(self, bench: Bench, question: Question) -> Thought:
        """Ask it, if the longest answer to this can be paid for."""
        model, spec = self._model(bench.agent.spec), bench.agent.spec
        request = _request(bench, model, spec, question)
        most = _most(model, request)
        if most.tokens > question.left.tokens or most.money > question.left.money:
            raise WorldFault(ENOUGH, spent=Amounts())
        try:
            reply: Reply = await answer(_Nobody(), model, request)
        except (ModelFault, WorldFault) as fault:
            fault.spent = most if fault.spent is None else fault.spent
            raise
        return Thought(calls=tuple(reply.calls), text=reply.text, spent=most if reply.spent is None else reply.spent)

    def _model(self, spec: AgentSpec) -> Model:
        if self._models is None:
            raise WorldFault(NO_MODEL)
        return voice.voice(self._models, spec)


def _needs(model: Model, tokens: int) -> tuple[Amounts, bool]:
    """So many tokens and what they cost; whether anybody knows that."""
    written = tokens // WRITTEN
    price = model.price(tokens - written, written)
    return Amounts(tokens=tokens, money=price or 0), price is not None


def _fits(world: World, step: Step, needs: Amounts) -> bool:
    """Whether the limits leave room for it now."""
    budgets = [world.budgets[name] for name in world.budgets_of(step.task_id, step.agent_id)]
    return not any(one.limits.exceeded_by(one.spent.plus(one.reserved).plus(needs)) for one in budgets)


class _Nobody:
    """What the model says on the way is not what the agent says: who watches sees the moves, which the tool prints."""

    def show(self, event: Live) -> None:
        """It is not shown."""


def _request(bench: Bench, model: Model, spec: AgentSpec, question: Question) -> ModelRequest:
    tools = ACTIONS if model.card.tools else ()
    return ModelRequest(
        purpose=voice.purpose(bench.step, bench.world.team.team_id, question.turn),
        messages=(
            ChatMessage(role="system", content=question.system),
            ChatMessage(role="user", content=question.seen),
        ),
        tools=tools,
        tool_choice="required" if tools else "auto",
        max_output=min(ANSWER, voice.longest(model, spec)),
        **voice.wishes(spec),
    )


def _most(model: Model, request: ModelRequest) -> Amounts:
    """What it costs at most: no token has less than a byte."""
    said = sum(len(one.content.encode()) for one in request.messages) + sum(one.size for one in request.tools)
    read = said + voice.OVERHEAD
    return Amounts(tokens=read + request.max_output, money=model.price(read, request.max_output) or 0)
