"""Asking: what every skill of an agent that plans does. Build the prompt, call the model, read, say what follows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from greenroom.abilities.skills.planned import ends
from greenroom.abilities.skills.planned.parts import use_guide
from greenroom.abilities.skills.planned.schemas import check, enclosed, strict, without_nulls
from greenroom.abilities.skills.planned.sections import Page
from greenroom.abilities.skills.planned.skill import Answer, Meant, Moment, Skill
from greenroom.abilities.skills.planned.windows import SHARE, summing_up
from greenroom.abilities.skills.talk import voice
from greenroom.abilities.skills.talk.reply import Reply, listen, refuse_filtered
from greenroom.abilities.skills.talk.transcript import BYTES_PER_TOKEN
from greenroom.core.base.amounts import NOTHING
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.labelled import origins_of
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ChatMessage, Model, ModelRequest, Models, ToolSpec
from greenroom.core.ports.reading import AnswerReader, Datum, Misread
from greenroom.core.rules.intents import Consequence
from greenroom.core.state.origin import Labels, label, merged
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World

MEMORY: Final = "persistent_memory"


def read(moment: Moment, skill: Skill, text: str, schema: Data, *, tags: bool) -> Answer:
    """The answer in a reply; `ModelFault` says why there is none that can be used."""
    found = _tagged(moment, skill, text, schema) if tags else _structured(moment, text)
    found = replace(found, value=skill.tidied(found.value))
    check(moment, schema, found.value)
    if schema.get("type") == "string" and not str(found.value).strip():
        raise ModelFault("Your answer is empty.")
    return found


def _structured(moment: Moment, text: str) -> Answer:
    datum = _datum(moment, text, "Your reply")
    whole = without_nulls(datum.value)
    if not isinstance(whole, Mapping) or "answer" not in whole:
        raise ModelFault("Your reply is no JSON object with the field `answer`.")
    return Answer(value=whole["answer"], memory=str(whole.get(MEMORY, "")), repaired=datum.repaired)


def _tagged(moment: Moment, skill: Skill, text: str, schema: Data) -> Answer:
    kind: Literal["text", "data"] = "text" if schema.get("type") == "string" else "data"
    blocks = moment.reader.tagged(text, {skill.tag: kind, MEMORY: "text"})
    if isinstance(blocks, Misread):
        raise ModelFault(blocks.why)
    bodies = blocks[skill.tag]
    if len(bodies) != 1:
        many = f"{len(bodies)} blocks" if bodies else "no block"
        raise ModelFault(
            f"Your reply has {many} <{skill.tag}>. Put the answer into one, and end it with </{skill.tag}>."
        )
    memory = "\n\n".join(blocks[MEMORY])
    if kind == "text":
        return Answer(value=bodies[0], memory=memory)
    datum = _datum(moment, bodies[0], f"<{skill.tag}>")
    return Answer(value=datum.value, memory=memory, repaired=datum.repaired)


def _datum(moment: Moment, body: str, where: str) -> Datum:
    found = moment.reader.data(body)
    if isinstance(found, Misread):
        raise ModelFault(f"{where} cannot be used. {found.why}")
    return found


LINE: Final = 600
"""Bytes beside its texts that a step takes in a history."""

FULL: Final = "Your persistent memory is full: nothing more was kept."

SERVERS: Final = "mcp__"
"""How the names of tools begin that a server describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What all skills of a house share: its tools, how answers are read, and what the project says."""

    tools: Mapping[str, ToolSpec]
    skills: Mapping[str, Skill]
    reader: AnswerReader
    project: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it is made: `schema` is what the answer is held against, with `tags` it stands between them."""

    messages: tuple[ChatMessage, ...]
    schema: Data
    structured: Data | None
    size: int

    @property
    def tags(self) -> bool:
        """Whether the answer is text with tags; else it is JSON by itself."""
        return self.structured is None


class PlannedSkill:
    """One of them, as a step runs it."""

    type: StepType = "skill"

    def __init__(self, skill: Skill, models: Models, house: House) -> None:
        self._skill = skill
        self._models = models
        self._house = house
        self.name = skill.name

    @property
    def description(self) -> str:
        """When to use it."""
        return use_guide(self._skill)

    def terms(self, world: World, step: Step) -> Terms:
        """A model call. Of the history as much is reserved as it will be shown at most."""
        agent = world.agents[step.agent_id]
        if self._skill.order == "tool" and step.step_id not in world.steps:
            raise WorldFault(f"Nobody knows yet what {step.step_id!r} will fill in.")
        model = voice.voice(self._models, agent.spec)
        asked = self._asked(self._moment(world, step, ()), model)
        system = asked.messages[0].content
        version = hashlib.sha256(system.encode()).hexdigest()[:12]
        return voice.terms(model, agent.spec, asked.size + _room(world, step, model), prompt=version)

    async def run(self, bench: Bench) -> Outcome:
        """Ask, and say what follows."""
        moment = self._moment(bench.world, bench.step, await bench.history())
        model = voice.voice(self._models, moment.spec)
        asked = self._asked(moment, model)
        reply = Reply()
        tokens = asked.size // BYTES_PER_TOKEN
        bench.leave(lambda: Outcome(spent=reply.spent or voice.heard(model, tokens, moment.spec, reply.size)))
        try:
            _fits(model, asked)
            await listen(bench, model, self._request(moment, model, asked), reply)
            refuse_filtered(reply, model)
        except ModelFault as fault:  # no model answers this: asking again is of no use
            return self._outcome(moment, reply, str(fault), ends.failed(moment, self._skill, str(fault)), fault)
        try:
            return self._finished(moment, asked, reply, model)
        except ModelFault as fault:
            why = ends.unusable(moment, str(fault))
            return self._outcome(moment, reply, why, ends.misread(moment, self._skill, why), fault)

    def _finished(self, moment: Moment, asked: Asked, reply: Reply, model: Model) -> Outcome:
        if reply.cut_off:
            most = voice.longest(model, moment.spec)
            raise ModelFault(f"Your reply was cut off: you may write {most} tokens at once. Say it in less.")
        answer = read(moment, self._skill, reply.text, asked.schema, tags=asked.tags)
        meant = self._skill.meaning(moment, answer)
        if ends.is_full(moment, answer):
            meant = replace(meant, more={**meant.more, "not_kept": FULL})
        first = summing_up(moment, model.card.window)
        intents = (*ends.succeeded(moment, self._skill, answer), *meant.intents, *first)
        return self._outcome(moment, reply, "", intents, meant=meant)

    def _outcome(
        self,
        moment: Moment,
        reply: Reply,
        error: str,
        intents: Iterable[Consequence],
        fault: ModelFault | None = None,
        meant: Meant | None = None,
    ) -> Outcome:
        """What is kept: the parsed result under the skill's key beside the reply itself, which was paid for."""
        spent = reply.spent if reply.spent is not None else (fault.spent if fault is not None else None)
        found = {} if meant is None else {self._skill.key: meant.value, **meant.more}
        return Outcome(
            state="failed" if error else "finished",
            error=error,
            result={**reply.kept(), **found} if reply.text or found else None,
            spent=moment.step.reserved if spent is None else spent,
            intents=tuple(intents),
            origins=_new(moment),
        )

    def _moment(self, world: World, step: Step, history: Sequence[Step]) -> Moment:
        return Moment(
            world=world,
            step=step,
            agent=world.agents[step.agent_id],
            history=history,
            tools=self._house.tools,
            skills=self._house.skills,
            reader=self._house.reader,
            project=self._house.project,
        )

    def _asked(self, moment: Moment, model: Model) -> Asked:
        schema = self._skill.shape(moment)
        closed = strict(schema) if model.card.strict else None
        structured = enclosed(closed) if closed is not None else None
        room = _room(moment.world, moment.step, model) if moment.history else 0
        messages = Page(moment, self._skill, tags=structured is None, room=room).messages()
        size = sum(len(one.content.encode()) for one in messages)
        return Asked(messages=messages, schema=schema, structured=structured, size=size)

    def _request(self, moment: Moment, model: Model, asked: Asked) -> ModelRequest:
        before = sum(one.work.executor == self.name for one in moment.history)
        return ModelRequest(
            purpose=voice.purpose(moment.step, moment.world.team.team_id, before + 1),
            messages=asked.messages,
            schema=asked.structured,
            max_output=voice.longest(model, moment.spec),
            **voice.wishes(moment.spec),
        )


def _fits(model: Model, asked: Asked) -> None:
    """What no window can hold is not sent: the history has its share, but the step's own text is as long as it is."""
    why = voice.too_much(model, asked.size)
    if why:
        raise ModelFault(why, spent=NOTHING)


def _room(world: World, step: Step, model: Model) -> int:
    """The bytes that the history of this step may take: what was said in its thread, with the words around it."""
    thread = world.threads.get(step.thread_id)
    size = 2 * thread.size + LINE if thread is not None else 0
    return min(size, int(SHARE * model.card.window) * BYTES_PER_TOKEN)


def _new(moment: Moment) -> Labels:
    """Where the words come from that it was told, as far as its conversation had not read from there before."""
    thread = moment.world.threads.get(moment.step.thread_id)
    servers = (name.split("__")[1] for name in moment.may_use if name in moment.tools and name.startswith(SERVERS))
    told = merged(
        merged(origins_of(moment.project), moment.agent.origins), (label("description", one) for one in servers)
    )
    return tuple(one for one in told if thread is None or one not in thread.origins)
