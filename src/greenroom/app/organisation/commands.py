"""The commands that a person can type in an organisation, and what each does, in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from greenroom.app.organisation.names import CHINESE

COMMANDS: Final = {
    "answer": "N TEXT  answer letter N",
    "done": "N REPORT  your duty in letter N is done",
    "failed": "N WHY  your duty in letter N cannot be done",
    "yes": "N  let the step of letter N run; `/yes N run`, `/yes N always`",
    "no": "N WHY  do not let it run",
    "to": "NAME: TEXT  write to somebody who is to answer; to two: a,b: TEXT",
    "tell": "NAME: TEXT  write to somebody who need not answer",
    "ask": "NAME: TEXT  want something of somebody",
    "group": "NAME: TEXT  say it in a group, and to agents that you @name",
    "form": "GROUP ann, ben  talk with others in a group",
    "tool": "NAME {…}  use a tool by hand; for a stage: /tool NAME in t2.s1 {…}",
    "inbox": "what waits for you",
    "notices": "what the house has told you",
    "tasks": "what is worked on",
    "who": "who there is, and what they do",
    "history": "NAME  what was said between you and somebody",
    "resume": "let go on what stands still",
    "help": "what can be typed here",
    "exit": "leave; the organisation stays",
}
"""The commands, and what each does. What it takes comes before two spaces."""

COMMANDS_ZH: Final = {
    "answer": "N 内容  回复第N条消息",
    "done": "N 汇报  第N条消息中的职责已完成",
    "failed": "N 原因  第N条消息中的职责无法完成",
    "yes": "N  批准第N条消息中的步骤；/yes N run 或 /yes N always 表示长期批准",
    "no": "N 原因  拒绝第N条消息中的步骤",
    "to": "名字: 内容  给某人发消息并要求回复；多人：a,b: 内容",
    "tell": "名字: 内容  给某人发消息，无需回复",
    "ask": "名字: 内容  请某人办事；直接输入文字则发给管理者",
    "group": "群组: 内容  在群组中发言；用@点名的Agent也会收到",
    "form": "群组 ann, ben  与他人建立群组",
    "tool": "工具 {…}  手动使用工具；绑定到阶段：/tool 工具 in t2.s1 {…}",
    "inbox": "等您处理的消息",
    "notices": "系统通知",
    "tasks": "进行中的任务",
    "who": "有谁，在做什么",
    "history": "名字  您与某人的对话",
    "resume": "继续暂停的内容",
    "help": "可以输入什么",
    "exit": "离开；组织保留",
}
"""The same in Chinese."""


def commands(language: str) -> Mapping[str, str]:
    """The commands, and what each does, in a language."""
    return COMMANDS_ZH if language.partition("-")[0] == CHINESE else COMMANDS
