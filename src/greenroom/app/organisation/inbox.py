"""What people are told and asked: letters, which they owe an answer to, notices, and their conversation pool.

A letter is a message to a person that needs a reply: a question, a duty in a stage, or a step that waits for a yes.
Letters are counted for the whole organisation, so that one number means the same to everybody; the state has the
numbers of those that are open, so the archive is not read.

At the end: how an organisation stands, and all its states in MAS's words.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias, cast, get_args

from greenroom.actors.payload import made_whole
from greenroom.app.messages import MESSAGES, phrase
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import Standing, standing
from greenroom.app.toolset.redaction import Redaction
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.ids import AgentId, ApprovalId, GroupId, StageId, SubtaskId, TaskId, TeamId, WaitingId
from greenroom.core.base.records import record, whole
from greenroom.core.rules.origins import ABOUT
from greenroom.core.state.knowledge import Note
from greenroom.core.state.message import Message
from greenroom.core.state.portrait import Portrait, agent_state, plain, portray_stage, portray_step, portray_task
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from greenroom.core.state.world import World

Kind: TypeAlias = Literal["question", "duty", "stage", "approval"]


@record
class Letter:
    """What a person is asked. `waiting` is the id that an answer returns, where the sender does nothing until then."""

    number: int
    message: Message
    kind: Kind
    waiting: WaitingId | None = None

    @property
    def stage(self) -> StageId | None:
        """The stage that it is about; of a manager who is asked how to go on, the one that has ended."""
        if self.kind == "stage":
            return StageId(_about(self.message, "stage_id"))
        return None if self.message.stage_relative == "no_relative" else StageId(self.message.stage_relative)


def kind_of(message: Message) -> Kind:
    """What kind of answer is wanted."""
    data = message.data or {}
    if "approval_id" in data:
        return "approval"
    if "subtask_id" in data:
        return "duty"
    return "stage" if "stage_id" in data else "question"


def approval_of(message: Message) -> ApprovalId:
    """The question about a step that a letter is."""
    return ApprovalId(_about(message, "approval_id"))


def subtask_of(message: Message) -> SubtaskId:
    """The duty that a letter is."""
    return SubtaskId(_about(message, "subtask_id"))


def _about(message: Message, name: str) -> str:
    return str((message.data or {}).get(name, ""))


def waiting_of(message: Message, person: AgentId) -> WaitingId | None:
    """The id that this receiver is to return; None when no agent waits for them."""
    if message.waiting is None or person not in message.receiver:
        return None
    return message.waiting[message.receiver.index(person)]


def owed(world: World, person: AgentId) -> tuple[Letter, ...]:
    """What this person owes an answer to, the oldest first; also every step that waits for a yes, of any person."""
    found = (
        Letter(number=number, message=mail, kind=kind_of(mail), waiting=waiting_of(mail, person))
        for mail, number in ((mail, world.letters[mail.message_id]) for mail in world.mail.values())
        if person in mail.receiver or kind_of(mail) == "approval"
    )
    return tuple(sorted(found, key=lambda letter: letter.number))


def notices(message: Message, person: AgentId, language: str) -> tuple[str, ...]:
    """What this person is told because of a message to them; nothing for one that only says something."""
    if person not in message.receiver or message.group is not None:
        return ()
    data, kind, waiting = message.data or {}, kind_of(message), waiting_of(message, person)
    table, names = "notices", [kind] if kind != "question" else ["reply"] if waiting is None else ["reply", "priority"]
    if message.kind == "instruction":
        table, names = "instructions", [str(data.get("instruction", ""))]
        if names[0] not in MESSAGES.table(table, language):
            return ()
    elif not message.need_reply:
        return ()
    state = str(data.get("state", ""))
    known = {
        "sender": message.sender_id,
        "task": data.get("task_id", message.task_id),
        "stage": data.get("stage_id", message.stage_relative),
        "state": MESSAGES.table("states", language).get(state, state),
        "text": data.get(ABOUT, message.message),
        "waiting": waiting,
    }
    return tuple(phrase(table, name, language, **known) for name in names)


STAMP: Final = "%Y-%m-%d %H:%M:%S"


@record
class GroupWord:
    """What was said in a group."""

    sender_id: str
    content: str
    timestamp: str


@record
class GroupTalk:
    """A group of people, and what was said there."""

    group_id: str
    participants: tuple[str, ...]
    messages: tuple[GroupWord, ...] = ()


@record
class Private:
    """What was said between this person and another agent, by either of them."""

    sender_id: str
    content: str
    stage_relative: str
    timestamp: str
    need_reply: bool
    waiting: str | None
    return_waiting_id: str | None


@record
class Pool:
    """All of it. Private talks are by the other's id."""

    conversation_groups: tuple[GroupTalk, ...]
    conversation_privates: dict[str, tuple[Private, ...]]
    global_messages: tuple[str, ...]

    @property
    def portrait(self) -> Portrait:
        """The same as JSON can hold it."""
        groups = [{**whole(talk), "messages": [*map(whole, talk.messages)]} for talk in self.conversation_groups]
        privates = {name: [*map(whole, said)] for name, said in self.conversation_privates.items()}
        fields = {**whole(self), "conversation_groups": groups, "conversation_privates": privates}
        return cast("Portrait", plain(fields))


def pool_of(world: World, messages: Iterable[Message], person: AgentId, language: str) -> Pool:
    """What this person knows of all these messages."""
    heard = [message for message in messages if message.sender_id == person or person in message.receiver]
    privates: dict[str, list[Private]] = {}
    for message in heard:
        for other, said in _private(message, person) if message.group is None else ():
            privates.setdefault(other, []).append(said)
    return Pool(
        conversation_groups=tuple(_groups(world, heard, person)),
        conversation_privates={other: tuple(said) for other, said in privates.items()},
        global_messages=tuple(notice for message in heard for notice in notices(message, person, language)),
    )


def stamp(at: int) -> str:
    """A moment as people read it, where they are."""
    return time.strftime(STAMP, time.localtime(at / 1000))


def _private(message: Message, person: AgentId) -> Iterator[tuple[str, Private]]:
    """The message as it stands in the talk with each other agent. One that is sent to several is in all of them."""
    others = [(message.sender_id, person)]
    if message.sender_id == person:
        others = [(name, name) for name in message.receiver if name != person]
    for other, receiver in others:
        entry = Private(
            sender_id=message.sender_id,
            content=message.message,
            stage_relative=message.stage_relative,
            timestamp=stamp(message.sent_at),
            need_reply=message.need_reply,
            waiting=waiting_of(message, receiver),
            return_waiting_id=message.return_waiting_id,
        )
        yield other, entry


def _groups(world: World, heard: Iterable[Message], person: AgentId) -> Iterator[GroupTalk]:
    """Those that the person takes part in, with what was said while they did; also those that are over."""
    joined = sorted(name for name, group in world.groups.items() if person in group.participants)
    said: dict[GroupId, list[Message]] = {name: [] for name in joined}
    for message in heard:
        if message.group is not None:
            said.setdefault(message.group, []).append(message)
    for name, words in said.items():
        yield GroupTalk(
            group_id=name,
            participants=_participants(world, name, words),
            messages=tuple(
                GroupWord(sender_id=word.sender_id, content=word.message, timestamp=stamp(word.sent_at))
                for word in words
            ),
        )


def _participants(world: World, name: GroupId, words: list[Message]) -> tuple[str, ...]:
    """Who takes part; of a group that is over, those people who were told the last thing that was said there."""
    if name in world.groups:
        return world.groups[name].participants
    last = words[-1]
    people = (who for who in last.receiver if who in world.agents and world.agents[who].spec.kind == "human")
    return (last.sender_id, *people)


StateType: TypeAlias = Literal["task", "stage", "agent", "step"]
States: TypeAlias = Mapping[str, Portrait]
TYPES: Final[tuple[StateType, ...]] = get_args(StateType)
WORST: Final = ("working", "provider", "limit", "paused", "waiting")


def at_rest(world: World) -> Standing:
    """How it stands: works, stands still for want of something (and why), waits for a person, or has nothing to do."""
    found = [stands for task in world.tasks if (stands := standing(world, task)) is not None]
    found = [stands for stands in found if stands.word in WORST]
    return min(found, key=lambda stands: WORST.index(stands.word), default=Standing(word="idle"))


async def states(runtime: Runtime, team: TeamId, kind: str, *, secrets: Iterable[str] = ()) -> States:
    """The states of one type by their ids, open and over. `secrets` are left out everywhere."""
    match kind:
        case "task":
            found = await _tasks(runtime, team)
        case "stage":
            found = {stage.stage_id: portray_stage(stage) for stage in await _stages(runtime, team)}
        case "agent":
            found = await _agents(runtime, team)
        case "step":
            found = {step.step_id: portray_step(step) for step in await _steps(runtime, team)}
        case _:
            why = f"There are no states of type {kind!r}."
            raise Refused(Rejected(code="unknown_type", why=why, hint=f"There are: {', '.join(TYPES)}."))
    return serialised(found, secrets)


def serialised(found: States, secrets: Iterable[str] = ()) -> States:
    """The same as JSON can hold it, without secrets."""
    redaction = Redaction(secrets)
    safe = {name: cast("Portrait", plain(fields)) for name, fields in found.items()}
    return {name: dict(redaction.data(fields)) for name, fields in safe.items()} if redaction else safe


async def _tasks(runtime: Runtime, team: TeamId) -> dict[str, Portrait]:
    world, stages = await runtime.world(team), defaultdict[TaskId, list[Stage]](list)
    notes: defaultdict[TaskId, list[Note]] = defaultdict(list)
    for stage in await _stages(runtime, team):
        stages[stage.task_id].append(stage)
    async for note in runtime.archive(team, "note"):
        if isinstance(note, Note):
            notes[note.task_id].append(note)
    tasks = [*await runtime.ended_tasks(team), *world.tasks.values()]
    return {
        task.task_id: portray_task(task, stages[task.task_id], notes[task.task_id])
        for task in sorted(tasks, key=lambda task: _ordinal(task.task_id))
    }


async def _stages(runtime: Runtime, team: TeamId) -> list[Stage]:
    ended = [stage async for stage in runtime.archive(team, "stage") if isinstance(stage, Stage)]
    return sorted([*ended, *(await runtime.world(team)).stages.values()], key=lambda stage: _ordinal(stage.stage_id))


async def _steps(runtime: Runtime, team: TeamId) -> list[Step]:
    ended = [await _whole(runtime, step) async for step in runtime.archive(team, "step") if isinstance(step, Step)]
    return [*ended, *(await runtime.world(team)).steps.values()]


async def _whole(runtime: Runtime, step: Step) -> Step:
    """The step with all of its result, if that can still be had."""
    try:
        return await made_whole(step, runtime.log)
    except WorldFault:
        return step


async def _agents(runtime: Runtime, team: TeamId) -> dict[str, Portrait]:
    world, ended = await runtime.world(team), defaultdict[AgentId, list[Step]](list)
    for step in await _steps(runtime, team):
        if step.step_id not in world.steps:
            ended[step.agent_id].append(step)
    messages = [message async for message in runtime.archive(team, "message") if isinstance(message, Message)]
    pools = {
        name: pool_of(world, messages, name, agent.spec.language).portrait
        for name, agent in world.agents.items()
        if agent.spec.kind == "human"
    }
    return {name: agent_state(world, name, ended=ended[name], pool=pools.get(name)) for name in sorted(world.agents)}


def _ordinal(name: str) -> tuple[tuple[int, str], ...]:
    """Ids by their numbers: t2 comes before t10."""
    return tuple((len(part), part) for part in name.split("."))
