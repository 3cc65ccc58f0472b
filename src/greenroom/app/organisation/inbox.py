"""What people read and must answer: inbox messages, notices and their conversations.

An inbox message needs a reply: a question, a duty in a stage, or a step that waits for approval. Numbers count for the
whole organisation, so a number means the same message to all people. The state has the numbers of open messages, so the
archive is not read. The last part reports an organisation's status, and all its states in MAS's words.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias, cast, get_args

from greenroom.actors.payload import restore_result
from greenroom.app.messages import MESSAGES, phrase, translate
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import TaskStatus, read_status
from greenroom.app.toolset.redaction import SecretRedactor
from greenroom.core.base.errors import WorldFault, make_refusal
from greenroom.core.base.ids import AgentId, ApprovalId, GroupId, StageId, SubtaskId, TaskId, TeamId, WaitingId
from greenroom.core.base.records import record, to_full_dict
from greenroom.core.rules.origins import ABOUT_KEY
from greenroom.core.state.knowledge import Note
from greenroom.core.state.mas_format import MasData, format_agent, format_stage, format_step, format_task, to_json_value
from greenroom.core.state.message import Message
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState

Kind: TypeAlias = Literal["question", "duty", "stage", "approval"]


@record
class InboxMessage:
    """A message that a person must answer. `waiting` is the id to return if the sender waits for the answer."""

    number: int
    message: Message
    kind: Kind
    waiting: WaitingId | None = None

    @property
    def stage(self) -> StageId | None:
        """The stage of the message. For a manager's decision, the stage that has ended."""
        if self.kind == "stage":
            return StageId(_read_data(self.message, "stage_id"))
        return None if self.message.stage_relative == "no_relative" else StageId(self.message.stage_relative)


def kind_of(message: Message) -> Kind:
    """Return the kind of answer that a message needs."""
    data = message.data or {}
    if "approval_id" in data:
        return "approval"
    if "subtask_id" in data:
        return "duty"
    return "stage" if "stage_id" in data else "question"


def approval_of(message: Message) -> ApprovalId:
    return ApprovalId(_read_data(message, "approval_id"))


def subtask_of(message: Message) -> SubtaskId:
    return SubtaskId(_read_data(message, "subtask_id"))


def _read_data(message: Message, name: str) -> str:
    return str((message.data or {}).get(name, ""))


def waiting_of(message: Message, person: AgentId) -> WaitingId | None:
    """Return the waiting id for this receiver, or None if no agent waits."""
    if message.waiting is None or person not in message.receiver:
        return None
    return message.waiting[message.receiver.index(person)]


def find_unanswered(state: TeamState, person: AgentId) -> tuple[InboxMessage, ...]:
    """Return the messages that a person must answer, oldest first, and all pending approvals."""
    inbox_messages = (
        InboxMessage(number=number, message=mail, kind=kind_of(mail), waiting=waiting_of(mail, person))
        for mail, number in ((mail, state.letters[mail.message_id]) for mail in state.mail.values())
        if person in mail.receiver or kind_of(mail) == "approval"
    )
    return tuple(sorted(inbox_messages, key=lambda inbox_message: inbox_message.number))


def render_notices(message: Message, person: AgentId, language: str) -> tuple[str, ...]:
    """Render the notices of a message for this person. A message without a request has none."""
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
    variables = {
        "sender": message.sender_id,
        "task": data.get("task_id", message.task_id),
        "stage": data.get("stage_id", message.stage_relative),
        "state": MESSAGES.table("states", language).get(state, state),
        "text": data.get(ABOUT_KEY, message.message),
        "waiting": waiting,
    }
    return tuple(phrase(table, name, language, **variables) for name in names)


@record
class GroupMessage:
    sender_id: str
    content: str
    timestamp: str


@record
class GroupConversation:
    """A group of people with its messages."""

    group_id: str
    participants: tuple[str, ...]
    messages: tuple[GroupMessage, ...] = ()


@record
class PrivateMessage:
    """A message between a person and another agent."""

    sender_id: str
    content: str
    stage_relative: str
    timestamp: str
    need_reply: bool
    waiting: str | None
    return_waiting_id: str | None


@record
class ConversationPool:
    """All conversations of a person. Private messages are keyed by the other agent's id."""

    conversation_groups: tuple[GroupConversation, ...]
    conversation_privates: dict[str, tuple[PrivateMessage, ...]]
    global_messages: tuple[str, ...]

    @property
    def portrait(self) -> MasData:
        """The conversations as JSON data."""
        groups = [
            {**to_full_dict(group), "messages": [*map(to_full_dict, group.messages)]}
            for group in self.conversation_groups
        ]
        privates = {name: [*map(to_full_dict, messages)] for name, messages in self.conversation_privates.items()}
        fields = {**to_full_dict(self), "conversation_groups": groups, "conversation_privates": privates}
        return cast("MasData", to_json_value(fields))


def pool_of(state: TeamState, messages: Iterable[Message], person: AgentId, language: str) -> ConversationPool:
    """Return a person's conversations from these messages."""
    known_messages = [message for message in messages if message.sender_id == person or person in message.receiver]
    privates: dict[str, list[PrivateMessage]] = {}
    for message in known_messages:
        for other, private_message in _list_private(message, person) if message.group is None else ():
            privates.setdefault(other, []).append(private_message)
    return ConversationPool(
        conversation_groups=tuple(_list_groups(state, known_messages, person)),
        conversation_privates={other: tuple(private_message) for other, private_message in privates.items()},
        global_messages=tuple(
            notice for message in known_messages for notice in render_notices(message, person, language)
        ),
    )


def format_time(at: int) -> str:
    """Format a time in the local time zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at / 1000))


def _list_private(message: Message, person: AgentId) -> Iterator[tuple[str, PrivateMessage]]:
    """Yield the message for each other agent. A message to several agents is in all conversations."""
    others = [(message.sender_id, person)]
    if message.sender_id == person:
        others = [(name, name) for name in message.receiver if name != person]
    for other, receiver in others:
        entry = PrivateMessage(
            sender_id=message.sender_id,
            content=message.message,
            stage_relative=message.stage_relative,
            timestamp=format_time(message.sent_at),
            need_reply=message.need_reply,
            waiting=waiting_of(message, receiver),
            return_waiting_id=message.return_waiting_id,
        )
        yield other, entry


def _list_groups(state: TeamState, known_messages: Iterable[Message], person: AgentId) -> Iterator[GroupConversation]:
    """Yield the person's groups with their messages, including groups that are over."""
    joined = sorted(name for name, group in state.groups.items() if person in group.participants)
    messages_by_group: dict[GroupId, list[Message]] = {name: [] for name in joined}
    for message in known_messages:
        if message.group is not None:
            messages_by_group.setdefault(message.group, []).append(message)
    for name, group_messages in messages_by_group.items():
        yield GroupConversation(
            group_id=name,
            participants=_list_participants(state, name, group_messages),
            messages=tuple(
                GroupMessage(
                    sender_id=group_message.sender_id,
                    content=group_message.message,
                    timestamp=format_time(group_message.sent_at),
                )
                for group_message in group_messages
            ),
        )


def _list_participants(state: TeamState, name: GroupId, group_messages: list[Message]) -> tuple[str, ...]:
    """Return a group's participants. For a group that is over, use its last message."""
    if name in state.groups:
        return state.groups[name].participants
    last = group_messages[-1]
    people = (
        agent_id
        for agent_id in last.receiver
        if agent_id in state.agents and state.agents[agent_id].spec.kind == "human"
    )
    return (last.sender_id, *people)


StateType: TypeAlias = Literal["task", "stage", "agent", "step"]
States: TypeAlias = Mapping[str, MasData]
STATE_TYPES: Final[tuple[StateType, ...]] = get_args(StateType)
STATUS_ORDER: Final = ("working", "provider", "limit", "paused", "waiting")


def summarise_status(state: TeamState) -> TaskStatus:
    """Return the organisation's status, from the task that matters most: working, blocked, waiting for a person, or
    idle."""
    statuses = [status for task in state.tasks if (status := read_status(state, task)) is not None]
    statuses = [status for status in statuses if status.state in STATUS_ORDER]
    return min(statuses, key=lambda status: STATUS_ORDER.index(status.state), default=TaskStatus(state="idle"))


async def read_states(runtime: Runtime, team: TeamId, kind: str, *, secrets: Iterable[str] = ()) -> States:
    """Return the states of one type by id, open and over, with `secrets` removed."""
    match kind:
        case "task":
            portraits = await _read_tasks(runtime, team)
        case "stage":
            portraits = {stage.stage_id: format_stage(stage) for stage in await _read_stages(runtime, team)}
        case "agent":
            portraits = await _read_agents(runtime, team)
        case "step":
            portraits = {step.step_id: format_step(step) for step in await _read_steps(runtime, team)}
        case _:
            why = translate("organisation.no_state_type", kind=kind)
            raise make_refusal("unknown_type", why, translate("hints.there", there=", ".join(STATE_TYPES)))
    return serialise_states(portraits, secrets)


def serialise_states(portraits: States, secrets: Iterable[str] = ()) -> States:
    """Return the states as JSON data without secrets."""
    redaction = SecretRedactor(secrets)
    safe = {name: cast("MasData", to_json_value(fields)) for name, fields in portraits.items()}
    return {name: dict(redaction.data(fields)) for name, fields in safe.items()} if redaction else safe


async def _read_tasks(runtime: Runtime, team: TeamId) -> dict[str, MasData]:
    state, stages = await runtime.state(team), defaultdict[TaskId, list[Stage]](list)
    notes: defaultdict[TaskId, list[Note]] = defaultdict(list)
    for stage in await _read_stages(runtime, team):
        stages[stage.task_id].append(stage)
    async for note in runtime.archive(team, "note"):
        if isinstance(note, Note):
            notes[note.task_id].append(note)
    tasks = [*await runtime.ended_tasks(team), *state.tasks.values()]
    return {
        task.task_id: format_task(task, stages[task.task_id], notes[task.task_id])
        for task in sorted(tasks, key=lambda task: _ordinal(task.task_id))
    }


async def _read_stages(runtime: Runtime, team: TeamId) -> list[Stage]:
    ended = [stage async for stage in runtime.archive(team, "stage") if isinstance(stage, Stage)]
    return sorted([*ended, *(await runtime.state(team)).stages.values()], key=lambda stage: _ordinal(stage.stage_id))


async def _read_steps(runtime: Runtime, team: TeamId) -> list[Step]:
    ended = [
        await _load_whole_step(runtime, step) async for step in runtime.archive(team, "step") if isinstance(step, Step)
    ]
    return [*ended, *(await runtime.state(team)).steps.values()]


async def _load_whole_step(runtime: Runtime, step: Step) -> Step:
    """Return the step with its whole result, if that still exists."""
    try:
        return await restore_result(step, runtime.log)
    except WorldFault:
        return step


async def _read_agents(runtime: Runtime, team: TeamId) -> dict[str, MasData]:
    state, ended = await runtime.state(team), defaultdict[AgentId, list[Step]](list)
    for step in await _read_steps(runtime, team):
        if step.step_id not in state.steps:
            ended[step.agent_id].append(step)
    messages = [message async for message in runtime.archive(team, "message") if isinstance(message, Message)]
    pools = {
        name: pool_of(state, messages, name, agent.spec.language).portrait
        for name, agent in state.agents.items()
        if agent.spec.kind == "human"
    }
    return {name: format_agent(state, name, ended=ended[name], pool=pools.get(name)) for name in sorted(state.agents)}


def _ordinal(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key that orders ids by their numbers: t2 before t10."""
    return tuple((len(part), part) for part in name.split("."))
