"""summarize: the last word of an agent whose work ends with a summary."""

from __future__ import annotations

from greenroom.abilities.skills.filter_tools import chosen
from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.abilities.skills.talk import own, voice
from greenroom.abilities.skills.talk.cast import Cast
from greenroom.abilities.skills.talk.endings import without_mark
from greenroom.abilities.skills.talk.reply import answer
from greenroom.abilities.skills.talk.transcript import Transcripts
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ChatMessage, ModelRequest, Models
from greenroom.core.rules.intents import Consequence, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World


class Summarize:
    """Asks for the summary in the same conversation, so that nothing has to be told again."""

    type: StepType = "skill"
    name: str = "summarize"
    description: str = "Sum up work that is over, and end it."

    def __init__(self, models: Models, cast: Cast, transcripts: Transcripts) -> None:
        self._models = models
        self._cast = cast
        self._transcripts = transcripts

    def terms(self, world: World, step: Step) -> Terms:
        """A model call."""
        model = voice.voice(self._models, world.agents[step.agent_id].spec)
        role, thread = self._cast.role(world, step, model.card, chosen(world, step)), world.threads.get(step.thread_id)
        size = role.size + len(role.spec.history.summary_prompt) + (thread.size if thread else 0)
        return voice.terms(model, role.spec, size, prompt=role.version)

    async def run(self, bench: Bench) -> Outcome:
        """Ask, and end the work with what is said. Where the house has the last word, that is judged first: it is what
        the person reads."""
        model, team = voice.voice(self._models, bench.agent.spec), bench.world.team.team_id
        role = self._cast.role(bench.world, bench.step, model.card, chosen(bench.world, bench.step))
        spec = role.spec
        talk = self._transcripts.of(
            team, bench.step.thread_id, await bench.history(), native=role.native, language=spec.language
        )
        asked = PACK.render(spec.language, "summarize", {"wish": spec.history.summary_prompt})
        request = ModelRequest(
            purpose=voice.purpose(bench.step, team, talk.turns + 1),
            messages=(role.system, *talk.messages, ChatMessage(role="user", content=asked)),
            tools=role.tools,
            tool_choice="none" if role.tools else "auto",
            max_output=voice.longest(model, spec),
            **voice.wishes(spec),
        )
        reply = await answer(bench, model, request)
        text = without_mark(reply.text) or talk.last_words
        return Outcome(
            result=reply.kept(asked),
            spent=bench.step.reserved if reply.spent is None else reply.spent,
            intents=(_after(bench.step, spec, text),),
        )


def _after(step: Step, spec: AgentSpec, text: str) -> Consequence:
    if not spec.proof:
        return own.ended(step, text)
    return QueueSteps(agent_id=step.agent_id, works=(own.proving(spec.proof, text),), place="next")
