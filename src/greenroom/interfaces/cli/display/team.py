"""What `greenroom team` says beside its picture, in the language of the organisation."""

from __future__ import annotations

from typing import Final

from greenroom.app.organisation.names import in_language
from greenroom.interfaces.cli.display.tables import Column

WORDS: Final = {
    "made": {"en": "✓ {name}: a manager, and {people}.", "zh": "✓ {name}：一名管理者，以及{people}。"},
    "let_work": {"en": "Let it work:  {command}", "zh": "启动：{command}"},
    "talk_to": {"en": "Talk to it:   {command}", "zh": "对话：{command}"},
    "works": {"en": "{name} works ({team}). Ctrl-C stops it.", "zh": "{name}开始工作（{team}）。按Ctrl-C停止。"},
    "talk": {"en": "Talk to it: {command}", "zh": "与它对话：{command}"},
    "again": {"en": "Stopped. Go on with: {command}", "zh": "已停止。继续：{command}"},
    "held": {
        "en": "The organisation {name!r} works already, in {owner}. Talk to it with `{talk}`, stop it with `{stop}`.",
        "zh": "组织{name!r}已在{owner}中工作。与它对话：`{talk}`，停止它：`{stop}`。",
    },
    "ended": {"en": "Stopped: {why}.", "zh": "已停止：{why}。"},
    "over": {"en": "The organisation is over.", "zh": "该组织已结束。"},
    "is_stopped": {"en": "{name} is stopped.", "zh": "{name}已停止。"},
    "left": {"en": "{who} has left {name}.", "zh": "{who}已离开{name}。"},
    "undone": {
        "en": "What {who} had still to do is not done: {count}.",
        "zh": "{who}尚未完成的步骤不再执行：{count}个。",
    },
    "go_on": {"en": "Go on with: {command}", "zh": "继续：{command}"},
    "start": {"en": "Let it work: {command}", "zh": "启动：{command}"},
    "runs_in": {"en": "runs in {owner}", "zh": "运行于{owner}"},
    "nobody": {"en": "nobody runs it", "zh": "没有人在运行"},
    "stands_in": {"en": "{stands}, in {owner}", "zh": "{stands}，运行于{owner}"},
    "moved": {
        "en": "An organisation {name!r} was founded in {place}, where its file is gone. This is a new one, which knows "
        "nothing of what that one did: {show}",
        "zh": "曾在{place}成立过组织{name!r}，那里的文件已不存在。现在成立的是新的组织，不知道之前的内容：{show}",
    },
    "another": {
        "en": "There is an organisation {name!r} in {place}, too ({team}). This is a new one.",
        "zh": "{place}中也有组织{name!r}（{team}）。现在成立的是新的组织。",
    },
    "before": {
        "en": "{name} was founded here before ({team}), and goes on with this file. For a new one, end that one for "
        "good: {command}",
        "zh": "这里曾成立过{name}（{team}），它将按此文件继续。如需新的组织，请先永久结束它：{command}",
    },
    "new": {"en": "has not begun", "zh": "尚未开始"},
    "gone": {"en": "is over; a start founds another", "zh": "已结束；启动会成立新的组织"},
    "broken": {"en": "its file has mistakes", "zh": "文件有错误"},
    "none": {"en": "There is no organisation. Make one: {command}", "zh": "还没有组织。新建：{command}"},
}
STANDS: Final = {
    "working": {"en": "working", "zh": "工作中"},
    "waiting": {"en": "waiting", "zh": "等待回复"},
    "paused": {"en": "paused", "zh": "已暂停"},
    "limit": {"en": "limit", "zh": "达到上限"},
    "provider": {"en": "provider", "zh": "模型服务受阻"},
    "idle": {"en": "idle", "zh": "空闲"},
    "stopped": {"en": "stopped", "zh": "已停止"},
}
HEADS: Final = {
    "en": ("name", "id", "stands", "people", "where"),
    "zh": ("名称", "ID", "状态", "人类操作员", "位置"),
}


def team_word(name: str, language: str, /, **known: object) -> str:
    """One phrase."""
    return in_language(WORDS[name], language).format(**known)


def stands_word(stands: str, language: str) -> str:
    """How an organisation stands."""
    return in_language(STANDS.get(stands, {"en": stands}), language)


def columns(language: str) -> tuple[Column, ...]:
    """Those of a list of organisations."""
    name, team, stands, people, where = HEADS.get(language.partition("-")[0], HEADS["en"])
    return (
        Column(name=name),
        Column(name=team, style="dim"),
        Column(name=stands, gives=True),
        Column(name=people, needs=60),
        Column(name=where, style="dim", gives=True, needs=80),
    )
