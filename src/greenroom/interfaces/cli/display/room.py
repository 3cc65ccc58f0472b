"""What a person reads when they talk to an organisation, in its language: letters, messages, notices, who and what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from greenroom.app.organisation.letters import Letter, approval_of
from greenroom.app.organisation.names import in_language
from greenroom.app.organisation.notices import notices
from greenroom.app.organisation.typed import COMMANDS
from greenroom.core.base.ids import AgentId
from greenroom.core.state.message import Message
from greenroom.core.state.world import World, ordered
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.rows import colour, doing

WORDS: Final = {
    "asks": {"en": "asks", "zh": "提问"},
    "waits": {"en": "waits for you", "zh": "正在等您"},
    "duty": {"en": "your part of {stage}", "zh": "您在{stage}中的职责"},
    "stage": {"en": "how to go on after {stage}", "zh": "{stage}之后如何继续"},
    "approval": {"en": "wants a yes or a no", "zh": "请批准或拒绝"},
    "how_question": {"en": "answer {number} …", "zh": "answer {number} …（回复）"},
    "how_duty": {
        "en": "done {number} REPORT, or failed {number} WHY",
        "zh": "done {number} 汇报，或 failed {number} 原因",
    },
    "how_approval": {"en": "yes {number} or no {number} WHY", "zh": "yes {number} 批准，no {number} 原因 拒绝"},
    "how_always": {
        "en": "yes {number} run or yes {number} always for {rules}",
        "zh": "yes {number} run 或 yes {number} always 长期批准 {rules}",
    },
    "nothing": {"en": "Nothing waits for you.", "zh": "没有需要您处理的消息。"},
    "some": {"en": "{count} wait for you:", "zh": "有{count}条消息等您处理："},
    "sent": {"en": "→ {to}", "zh": "→ {to}"},
    "answered": {"en": "→ {to} (letter {number} is answered)", "zh": "→ {to}（消息{number}已回复）"},
    "reported": {"en": "Letter {number} is done.", "zh": "消息{number}已处理。"},
    "recorded": {"en": "Written down as a step of yours.", "zh": "已记录为您的步骤。"},
    "formed": {
        "en": "You talk in the group {group} now. Say something there: group {group}: …",
        "zh": "群组{group}已建立。发言：group {group}: …",
    },
    "no_notices": {"en": "The house has told you nothing yet.", "zh": "还没有通知。"},
    "no_history": {"en": "Nothing was said between you and {who} yet.", "zh": "您和{who}之间还没有对话。"},
    "person": {"en": "a person", "zh": "人类操作员"},
    "idle": {"en": "has nothing to do", "zh": "空闲"},
    "one_question": {"en": "Say which: {numbers}.", "zh": "请指明编号：{numbers}。"},
    "no_question": {"en": "No step waits for a yes or a no.", "zh": "没有等待批准的步骤。"},
    "no_answer": {"en": "That is none of the answers. {how}", "zh": "无法识别的回答。{how}"},
    "resumed": {"en": "It goes on.", "zh": "已继续。"},
    "nothing_held": {"en": "Nothing stands still.", "zh": "没有暂停的内容。"},
    "hello": {"en": "{name} · you are {me} · {where} · help", "zh": "{name} · 您是{me} · {where} · help"},
    "runs_here": {"en": "it works as long as you are here", "zh": "您在线期间它会一直工作"},
    "runs_there": {"en": "it works in another terminal", "zh": "它正在另一个终端工作"},
    "stopped": {"en": "it is stopped: greenroom team start {name}", "zh": "它已停止：greenroom team start {name}"},
    "plain": {
        "en": "Plain text goes to {manager}, who makes a task of it.",
        "zh": "直接输入的文字会发给{manager}，由其创建任务。",
    },
    "leave": {"en": "Ctrl-C once more, or Ctrl-D, leaves.", "zh": "再按一次Ctrl-C或按Ctrl-D离开。"},
    "stands_still": {"en": "It stands still: {why}. `resume` lets it go on.", "zh": "已暂停：{why}。输入resume继续。"},
    "nobody": {"en": "Nobody runs it. Let it work: {command}", "zh": "没有人在运行它。启动：{command}"},
    "left": {"en": "Come back with: {command}", "zh": "再次进入：{command}"},
}
HELP_ZH: Final = {
    "answer": "回复第N条消息",
    "done": "第N条消息中的职责已完成",
    "failed": "第N条消息中的职责无法完成",
    "yes": "批准第N条消息中的步骤；yes N run 或 yes N always 表示长期批准",
    "no": "拒绝第N条消息中的步骤",
    "to": "给某人发消息并要求回复；多人：NAME,NAME: TEXT",
    "tell": "给某人发消息，无需回复",
    "ask": "请某人办事；直接输入文字则发给管理者",
    "group": "在群组中发言；用@点名的Agent也会收到",
    "form": "与他人建立群组",
    "tool": "手动使用工具；tool NAME in t2.s1 {…} 绑定到阶段",
    "inbox": "等您处理的消息",
    "notices": "系统通知",
    "tasks": "进行中的任务",
    "who": "有谁，在做什么",
    "history": "您与某人的对话",
    "resume": "继续暂停的内容",
    "help": "可以输入什么",
    "exit": "离开；组织保留",
}


class Hanging:
    """A text on a terminal, broken between words; what a line begins with is kept on those that it is broken into."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it in this width."""
        for line in self.text.split(allow_blank=True):
            deep = len(line.plain) - len(line.plain.lstrip())
            for part in line[deep:].wrap(console, max(options.max_width - deep, 20)) or [Text("")]:
                yield Text(" " * deep).append_text(part)


def word(name: str, language: str, /, **known: object) -> str:
    """One phrase."""
    return in_language(WORDS[name], language).format(**known)


def letter_text(world: World, one: Letter, language: str) -> Text:
    """A letter: its number, who wrote it, what is asked, and how to answer it."""
    message = one.message
    text = Text(f"{one.number}", style="bold yellow").append("  ")
    text.append(message.sender_id, style=f"not bold {colour(world, message.sender_id)}".strip())
    stage = str((message.data or {}).get("stage_id", message.stage_relative))
    kinds = {"question": "asks", "duty": "duty", "stage": "stage", "approval": "approval"}
    waits = f", {word('waits', language)}" if one.waiting is not None else ""
    text.append(f" · {word(kinds[one.kind], language, stage=stage)}{waits}\n", style="not bold dim")
    text.append(_indented(message.message), style="not bold default")
    return text.append(f"\n    {how(world, one, language)}", style="not bold dim")


def how(world: World, one: Letter, language: str) -> str:
    """How a letter is answered; where a yes may be one to a rule, also that."""
    asked = world.approvals.get(approval_of(one.message)) if one.kind == "approval" else None
    name = {"question": "how_question", "approval": "how_approval"}.get(one.kind, "how_duty")
    if asked is None:
        return word(name, language, number=one.number)
    if asked.words:
        return word("how_question", language, number=one.number)
    rules = asked.grant.replace("\n", "; ")
    more = f"; {word('how_always', language, number=one.number, rules=harmless(rules))}" if rules else ""
    return f"{word(name, language, number=one.number)}{more}"


def said_text(world: World, message: Message, language: str, me: AgentId) -> Text:
    """A message that wants no answer: who wrote it, where, what; the house's own words where it only tells."""
    told = notices(message, me, language)
    if told:
        return Text("◆ ", style="bold blue").append(harmless("\n".join(told)), style="not bold default")
    text = Text(f"#{message.group} " if message.group else "", style="dim")
    text.append(message.sender_id, style=f"not dim bold {colour(world, message.sender_id)}".strip())
    return text.append("\n").append(_indented(message.message), style="not dim not bold default")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in harmless(text).splitlines()) or "    "


def who_lines(world: World, me: AgentId, language: str) -> Iterator[Text]:
    """Everybody: what they are, and what they do now."""
    for agent in ordered(world.agents):
        what, _, state = doing(world, agent)
        busy = what if agent.running or agent.step_lock or agent.todo or state == "asking" else word("idle", language)
        told = word("person", language) if agent.spec.kind == "human" else busy
        line = Text(agent.agent_id, style=f"bold {colour(world, agent.agent_id)}".strip())
        mine = " (you)" if agent.agent_id == me and language != "zh" else "（您）" if agent.agent_id == me else ""
        yield line.append(harmless(f"{mine}  {agent.spec.role} · {told}"), style="not bold default")


def help_lines(language: str, manager: str) -> Iterator[Text]:
    """What can be typed."""
    yield Text(word("plain", language, manager=manager))
    takes = {name: (about.partition("  ")[0] if "  " in about else "") for name, about in COMMANDS.items()}
    wide = max(len(f"{name} {taken}") for name, taken in takes.items())
    for name, about in COMMANDS.items():
        said = HELP_ZH[name] if language == "zh" else about.partition("  ")[2] or about
        yield Text(f"  {f'{name} {takes[name]}':<{wide}}  ", style="bold").append(said, style="not bold dim")
