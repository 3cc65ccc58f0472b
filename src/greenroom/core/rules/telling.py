"""What the house writes in an agent's name: a duty, an instruction, a question, news. All of it is made here."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import NO_RELATIVE, AgentId, MessageId, StageId, TaskId, message_id
from greenroom.core.base.records import Data
from greenroom.core.rules.draft import Draft
from greenroom.core.rules.origins import said_by
from greenroom.core.state.message import Message, MessageSent


def tell(
    draft: Draft,
    sender: AgentId,
    receiver: tuple[AgentId, ...],
    text: str,
    *,
    task: TaskId,
    data: Data,
    kind: Literal["instruction", "request"],
    stage: StageId | None = None,
) -> MessageId:
    """Send it. A request needs a reply, and `data` says how that is given; an instruction needs none."""
    message = Message(
        message_id=message_id(sender, draft.world.agents[sender].messages_made + 1),
        task_id=task,
        sender_id=sender,
        receiver=receiver,
        message=text,
        stage_relative=stage or NO_RELATIVE,
        need_reply=kind == "request",
        kind=kind,
        data=data,
        sent_at=draft.now,
        origins=said_by(draft, sender),
    )
    draft.emit(MessageSent(at=draft.now, message=message))
    return message.message_id
