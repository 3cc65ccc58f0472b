"""converse: one model call of an agent that talks. What its reply asks for becomes the next steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from greenroom.abilities.skills.filter_tools import ALWAYS, chosen
from greenroom.abilities.skills.prompts.builder import PACK, say
from greenroom.abilities.skills.talk import endings, meaning, voice
from greenroom.abilities.skills.talk.cast import Cast, Role
from greenroom.abilities.skills.talk.meaning import Meaning, Situation
from greenroom.abilities.skills.talk.reply import Reply, listen
from greenroom.abilities.skills.talk.transcript import (
    BYTES_PER_TOKEN,
    Transcript,
    Transcripts,
    begins,
    origin,
    told_meanwhile,
)
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ChatMessage, Finished, Model, ModelRequest, Models, TextDelta, ToolSpec
from greenroom.core.ports.reading import Acted, Misread, Reader
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Step, StepType, Terms, Work
from greenroom.core.state.world import World

NUDGES: Final = 2
"""How often in a row an agent that answers nothing is asked again."""

FULL: Final = 0.75
"""How much of a model's window a conversation may take before it is summed up."""

CROWDED: Final = 0.95
"""How much of it is too much, if summing up has failed."""

TOO_LONG: Final = "it is longer than the model may write at once (`max_output`)"

PATIENCE: Final = 2
"""How often in a row summing up may fail."""


class Converse:
    """The default skill of a conversing agent. `tools` are what the house has; an agent is told of its own.

    With `solo` a plain answer ends the task of an agent that manages it: somebody asked, and that is the answer.
    `reader` understands agents that act in text; `project` is what the workspace says to whoever works there. An agent
    with more tools than `filter_above` is first asked which of them its task needs (0: never).
    """

    type: StepType = "skill"
    name: str = "converse"
    description: str = "Think about what was said and done, then act, write to somebody, or finish."

    def __init__(
        self,
        models: Models,
        tools: Sequence[ToolSpec] = (),
        *,
        solo: bool = False,
        reader: Reader | None = None,
        project: str = "",
        filter_above: int = 0,
        transcripts: Transcripts | None = None,
    ) -> None:
        self._models = models
        self._reader = reader
        self._filter_above = filter_above
        self._known = frozenset(tool.name for tool in tools).difference(ALWAYS)
        self.cast = Cast(tools, reader, solo=solo, project=project)
        self.transcripts = transcripts or Transcripts()

    def terms(self, world: World, step: Step) -> Terms:
        """What the request and the longest answer cost at most."""
        model = voice.voice(self._models, world.agents[step.agent_id].spec)
        role, thread = self.cast.role(world, step, model.card, chosen(world, step)), world.threads.get(step.thread_id)
        texts = [step.work.text_content, role.addon, *(thread.notices if thread else ())]
        size = role.size + sum(len(text.encode()) for text in texts) + (thread.size if thread else 0)
        return voice.terms(model, role.spec, size, prompt=role.version)

    async def run(self, bench: Bench) -> Outcome:
        """Ask the model and read what it wants."""
        model = voice.voice(self._models, bench.agent.spec)
        selected = chosen(bench.world, bench.step)
        if selected is None and 0 < self._filter_above < len(self._known.intersection(bench.agent.spec.tools)):
            return _put_off(bench, "filter_tools", "Choose the tools that are needed.", bench.step.work.text_content)
        role = self.cast.role(bench.world, bench.step, model.card, selected)
        team = bench.world.team.team_id
        transcript = self.transcripts.of(
            team, bench.step.thread_id, await bench.history(), native=role.native, language=role.spec.language
        )
        if not begins(bench.step) and told_meanwhile(bench.world, bench.step):
            return Outcome(result={"deferred": "told"})  # the next turn reads all of it
        transcript.at(bench.step)
        if transcript.returned is not None and not begins(bench.step):
            return self._returned(bench, role, transcript, transcript.returned)
        last = transcript.rounds >= (role.spec.turn.rounds or endings.CAP) or transcript.circles.ends
        newest = _newest(bench, role, transcript, last=last)
        first = _sum_up_first(bench, role, model, transcript, newest)
        if first is not None:
            return first
        request = ModelRequest(
            purpose=voice.purpose(bench.step, team, transcript.turns + 1),
            messages=(
                role.system,
                *transcript.messages,
                *([ChatMessage(role="user", content=newest)] if newest else []),
            ),
            tools=role.tools,
            tool_choice="none" if last and role.tools else "auto",
            schema=role.spec.answer if not model.card.tools else None,
            max_output=voice.longest(model, role.spec),
            **voice.wishes(role.spec),
        )
        reply = Reply()
        asked = transcript.tokens(role.size) + len(newest.encode()) // BYTES_PER_TOKEN
        bench.leave(lambda: _left(bench, reply, newest, voice.heard(model, asked, role.spec, reply.size)))
        await listen(bench, model, request, reply)
        if not reply.text and not reply.calls and not reply.cut_off and transcript.empty >= NUDGES:
            error = f"{model.name} answered nothing {transcript.empty + 1} times in a row."
            return Outcome(state="failed", error=error, spent=reply.spent or bench.step.reserved)
        meant = self._meant(self._situation(bench, role, transcript, last=last), role, reply)
        outcome = _outcome(bench, reply, meant, newest, transcript.circles.found)
        thread = bench.world.threads.get(bench.step.thread_id)
        new = tuple(one for one in role.origins if thread is None or one not in thread.origins)
        return evolve(outcome, origins=new)

    def _returned(self, bench: Bench, role: Role, transcript: Transcript, text: str) -> Outcome:
        """A tool has answered in the agent's place: that is the result, and its model is not asked."""
        reply = Reply()
        for event in (TextDelta(text=text), Finished()):
            bench.show(event)
            reply.take(event)
        here = self._situation(bench, replace(role, ends="text"), transcript, last=False)
        return evolve(_outcome(bench, reply, meaning.read(here, reply), ""), spent=NOTHING)

    def _meant(self, here: Situation, role: Role, reply: Reply) -> Meaning:
        """What the reply means; of an agent that acts in text, first what its text asks for."""
        if reply.cut_off:
            reply.only_words()
            return meaning.misread(here, TOO_LONG, PACK.render(role.spec.language, "cut_off", {}))
        if role.native or self._reader is None or not reply.text:
            return meaning.read(here, reply)
        ended = reply.finished is not None and reply.finished.reason in ("stop", "calls")
        found = self._reader.read(role.spec, reply.text, role.all_tools, role.others, ended=ended)
        if isinstance(found, Misread) and (found.sure or not here.misread):
            return meaning.misread(here, found.why)
        if not isinstance(found, Acted):
            return meaning.read(here, reply)
        reply.calls.append(evolve(found.call, call_id=here.step.step_id))
        meant = meaning.read(here, reply)
        if found.notes and meant.again is not None:
            meant.again = f"{found.notes}\n{meant.again}".strip()
        return meant

    def _situation(self, bench: Bench, role: Role, transcript: Transcript, *, last: bool) -> Situation:
        thread = bench.world.threads.get(bench.step.thread_id)
        return Situation(
            step=bench.step,
            role=role,
            alone=thread is None or thread.open_steps <= 1,
            last=last,
            circles=transcript.circles.found if transcript.circles.ends else None,
            nudges=transcript.nudges,
            misread=transcript.misread,
            told=told_meanwhile(bench.world, bench.step),
            reader=self._reader,
        )


def _sum_up_first(bench: Bench, role: Role, model: Model, transcript: Transcript, newest: str) -> Outcome | None:
    """A conversation that fills its window, or is to be kept short, is summed up before it goes on."""
    tokens = transcript.tokens(role.size) + len(newest.encode()) // BYTES_PER_TOKEN
    rounds, window = role.spec.history.summary_rounds, model.card.window
    if transcript.fresh < 2:
        error = voice.too_much(model, transcript.size + role.size + len(newest.encode()))
        return Outcome(state="failed", error=error) if error else None
    if not (tokens > FULL * window or 0 < rounds <= transcript.fresh):
        return None
    if transcript.stuck >= PATIENCE:
        error = f"The conversation does not fit into the window of {model.name} any more, and could not be summed up."
        return Outcome(state="failed", error=error) if tokens > CROWDED * window else None
    return _put_off(bench, "compact", "Sum up what was said.", newest)


def _put_off(bench: Bench, skill: str, intention: str, text: str) -> Outcome:
    """Another skill comes first; then this turn, with all that it was to say."""
    step = bench.step
    works = (
        Work(type="skill", executor=skill, intention=intention, text_content=text if skill != "compact" else ""),
        evolve(step.work, text_content=text, instruction_content=origin(bench.world, step)),
    )
    queued = QueueSteps(agent_id=step.agent_id, works=works, place="next")
    return Outcome(result={"deferred": skill}, intents=(queued,))


def _outcome(bench: Bench, reply: Reply, meant: Meaning, newest: str, circle: str | None = None) -> Outcome:
    """The reply as it is kept, and all it asks for. Work that cannot go on has failed, with the reason."""
    asked = None if newest == bench.step.work.text_content else newest
    return Outcome(
        state="failed" if meant.failed else "finished",
        error=meant.failed,
        result=reply.kept(
            asked,
            told=meant.told,
            misread=meant.misread,
            over=meant.signal.source if meant.signal else None,
            circles=circle,
        ),
        spent=bench.step.reserved if reply.spent is None else reply.spent,
        intents=meant.consequences(bench.step),
    )


def _left(bench: Bench, reply: Reply, newest: str, cost: Amounts) -> Outcome:
    """What stays of a reply that somebody interrupts: the words that were there to be read, and about what it cost."""
    reply.only_words()
    spent = cost if reply.spent is None else reply.spent
    if not reply.text.strip():
        return Outcome(spent=spent)
    return evolve(_outcome(bench, reply, Meaning(), newest), spent=spent)


def _newest(bench: Bench, role: Role, transcript: Transcript, *, last: bool) -> str:
    """What is new. After a tool's result nothing needs to be said."""
    thread = bench.world.threads.get(bench.step.thread_id)
    said = "\n".join((bench.step.work.text_content, *(thread.notices if thread else ()))).strip()
    limit = ""
    circle, ends = transcript.circles.found, transcript.circles.ends
    if circle is not None and (ends or not last):
        limit = PACK.render(role.spec.language, "circles", {"circle": circle, "ends": ends})
    elif last:
        limit = PACK.render(role.spec.language, "last_turn", {"rounds": transcript.rounds})
    extra = "\n\n".join(filter(None, (limit, role.addon)))
    # A turn that was put off to sum up has brought all of it along.
    newest = said if said.endswith(extra) else f"{said}\n\n{extra}".strip()
    before = transcript.messages
    speechless = not newest and (not before or before[-1].role == "assistant")
    return say(role.spec.language, "go_on") if speechless else newest
