"""Letters: what people are asked and owe an answer to, by numbers that never change.

A letter is a message to a person that needs a reply: a question, a duty in a stage, or a step that waits for a yes.
They are counted for the whole organisation, so that one number means the same to everybody; the world has the numbers
of those that are open, so nobody reads what was said before.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from greenroom.core.base.ids import AgentId, ApprovalId, StageId, SubtaskId, WaitingId
from greenroom.core.base.records import Data, record
from greenroom.core.state.message import Message
from greenroom.core.state.world import World

Kind: TypeAlias = Literal["question", "duty", "stage", "approval"]


@record
class Letter:
    """What somebody is asked. `waiting` is the id that an answer returns, where the sender does nothing until then."""

    number: int
    message: Message
    kind: Kind
    waiting: WaitingId | None = None

    @property
    def stage(self) -> StageId | None:
        """The stage that it is about."""
        return stage_of(self.message)


def stage_of(message: Message) -> StageId | None:
    """The stage that a message is about."""
    return None if message.stage_relative == "no_relative" else StageId(message.stage_relative)


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
    return ApprovalId(_about(message.data, "approval_id"))


def subtask_of(message: Message) -> SubtaskId:
    """The duty that a letter is."""
    return SubtaskId(_about(message.data, "subtask_id"))


def ended_stage_of(message: Message) -> StageId:
    """The stage about which a person who manages is asked how to go on."""
    return StageId(_about(message.data, "stage_id"))


def _about(data: Data | None, name: str) -> str:
    return str((data or {}).get(name, ""))


def waiting_of(message: Message, person: AgentId) -> WaitingId | None:
    """The id that this receiver is to return; None when nobody waits for them."""
    if message.waiting is None or person not in message.receiver:
        return None
    return message.waiting[message.receiver.index(person)]


def owed(world: World, person: AgentId) -> tuple[Letter, ...]:
    """What this person owes an answer to, the oldest first; also every step that waits for a yes of whomever."""
    mine = (one for one in world.mail.values() if person in one.receiver or kind_of(one) == "approval")
    found = (
        Letter(number=world.letters[one.message_id], message=one, kind=kind_of(one), waiting=waiting_of(one, person))
        for one in mine
    )
    return tuple(sorted(found, key=lambda one: one.number))
