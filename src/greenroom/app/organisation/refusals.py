"""What a person cannot do, and what to do instead, in their language."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from greenroom.app.organisation.names import in_language
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.ids import looks_like

WHY: Final = {
    "no_question": {"en": "Letter {number} is no question.", "zh": "第{number}条消息不是提问。"},
    "no_duty": {"en": "Letter {number} is no duty.", "zh": "第{number}条消息不是职责。"},
    "no_approval": {"en": "Letter {number} wants no yes or no.", "zh": "第{number}条消息不需要批准。"},
    "unknown_group": {"en": "There is no group {name!r}.", "zh": "没有群组{name!r}。"},
    "their_group": {"en": "{name!r} is a group of others: {who}.", "zh": "{name!r}是其他人的群组：{who}。"},
    "not_yours": {
        "en": "You take no part in the group {name!r}: {who} do.",
        "zh": "您不在群组{name!r}中，成员：{who}。",
    },
    "no_person": {
        "en": "{name!r} is no person, and only people take part in a group.",
        "zh": "{name!r}不是人，群组只能由人组成。",
    },
    "small_group": {"en": "A group has two people or more.", "zh": "群组至少需要两个人。"},
    "bad_group": {"en": "{name!r} cannot be a group's name.", "zh": "{name!r}不能用作群组名称。"},
    "not_permitted": {"en": "{me} may not use the tool {tool!r}.", "zh": "{me}不能使用工具{tool!r}。"},
    "unknown_stage": {"en": "There is no open stage {stage!r}.", "zh": "没有进行中的阶段{stage!r}。"},
    "not_their_stage": {"en": "{who!r} has no open stage {stage!r}.", "zh": "{who!r}没有进行中的阶段{stage!r}。"},
    "unknown_letter": {"en": "No letter {number} waits for {me}.", "zh": "没有等待{me}处理的第{number}条消息。"},
    "unknown_agent": {"en": "There is no agent {name!r}.", "zh": "没有名为{name!r}的Agent。"},
    "unknown_person": {"en": "Nobody here is called {name!r}.", "zh": "这里没有名为{name!r}的人。"},
    "agent_busy": {"en": "{name!r} is at work.", "zh": "{name!r}正在工作。"},
    "agent_manages": {"en": "{name!r} manages an open task.", "zh": "{name!r}管理着进行中的任务。"},
    "hears_people": {
        "en": "{name!r} is the one who hears what people want, and cannot go.",
        "zh": "{name!r}负责听取人的需求，不能离开。",
    },
    "agent_allotted": {"en": "{name!r} has a part in an open stage.", "zh": "{name!r}在进行中的阶段里还有职责。"},
    "in_charter": {"en": "{name!r} is named in {path}.", "zh": "{path}中写有{name!r}。"},
    "sent_away": {"en": "You have left {name}.", "zh": "您已离开{name}。"},
    "which_person": {"en": "{count} people belong to it.", "zh": "它有{count}位成员。"},
}
HINTS: Final = {
    "there": {"en": "There are: {there}.", "zh": "现有：{there}。"},
    "may_use": {"en": "You may use: {there}.", "zh": "您可以使用：{there}。"},
    "who": {"en": "Say who you are with --as: {there}.", "zh": "请用--as说明您是谁：{there}。"},
    "other_group": {"en": "Form one of your own.", "zh": "请自己建立群组。"},
    "first": {"en": "First: `{command}`.", "zh": "请先执行：`{command}`。"},
    "come_back": {"en": "A name is used once: come back under another.", "zh": "名字不能重复使用：请用别的名字再来。"},
    "stays": {"en": "It stays as long as the organisation.", "zh": "组织存在期间它一直在。"},
    "ask_manager": {"en": "Ask {manager} to end that first.", "zh": "请先让{manager}结束它。"},
    "take_out": {"en": "Take that out first.", "zh": "请先在那里删去。"},
    "other_name": {"en": "Take another name.", "zh": "请换一个名称。"},
    "meant": {"en": "Did you mean {near!r}?", "zh": "您是指{near!r}吗？"},
    "name_it": {
        "en": "Name it in what you say there, as @{name}: then it hears that.",
        "zh": "在群组发言中用@{name}点名，它就会收到。",
    },
    "directly": {"en": "Write to them directly.", "zh": "请直接给对方发消息。"},
    "group_name": {
        "en": "Use 1 to 64 characters without spaces and without # @ > : ! ? / ,",
        "zh": "请用1到64个字符，不含空格和 # @ > : ! ? / ,",
    },
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


def sent_away(team: str, language: str) -> Refused:
    """Whoever wants something here does not belong to it any more."""
    return refused("sent_away", "come_back", language, name=team)


def nobody(name: str, agents: Iterable[str], language: str) -> Refused:
    """Nobody is called so; who can be taken for them is named."""
    there = sorted(agents)
    near = taken_for(name, there)
    hint = "there" if near is None else "meant"
    return refused("unknown_agent", hint, language, name=name, near=near, there=", ".join(there))


def taken_for(name: str, agents: Iterable[str]) -> str | None:
    """Whose name looks like this one: ben like `Ben`, or like one in letters of another script."""
    return min((one for one in agents if looks_like(one, name)), default=None)
