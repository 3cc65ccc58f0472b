"""What a person reads when they talk to an organisation, in its language: letters, messages, notices, who and what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from greenroom.app.organisation.commands import commands
from greenroom.app.organisation.letters import Letter, approval_of, subtask_of
from greenroom.app.organisation.names import in_language
from greenroom.app.organisation.notices import notices
from greenroom.core.base.ids import AgentId
from greenroom.core.state.message import Message
from greenroom.core.state.world import World, ordered
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.rows import colour, doing

WORDS: Final = {
    "asks": {"en": "asks", "zh": "提问"},
    "waits": {"en": ", waits for you", "zh": "，正在等您"},
    "duty": {"en": "your part of {stage}", "zh": "您在{stage}中的职责"},
    "briefing": {"en": "Stage goal: {goal}\nYour goal: {duty}", "zh": "阶段目标：{goal}\n您的职责：{duty}"},
    "stage": {"en": "how to go on after {stage}", "zh": "{stage}之后如何继续"},
    "approval": {"en": "wants a yes or a no", "zh": "请批准或拒绝"},
    "how_question": {"en": "/answer {number} …", "zh": "/answer {number} …（回复）"},
    "how_duty": {
        "en": "/done {number} REPORT, or /failed {number} WHY",
        "zh": "/done {number} 汇报，或 /failed {number} 原因",
    },
    "how_approval": {"en": "/yes {number} or /no {number} WHY", "zh": "/yes {number} 批准，/no {number} 原因 拒绝"},
    "how_always": {
        "en": "/yes {number} run or /yes {number} always for {rules}",
        "zh": "/yes {number} run 或 /yes {number} always 长期批准 {rules}",
    },
    "nothing": {"en": "Nothing waits for you.", "zh": "没有需要您处理的消息。"},
    "some": {"en": "Waiting for you: {count}", "zh": "等您处理：{count}条"},
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
    "you": {"en": " (you)", "zh": "（您）"},
    "person": {"en": "a person", "zh": "人类操作员"},
    "idle": {"en": "has nothing to do", "zh": "空闲"},
    "one_question": {"en": "Say which: {numbers}.", "zh": "请指明编号：{numbers}。"},
    "no_question": {"en": "No step waits for a yes or a no.", "zh": "没有等待批准的步骤。"},
    "no_answer": {"en": "That is none of the answers. {how}", "zh": "无法识别的回答。{how}"},
    "resumed": {"en": "It goes on.", "zh": "已继续。"},
    "resumed_within": {"en": "It goes on as far as its limits let it.", "zh": "在上限允许的范围内继续。"},
    "nothing_held": {"en": "Nothing stands still.", "zh": "没有暂停的内容。"},
    "hello": {"en": "{name} · you are {me} · {where} · help", "zh": "{name} · 您是{me} · {where} · help"},
    "runs_here": {"en": "it works as long as you are here", "zh": "您在线期间它会一直工作"},
    "runs_there": {"en": "it works in another terminal", "zh": "它正在另一个终端工作"},
    "stopped": {"en": "it is stopped: greenroom team start {name}", "zh": "它已停止：greenroom team start {name}"},
    "rests": {
        "en": "It is stopped, and does nothing with that yet. `resume` lets it go on.",
        "zh": "组织已停止，暂不处理。输入resume继续。",
    },
    "plain": {
        "en": "Plain text goes to {manager}, who makes a task of it.",
        "zh": "直接输入的文字会发给{manager}，由其创建任务。",
    },
    "literal": {
        "en": "A line that begins with a space is said as it is.",
        "zh": "以空格开头的一行会原样发送。",
    },
    "leave": {"en": "Ctrl-C once more, or Ctrl-D, leaves.", "zh": "再按一次Ctrl-C或按Ctrl-D离开。"},
    "nobody": {"en": "Nobody runs it. Let it work: {command}", "zh": "没有人在运行它。启动：{command}"},
    "over": {
        "en": "{name} is over. `greenroom show {team}` has what it did.",
        "zh": "{name}已结束。它做过什么：`greenroom show {team}`。",
    },
    "yourself": {"en": "{me} is you. Name somebody else.", "zh": "{me}就是您。请写别人的名字。"},
    "gave_up": {"en": "{who} could not do it: {why}", "zh": "{who}未能完成：{why}"},
    "unanswered": {
        "en": "{manager} has nothing more to do, and has not answered. Say more exactly what you want.",
        "zh": "{manager}已没有要做的事，但没有答复。请把需求说得更具体。",
    },
    "lost": {"en": "Task {task} ({name}) is over: {state}.", "zh": "任务{task}（{name}）已结束：{state}。"},
    "stuck": {
        "en": "Task {task} ({name}) is not over, and nobody has anything to do in it. Ask {manager} to go on with it.",
        "zh": "任务{task}（{name}）尚未结束，但没有人在处理。请让{manager}继续。",
    },
    "stopped_why": {
        "en": "{name} does not work: {why}. Let it work: {command}",
        "zh": "{name}没有工作：{why}。启动：{command}",
    },
    "waits_for": {"en": "It waits for answers of: {people}.", "zh": "正在等待回复：{people}。"},
    "stopped_waiting": {
        "en": "No longer waiting. What you sent is not lost. Go on with: {command} (`notices` there has what came).",
        "zh": "已停止等待。已发送的内容不会丢失。继续：{command}（在其中输入notices查看收到的通知）。",
    },
    "too_long": {
        "en": "Line {line} has more than 1 MB, and was not sent. Split it.",
        "zh": "第{line}行超过1 MB，未发送。请拆分。",
    },
    "no_text": {
        "en": "Line {line} is no text, and was not sent. Write it in UTF-8.",
        "zh": "第{line}行不是文本，未发送。请使用UTF-8编码。",
    },
    "left": {"en": "Come back with: {command}", "zh": "再次进入：{command}"},
}


INDENT: Final = "    "
"""Only the house begins a line: before what others wrote stands this, so that nobody speaks in its voice."""


NARROW: Final = 24
"""Columns below which a column of explanations is none."""


class Hanging:
    """A text on a terminal, broken between words; what a line is broken into is indented like it, and never not.

    With a `column`, its one line explains there what stands before it; where that is too narrow, below it.
    """

    def __init__(self, text: Text, column: int = 0) -> None:
        self.text = text
        self.column = column

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it in this width."""
        return self._explained(console, options) if self.column else self._indented(console, options)

    def _explained(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head, about = self.text[: self.column], self.text[self.column :]
        beside = options.max_width - head.cell_len >= NARROW
        deep = head.cell_len if beside else 2 * len(INDENT)
        if not beside:
            head.rstrip()
            yield head
        for place, line in enumerate(about.wrap(console, max(options.max_width - deep, NARROW))):
            yield (head if beside and not place else Text(" " * deep)).append_text(line)

    def _indented(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.split(allow_blank=True):
            deep = len(line.plain) - len(line.plain.lstrip())
            rest = deep or len(INDENT)
            wide = options.max_width - (deep if line.cell_len <= options.max_width else rest)
            for place, part in enumerate(line[deep:].wrap(console, max(wide, 20)) or [Text("")]):
                yield Text(" " * (rest if place else deep)).append_text(part)


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
    waits = word("waits", language) if one.waiting is not None else ""
    text.append(f" · {word(kinds[one.kind], language, stage=stage)}{waits}\n", style="not bold dim")
    text.append(_indented(_asked(world, one, language)), style="not bold default")
    return text.append(f"\n    {how(world, one, language)}", style="not bold dim")


def _asked(world: World, one: Letter, language: str) -> str:
    """What a letter says. A duty begins with the house's own words, which the log has in English."""
    said = one.message.message
    stage = world.stages.get(one.stage) if one.stage is not None and one.kind == "duty" else None
    subtask = stage.subtask(subtask_of(one.message)) if stage is not None else None
    if stage is None or subtask is None:
        return said
    known = {"goal": stage.intention, "duty": subtask.duty}
    logged = word("briefing", "en", **known)
    return word("briefing", language, **known) + said.removeprefix(logged) if said.startswith(logged) else said


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
        each = (Text("◆ ", style="bold blue").append(hung(one), style="not bold default") for one in told)
        return Text("\n").join(each)
    text = Text(f"#{message.group} " if message.group else "", style="dim")
    text.append(message.sender_id, style=f"not dim bold {colour(world, message.sender_id)}".strip())
    return text.append("\n").append(_indented(message.message), style="not dim not bold default")


def _indented(text: str) -> str:
    return "\n".join(f"{INDENT}{line}" for line in harmless(text).splitlines()) or INDENT


def hung(text: str) -> str:
    """Words of the house with something of others in them: they have the first line, and no other begins like it."""
    return f"\n{INDENT}".join(harmless(text).splitlines())


def who_lines(world: World, me: AgentId, language: str) -> Iterator[Text]:
    """Everybody: what they are, and what they do now."""
    for agent in ordered(world.agents):
        what, _, state = doing(world, agent, language)
        busy = what if agent.running or agent.step_lock or agent.todo or state == "asking" else word("idle", language)
        told = dict.fromkeys((agent.spec.role, word("person", language) if agent.spec.kind == "human" else busy))
        line = Text(agent.agent_id, style=f"bold {colour(world, agent.agent_id)}".strip())
        mine = word("you", language) if agent.agent_id == me else ""
        yield line.append(harmless(f"{mine}  {' · '.join(told)}"), style="not bold default")


def help_lines(language: str, manager: str) -> Iterator[tuple[Text, int]]:
    """What can be typed, each with the column where it is explained."""
    yield Text(word("plain", language, manager=manager)), 0
    known = {name: about.rpartition("  ") for name, about in commands(language).items()}
    wide = max(cell_len(f"/{name} {takes}") for name, (takes, _, _) in known.items())
    for name, (takes, _, about) in known.items():
        typed = Text(f"  {set_cell_size(f'/{name} {takes}', wide)}  ", style="bold")
        yield typed.copy().append(about, style="not bold dim"), len(typed)
    yield Text(word("literal", language)), 0
