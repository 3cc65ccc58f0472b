"""Notices: what people are told in the house's own words when something concerns them, in their language."""

from __future__ import annotations

from typing import Final

from greenroom.app.organisation.letters import kind_of, waiting_of
from greenroom.app.organisation.names import in_language
from greenroom.core.base.ids import AgentId
from greenroom.core.rules.people import ABOUT
from greenroom.core.state.message import Message

REPLY: Final = {
    "en": "A message of Agent[<agent_id>{sender}</agent_id>] needs your reply.",
    "zh": "来自Agent[<agent_id>{sender}</agent_id>]的消息需要您回复。",
}
PRIORITY: Final = {
    "en": "Priority: Agent[<agent_id>{sender}</agent_id>] does nothing until you reply (waiting id {waiting}).",
    "zh": "优先提醒：Agent[<agent_id>{sender}</agent_id>]正在等待您的回复（等待ID：{waiting}）。",
}
DUTY: Final = {
    "en": "Stage {stage} of task {task} has begun, and you have a part in it: {text}",
    "zh": "任务{task}的阶段{stage}已开始，您的职责：{text}",
}
STAGE: Final = {
    "en": "Stage {stage} of task {task} has nothing left to do; you decide how to go on: {text}",
    "zh": "任务{task}的阶段{stage}已没有剩余工作，请您决定下一步：{text}",
}
APPROVAL: Final = {
    "en": "A step of Agent[<agent_id>{sender}</agent_id>] waits for a yes or a no: {text}",
    "zh": "Agent[<agent_id>{sender}</agent_id>]的一个步骤等待您批准：{text}",
}
TOLD: Final = {
    "finish_stage": {"en": "Stage {stage} is over: {state}. {text}", "zh": "阶段{stage}已结束：{state}。{text}"},
    "finish_task": {"en": "Task {task} is over: {state}. {text}", "zh": "任务{task}已结束：{state}。{text}"},
    "update_working_memory": {"en": "You take part in task {task} now. {text}", "zh": "您已加入任务{task}：{text}"},
    "remove_agent": {
        "en": "{sender} has left, and does not answer any more. You wrote: {text}",
        "zh": "{sender}已离开，不会再答复。您写的是：{text}",
    },
}
"""By the instruction that a person gets."""

STATES: Final = {"finished": "已完成", "failed": "失败", "cancelled": "已取消"}


def notices(message: Message, person: AgentId, language: str) -> tuple[str, ...]:
    """What this person is told because of a message to them; nothing for one that only says something."""
    if person not in message.receiver or message.group is not None:
        return ()
    if message.kind == "instruction":
        return _instructed(message, language)
    if not message.need_reply:
        return ()
    known = _known(message, language)
    match kind_of(message):
        case "duty":
            return (in_language(DUTY, language).format(**known),)
        case "stage":
            return (in_language(STAGE, language).format(**known),)
        case "approval":
            return (in_language(APPROVAL, language).format(**known),)
        case "question":
            return _to_answer(message, person, language)


def _to_answer(message: Message, person: AgentId, language: str) -> tuple[str, ...]:
    waiting = waiting_of(message, person)
    asked = in_language(REPLY, language).format(sender=message.sender_id)
    if waiting is None:
        return (asked,)
    return (asked, in_language(PRIORITY, language).format(sender=message.sender_id, waiting=waiting))


def _instructed(message: Message, language: str) -> tuple[str, ...]:
    words = TOLD.get(str((message.data or {}).get("instruction", "")))
    return (in_language(words, language).format(**_known(message, language)),) if words is not None else ()


def _known(message: Message, language: str) -> dict[str, str]:
    data = message.data or {}
    state = str(data.get("state", ""))
    return {
        "sender": message.sender_id,
        "task": str(data.get("task_id", message.task_id)),
        "stage": str(data.get("stage_id", message.stage_relative)),
        "state": STATES.get(state, state) if language == "zh" else state,
        "text": str(data.get(ABOUT, message.message)),
    }
