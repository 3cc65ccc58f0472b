"""Messages and waits. A sent message is an event, so it is never lost or delivered twice."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, GroupId, MessageId, StageId, TaskId, ThreadId, WaitingId
from greenroom.core.base.records import Data, record
from greenroom.core.state.origin import Labels

Delivery = Literal["post", "call", "handoff"]
MessageKind = Literal["request", "response", "notification", "handoff", "instruction"]
ReleaseReason = Literal["reply", "timeout", "unanswered", "stage_over", "task_over", "agent_gone", "interrupted"]


@record
class Message:
    """A message: MAS's eight fields and the additions of the other designs. `receiver` is always a list.

    With a `group`, all its participants and the named models receive it. `origins` labels what the sender had read in
    the conversation from which it wrote.
    """

    message_id: MessageId
    task_id: TaskId
    sender_id: AgentId
    receiver: tuple[AgentId, ...]
    message: str
    stage_relative: StageId | Literal["no_relative"] = "no_relative"
    need_reply: bool = False
    waiting: tuple[WaitingId, ...] | None = None
    return_waiting_id: WaitingId | None = None
    kind: MessageKind = "notification"
    delivery: Delivery = "post"
    protocol: str | None = None
    data: Data | None = None
    handoff_summary: str | None = None
    sent_at: int = 0
    call_id: str | None = None
    origins: Labels = ()
    group: GroupId | None = None


@record
class Wait:
    """An agent runs no step until this waiting id is returned."""

    waiting_id: WaitingId
    waiter: AgentId
    on: AgentId
    message_id: MessageId
    task_id: TaskId
    stage_id: StageId | None
    since: int
    thread_id: ThreadId | None = None
    call_id: str | None = None


@record
class MessageSent:
    """A message was sent and delivered. The sender reads the reply in `thread_id`."""

    at: int
    message: Message
    thread_id: ThreadId | None = None


@record
class MessageSettled:
    """A person no longer has to answer a message."""

    at: int
    message_id: MessageId
    agent_id: AgentId


@record
class WaitReleased:
    """A wait ended: the reply arrived, or never will. `why` says which."""

    at: int
    task_id: TaskId
    waiting_id: WaitingId
    why: ReleaseReason


MessageEvent = MessageSent | MessageSettled | WaitReleased


def create_waits(message: Message, thread: ThreadId | None) -> tuple[Wait, ...]:
    """Create one wait per receiver if the sender waits for replies."""
    if message.waiting is None:
        return ()
    stage = None if message.stage_relative == "no_relative" else StageId(message.stage_relative)
    return tuple(
        Wait(
            waiting_id=waiting,
            waiter=message.sender_id,
            on=receiver,
            message_id=message.message_id,
            task_id=message.task_id,
            stage_id=stage,
            since=message.sent_at,
            thread_id=thread,
            call_id=message.call_id,
        )
        for receiver, waiting in zip(message.receiver, message.waiting, strict=True)
    )


@record
class ConversationGroup:
    """A conversation of several people in a task. It ends with the task; the archive holds its messages."""

    group_id: GroupId
    task_id: TaskId
    participants: tuple[AgentId, ...]
    formed_at: int = 0


@record
class GroupFormed:
    """A group was formed, or its participants changed."""

    at: int
    group: ConversationGroup


GroupEvent = GroupFormed
