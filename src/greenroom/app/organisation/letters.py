"""Letters, which people owe an answer to, and notices, which they are told.

A letter is a message to a person that needs a reply: a question, a duty in a stage, or a step that waits for a yes.
Letters are counted for the whole organisation, so that one number means the same to everybody; the world has the
numbers of those that are open, so the archive is not read.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from greenroom.app.organisation.names import CHINESE, STATES
from greenroom.app.organisation.words import CATALOGUE, phrase
from greenroom.core.base.ids import AgentId, ApprovalId, StageId, SubtaskId, WaitingId
from greenroom.core.base.records import record
from greenroom.core.rules.people import ABOUT
from greenroom.core.state.message import Message
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
        if names[0] not in CATALOGUE.table(table, language):
            return ()
    elif not message.need_reply:
        return ()
    state = str(data.get("state", ""))
    known = {
        "sender": message.sender_id,
        "task": data.get("task_id", message.task_id),
        "stage": data.get("stage_id", message.stage_relative),
        "state": STATES.get(state, state) if language == CHINESE else state,
        "text": data.get(ABOUT, message.message),
        "waiting": waiting,
    }
    return tuple(phrase(table, name, language, **known) for name in names)
