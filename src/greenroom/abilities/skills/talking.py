"""All skills of agents that talk, made for one another: they share who is who and what was said."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom.abilities.skills.compact import Compact
from greenroom.abilities.skills.converse import Converse
from greenroom.abilities.skills.filter_tools import FilterTools, chosen
from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.abilities.skills.talk import own, voice
from greenroom.abilities.skills.talk.cast import Cast
from greenroom.abilities.skills.talk.endings import without_mark
from greenroom.abilities.skills.talk.reply import answer
from greenroom.abilities.skills.talk.transcript import Transcripts
from greenroom.core.ports.executor import Bench, Executor, Outcome
from greenroom.core.ports.model import ChatMessage, ModelRequest, Models, ToolSpec
from greenroom.core.ports.reading import Reader
from greenroom.core.rules.intents import Consequence, QueueSteps
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
        after: Consequence = own.ended(bench.step, text)
        if spec.proof:
            works = (own.proving(spec.proof, text),)
            after = QueueSteps(agent_id=bench.step.agent_id, works=works, place="next")
        return Outcome(
            result=reply.kept(asked),
            spent=bench.step.reserved if reply.spent is None else reply.spent,
            intents=(after,),
        )


class CallAgent:
    """The rules fill the answer in, or why there is none, and let the step begin only then."""

    type: StepType = "tool"
    name: str = "call_agent"
    description: str = "Give work to another agent and get its answer."

    def terms(self, _: World, __: Step) -> Terms:
        """Free: the agent that was called has paid."""
        return Terms(effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """Hand the answer on."""
        given = bench.step.work.instruction_content or {}
        if "answer" in given:
            return Outcome(result={"output": str(given["answer"]), "from": given.get("agent_name", "")})
        return Outcome(state="failed", error=str(given.get("error", "Nobody was asked: see the next message.")))


def talking(
    models: Models,
    tools: Sequence[ToolSpec] = (),
    *,
    solo: bool = False,
    reader: Reader | None = None,
    project: str = "",
    filter_above: int = 0,
    transcripts: Transcripts | None = None,
) -> tuple[Executor, ...]:
    """`converse`, and what follows from it in a long talk and at its end. See `Converse` for what is given."""
    converse = Converse(
        models,
        tools,
        solo=solo,
        reader=reader,
        project=project,
        filter_above=filter_above,
        transcripts=transcripts,
    )
    summarize = Summarize(models, converse.cast, converse.transcripts)
    return (converse, Compact(models), summarize, FilterTools(models, tools, filter_above), CallAgent())
