"""Messages and waits. A sent message is an event: it cannot be lost or delivered twice."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, GroupId, MessageId, StageId, TaskId, ThreadId, WaitingId
from greenroom.core.base.records import Data, record
from greenroom.core.state.origin import Labels

Delivery = Literal["post", "call", "handoff"]
MessageKind = Literal["request", "response", "notification", "handoff", "instruction"]
ReleaseWhy = Literal["reply", "timeout", "unanswered", "stage_over", "task_over", "agent_gone", "interrupted"]


@record
class Message:
    """MAS's eight fields and what the other designs need. `receiver` is always a list. With a `group` it was said
    there, to all who take part and to the models that are named.

    `origins` is what the sender had read in the conversation from which it wrote.
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
    """Somebody does no step until this id comes back."""

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
    """The message is with its receivers. `thread_id` is where the sender reads the answer."""

    at: int
    message: Message
    thread_id: ThreadId | None = None


@record
class MessageSettled:
    """A person owes no answer to this message any more."""

    at: int
    message_id: MessageId
    agent_id: AgentId


@record
class WaitReleased:
    """A waiting id is back, or will never come back."""

    at: int
    task_id: TaskId
    waiting_id: WaitingId
    why: ReleaseWhy


MessageEvent = MessageSent | MessageSettled | WaitReleased


def waits(message: Message, thread: ThreadId | None) -> tuple[Wait, ...]:
    """One wait per receiver, when the sender waits."""
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


# ---------------------------------------------------------------------------------------------- groups


@record
class Group:
    """A conversation of several people in a task; what they say is in the archive. It is over with its task."""

    group_id: GroupId
    task_id: TaskId
    participants: tuple[AgentId, ...]
    formed_at: int = 0


@record
class GroupFormed:
    """These people talk together. Who forms it again changes who takes part."""

    at: int
    group: Group


GroupEvent = GroupFormed
