"""What a person cannot do, and what to do instead, in their language."""

from __future__ import annotations

from typing import Final

from greenroom.app.organisation.names import in_language
from greenroom.core.base.errors import Refused, Rejected

WHY: Final = {
    "no_question": {"en": "Letter {number} is no question.", "zh": "第{number}条消息不是提问。"},
    "no_duty": {"en": "Letter {number} is no duty.", "zh": "第{number}条消息不是职责。"},
    "no_approval": {"en": "Letter {number} wants no yes or no.", "zh": "第{number}条消息不需要批准。"},
    "unknown_group": {"en": "There is no group {name!r}.", "zh": "没有群组{name!r}。"},
    "their_group": {"en": "{name!r} is a group of others: {who}.", "zh": "{name!r}是其他人的群组：{who}。"},
    "not_permitted": {"en": "{me} may not use the tool {tool!r}.", "zh": "{me}不能使用工具{tool!r}。"},
    "unknown_stage": {"en": "There is no open stage {stage!r}.", "zh": "没有进行中的阶段{stage!r}。"},
    "not_their_stage": {"en": "{who!r} has no open stage {stage!r}.", "zh": "{who!r}没有进行中的阶段{stage!r}。"},
    "unknown_letter": {"en": "No letter {number} waits for {me}.", "zh": "没有等待{me}处理的第{number}条消息。"},
    "unknown_agent": {"en": "There is no agent {name!r}.", "zh": "没有名为{name!r}的Agent。"},
    "unknown_person": {"en": "Nobody here is called {name!r}.", "zh": "这里没有名为{name!r}的人。"},
    "which_person": {"en": "{count} people belong to it.", "zh": "它有{count}位成员。"},
}
HINTS: Final = {
    "there": {"en": "There are: {there}.", "zh": "现有：{there}。"},
    "may_use": {"en": "You may use: {there}.", "zh": "您可以使用：{there}。"},
    "who": {"en": "Say who you are with --as: {there}.", "zh": "请用--as说明您是谁：{there}。"},
    "other_name": {"en": "Take another name.", "zh": "请换一个名称。"},
    "no_stage": {"en": "Leave the stage out.", "zh": "请不要指明阶段。"},
    "question": {"en": "Answer it in words.", "zh": "请用文字回复。"},
    "approval": {"en": "Say yes or no to it.", "zh": "请批准或拒绝。"},
    "duty": {"en": "Do it, and report that it is done.", "zh": "请完成它并汇报。"},
}
NONE: Final = {"en": "none", "zh": "无"}


def refused(code: str, hint: str, language: str, **known: object) -> Refused:
    """Something that cannot be done. Of a list of what there is instead, nothing is a word too."""
    known["there"] = known.get("there") or in_language(NONE, language)
    why = in_language(WHY[code], language).format(**known)
    return Refused(Rejected(code=code, why=why, hint=in_language(HINTS[hint], language).format(**known)))
