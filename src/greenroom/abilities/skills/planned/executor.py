"""A planned skill as a step runs it: build the prompt, call the model, read the answer, say what follows from it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from greenroom.abilities.skills.planned.answer import check, enclosed, strict, without_nulls
from greenroom.abilities.skills.planned.prompt import cut, messages
from greenroom.abilities.skills.planned.skill import (
    LETTERS,
    PACK,
    Answer,
    Meant,
    Moment,
    Skill,
    again,
    asked_by,
    asked_for,
    begun_by,
    repairs_of,
    use_guide,
)
from greenroom.abilities.skills.planned.windows import SHARE, summing_up
from greenroom.abilities.skills.talk import voice
from greenroom.abilities.skills.talk.reply import Reply, listen, refuse_filtered
from greenroom.abilities.skills.talk.transcript import BYTES_PER_TOKEN
from greenroom.core.base.amounts import NOTHING
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.ids import AgentId, TaskId
from greenroom.core.base.records import Data
from greenroom.core.base.text import is_heading, lowered, origins_of, underlines
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ChatMessage, Model, ModelRequest, Models
from greenroom.core.ports.reading import Datum, Misread
from greenroom.core.rules.agents import MEMORY
from greenroom.core.rules.intents import (
    Consequence,
    PostNote,
    QueueSteps,
    Remember,
    RemoveStep,
    SendMessage,
    UpdateStageAgentCompletion,
    UpdateStageAgentState,
)
from greenroom.core.rules.origins import people_of
from greenroom.core.state.origin import Labels, label, merged
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World

_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n")


def kept(said: str, known: str) -> str:
    """What is new in what the agent wants to keep, as it may stand in its memory; empty when nothing is."""
    old = {_bare(one) for one in _paragraphs(known)}
    lines = {_bare(line) for line in known.splitlines()}
    fresh: list[str] = []
    for one in _paragraphs(lowered(said)):
        new = "\n".join(line for line in one.splitlines() if _is_empty(line) or _bare(line) not in lines)
        if _bare(new) and _bare(one) not in old and not all(map(_is_empty, new.splitlines())):
            fresh.append(new.strip())
            old.add(_bare(one))
    text = "\n\n".join(fresh)
    while underlines(known, text):  # it would make a heading of what the agent knows last
        text = text.partition("\n")[2].lstrip()
    return text


def _paragraphs(text: str) -> list[str]:
    return [one.strip("\n") for one in _PARAGRAPHS.split(text) if one.strip()]


def _bare(text: str) -> str:
    return " ".join(text.split())


def _is_empty(line: str) -> bool:
    """Whether a line says nothing by itself."""
    return is_heading(line) or not line.strip()


SHOWN = 300
"""Characters of what somebody wanted that they are told when it could not be done."""

LEFT = frozenset({"init", "pending"})

Audience: TypeAlias = tuple[TaskId, tuple[AgentId, ...]]
"""Who is told something, and in which task."""


def succeeded(moment: Moment, skill: Skill, answer: Answer) -> Iterator[Consequence]:
    """The agent works, and keeps what it wants to keep."""
    yield from _note(moment, skill, "finished")
    member = moment.member
    if member is not None and member.state == "idle" and moment.stage is not None:
        yield UpdateStageAgentState(stage_id=moment.stage.stage_id, agent_id=member.agent_id, state="working")
    memory = kept(answer.memory, moment.agent.memory)
    if memory and not is_full(moment, answer):
        yield Remember(content=memory)


def is_full(moment: Moment, answer: Answer) -> bool:
    """Whether the agent wants to keep more than it can: then it is told, and not asked for the same again."""
    new = kept(answer.memory, moment.agent.memory)
    return bool(new) and len(moment.agent.memory) + len(new) > MEMORY


def unusable(moment: Moment, why: str) -> str:
    """What is wrong with a reply: as the model is told that is asked again; at last as people are told."""
    if not _is_last(moment):
        return why
    return PACK.render(moment.spec.language, "unusable", {"times": repairs_of(moment.step) + 1, "why": why})


def _is_last(moment: Moment) -> bool:
    return repairs_of(moment.step) >= moment.spec.turn.repairs


def misread(moment: Moment, skill: Skill, why: str) -> Iterator[Consequence]:
    """The same work once more, with what was wrong; at last it has failed."""
    if _is_last(moment):
        yield from failed(moment, skill, why)
        return
    yield QueueSteps(
        agent_id=moment.agent.agent_id,
        works=(again(moment.step, why),),
        place="next",
        stage_id=moment.stage.stage_id if moment.stage is not None else None,
    )


def failed(moment: Moment, skill: Skill, why: str) -> Iterator[Consequence]:
    """The agent has failed in its stage, and what it had planned there is not done. Whoever asked is told."""
    yield from _note(moment, skill, "failed")
    yield from _told(moment, why)
    member = moment.member
    if member is None or moment.stage is None:
        return
    # From the end: a tool step goes before the one that was to fill it in, which would take it along.
    for step in reversed(tuple(moment.world.steps_of(member.agent_id))):
        planned = step.thread_id == moment.step.thread_id and step.message_id is None and step.answers is None
        if planned and step.state in LEFT and step.step_id != moment.step.step_id:
            yield RemoveStep(step_id=step.step_id)
    stage, agent = moment.stage.stage_id, member.agent_id
    yield UpdateStageAgentCompletion(stage_id=stage, agent_id=agent, completion_summary=_words(moment, why))
    yield UpdateStageAgentState(stage_id=stage, agent_id=agent, state="failed")


def _words(moment: Moment, why: str) -> str:
    """How the agent says that it could not do it: what it was asked for in the words of whoever asked."""
    wanted = asked_for(begun_by(moment.step, moment.history)) or moment.step.work.intention
    return PACK.render(moment.spec.language, "failure", {"intention": cut(wanted, SHOWN), "why": why})


def _note(moment: Moment, skill: Skill, state: Literal["finished", "failed"]) -> Iterator[PostNote]:
    if moment.agent.agent_id in moment.group:
        content = PACK.render(moment.spec.language, "note", {"said": skill.said, "state": state})
        stage = moment.stage
        yield PostNote(task_id=moment.step.task_id, content=content, stage_id=stage.stage_id if stage else None)


def _told(moment: Moment, why: str) -> Iterator[SendMessage]:
    """Who waits for an answer gets this one. Outside of a stage, where nobody would see it: who asked, or people."""
    step = moment.step
    wait = moment.world.waits.get(step.answers) if step.answers is not None else None
    if wait is not None:
        heard: Audience | None = (wait.task_id, (wait.waiter,))
    else:
        heard = _asker(moment) or _people(moment) if moment.member is None else None
    if heard is None or moment.agent.agent_id in heard[1]:
        return
    yield SendMessage(
        task_id=heard[0],
        receiver=heard[1],
        message=_words(moment, why),
        return_waiting_id=step.answers if wait is not None else None,
        kind="response" if wait is not None else "notification",
    )


def _asker(moment: Moment) -> Audience | None:
    """Who wrote the message from which this came, if they want to hear. What an agent wrote only to be read is answered
    by nobody: two who cannot read would write to each other for ever."""
    first = begun_by(moment.step, moment.history)
    asker = asked_by(first)
    if asker is None or asker not in moment.group:
        return None
    if first.work.executor == LETTERS[0] and not people_of(moment.world, (asker,)):
        return None
    return moment.step.task_id, (asker,)


def _people(moment: Moment) -> Audience | None:
    """The people of the task, else of one that it is a part of: whoever wanted it is among them."""
    world, here = moment.world, moment.step.task_id
    for task in (world.tasks[one] for one in (here, *world.above(here)) if one in world.tasks):
        people = people_of(world, task.group) if moment.agent.agent_id in task.group else ()
        if people:
            return task.task_id, people
    return None


MEMORY_TAG: Final = "persistent_memory"


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
    return Answer(value=whole["answer"], memory=str(whole.get(MEMORY_TAG, "")), repaired=datum.repaired)


def _tagged(moment: Moment, skill: Skill, text: str, schema: Data) -> Answer:
    kind: Literal["text", "data"] = "text" if schema.get("type") == "string" else "data"
    blocks = moment.reader.tagged(text, {skill.tag: kind, MEMORY_TAG: "text"})
    if isinstance(blocks, Misread):
        raise ModelFault(blocks.why)
    bodies = blocks[skill.tag]
    if len(bodies) != 1:
        many = f"{len(bodies)} blocks" if bodies else "no block"
        raise ModelFault(
            f"Your reply has {many} <{skill.tag}>. Put the answer into one, and end it with </{skill.tag}>."
        )
    memory = "\n\n".join(blocks[MEMORY_TAG])
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
    """One of them, as a step runs it. `moment` makes what the skill knows of a world, a step, its agent and history."""

    type: StepType = "skill"

    def __init__(self, skill: Skill, models: Models, moment: Callable[..., Moment]) -> None:
        self._skill = skill
        self._models = models
        self._moment = moment
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
        asked = self._asked(self._moment(world=world, step=step, agent=agent, history=()), model)
        version = hashlib.sha256(asked.messages[0].content.encode()).hexdigest()[:12]
        return voice.terms(model, agent.spec, asked.size + _room(world, step, model), prompt=version)

    async def run(self, bench: Bench) -> Outcome:
        """Ask, and say what follows."""
        history = await bench.history()
        moment = self._moment(world=bench.world, step=bench.step, agent=bench.agent, history=history)
        model = voice.voice(self._models, moment.spec)
        asked = self._asked(moment, model)
        reply = Reply()
        tokens = asked.size // BYTES_PER_TOKEN
        bench.leave(lambda: Outcome(spent=reply.spent or voice.heard(model, tokens, moment.spec, reply.size)))
        try:
            if why := voice.too_much(model, asked.size):  # what no window can hold is not sent
                raise ModelFault(why, spent=NOTHING)
            await listen(bench, model, self._request(moment, model, asked), reply)
            refuse_filtered(reply, model)
        except ModelFault as fault:  # no model answers this: asking again is of no use
            return self._outcome(moment, reply, str(fault), failed(moment, self._skill, str(fault)), fault)
        try:
            return self._finished(moment, asked, reply, model)
        except ModelFault as fault:
            why = unusable(moment, str(fault))
            return self._outcome(moment, reply, why, misread(moment, self._skill, why), fault)

    def _finished(self, moment: Moment, asked: Asked, reply: Reply, model: Model) -> Outcome:
        if reply.cut_off:
            most = voice.longest(model, moment.spec)
            raise ModelFault(f"Your reply was cut off: you may write {most} tokens at once. Say it in less.")
        answer = read(moment, self._skill, reply.text, asked.schema, tags=asked.tags)
        meant = self._skill.meaning(moment, answer)
        if is_full(moment, answer):
            meant = replace(meant, more={**meant.more, "not_kept": FULL})
        first = summing_up(moment, model.card.window)
        intents = (*succeeded(moment, self._skill, answer), *meant.intents, *first)
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

    def _asked(self, moment: Moment, model: Model) -> Asked:
        schema = self._skill.shape(moment)
        closed = strict(schema) if model.card.strict else None
        structured = enclosed(closed) if closed is not None else None
        room = _room(moment.world, moment.step, model) if moment.history else 0
        told = messages(moment, self._skill, tags=structured is None, room=room)
        size = sum(len(one.content.encode()) for one in told)
        return Asked(messages=told, schema=schema, structured=structured, size=size)

    def _request(self, moment: Moment, model: Model, asked: Asked) -> ModelRequest:
        before = sum(one.work.executor == self.name for one in moment.history)
        return ModelRequest(
            purpose=voice.purpose(moment.step, moment.world.team.team_id, before + 1),
            messages=asked.messages,
            schema=asked.structured,
            max_output=voice.longest(model, moment.spec),
            **voice.wishes(moment.spec),
        )


def _room(world: World, step: Step, model: Model) -> int:
    """The bytes that the history of this step may take: what was said in its thread, with the words around it."""
    thread = world.threads.get(step.thread_id)
    size = 2 * thread.size + LINE if thread is not None else 0
    return min(size, int(SHARE * model.card.window) * BYTES_PER_TOKEN)


def _new(moment: Moment) -> Labels:
    """Where the words come from that it was told, as far as its conversation had not read from there before."""
    thread = moment.world.threads.get(moment.step.thread_id)
    servers = (name.split("__")[1] for name in moment.spec.tools if name in moment.tools and name.startswith(SERVERS))
    told = merged(
        merged(origins_of(moment.project), moment.agent.origins), (label("description", one) for one in servers)
    )
    return tuple(one for one in told if thread is None or one not in thread.origins)
