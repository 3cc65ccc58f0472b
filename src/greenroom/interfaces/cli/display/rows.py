"""The live picture of a team: its task and stage, and a row per agent. Made from what is committed, nothing else."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from greenroom.app.messages import CHINESE, in_language
from greenroom.core.base.amounts import NOTHING
from greenroom.core.state.agent import Agent
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from greenroom.core.state.world import World
from greenroom.interfaces.cli.display.tables import Column, Fitted, row
from greenroom.interfaces.cli.display.telling import Teller
from greenroom.interfaces.cli.display.words import shorten, step_words
from greenroom.interfaces.cli.display.words_zh import step_words_zh

COLUMNS: Final = (
    Column(name="agent"),
    Column(name="role", style="dim", gives=True, needs=80),
    Column(name="doing", gives=True),
    Column(name="step", style="dim", least=7, needs=60),
    Column(name="state", least=9),
    Column(name="tokens", right=True, least=6, needs=70),
    Column(name="time", right=True, least=6, needs=50),
)
HEADS_ZH: Final = ("Agent", "角色", "正在做", "步骤", "状态", "Token", "时间")
COLOURS: Final = ("cyan", "magenta", "green", "yellow", "blue", "bright_red")
MOST: Final = 16
"""Rows that fit a screen."""

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SUBTASKS: Final = {
    "init": ("○", "dim"),
    "running": ("●", "bold"),
    "finished": ("✓", "green"),
    "failed": ("✗", "red"),
    "skipped": ("–", "dim"),
    "cancelled": ("✗", "dim"),
}
STATES: Final = {"working": "bold", "waiting": "yellow", "asking": "yellow", "paused": "yellow", "idle": "dim"}


STATES_ZH: Final = {
    "working": "工作中",
    "waiting": "等待中",
    "asking": "等待批准",
    "paused": "已暂停",
    "queued": "排队中",
    "idle": "空闲",
    "cancelling": "正在取消",
}
DOING: Final = {
    "attempt": {"en": " (attempt {number})", "zh": "（第{number}次）"},
    "asks": {"en": "asks you: {text}", "zh": "请求批准：{text}"},
    "waits": {"en": "waits for {names}", "zh": "等待{names}"},
    "next": {"en": "next: {text}", "zh": "下一步：{text}"},
    "person": {"en": "a person", "zh": "人类操作员"},
    "about": {"en": " about {name!r}", "zh": "：{name}"},
    "more": {"en": "and {count} more", "zh": "另有{count}个"},
}


def _word(name: str, language: str, /, **known: object) -> str:
    return in_language(DOING[name], language).format(**known)


def colour(world: World, agent: str) -> str:
    """An agent keeps its colour as long as nobody before it leaves."""
    names: list[str] = sorted(world.agents)
    return COLOURS[names.index(agent) % len(COLOURS)] if agent in names else ""


def doing(world: World, agent: Agent, language: str = "en") -> tuple[str, str, str]:
    """What the agent does in words, its step, and its state in a word."""
    words = step_words_zh if language == CHINESE else step_words
    if agent.running is not None:
        step = world.steps[agent.running]
        again = _word("attempt", language, number=step.attempt) if step.attempt > 1 else ""
        return (
            f"{words(step)}{_about(world, step, language)}{again}",
            step.step_id,
            "working" if step.state == "running" else step.state,
        )
    asked = [one for one in world.approvals.values() if one.agent_id == agent.agent_id and one.state == "pending"]
    if asked:
        return _word("asks", language, text=shorten(asked[0].question, 60)), asked[0].step_id, "asking"
    if agent.step_lock:
        names = ", ".join(dict.fromkeys(world.waits[one].on for one in agent.step_lock if one in world.waits))
        return _word("waits", language, names=names), "", "waiting"
    if agent.todo:
        step = world.steps[agent.todo[0]]
        paused = world.team.paused or world.tasks[step.task_id].paused
        return _word("next", language, text=words(step)), step.step_id, "paused" if paused else "queued"
    return _word("person", language) if agent.spec.kind == "human" else "", "", "idle"


def _about(world: World, step: Step, language: str) -> str:
    """Which subtask somebody thinks about."""
    stage = world.stages.get(step.stage_id) if step.stage_id else None
    subtask = stage.subtask(step.subtask_id) if stage and step.subtask_id else None
    if subtask is None or subtask.name == step.agent_id or step.work.type != "skill" or step.answers is not None:
        return ""
    return _word("about", language, name=subtask.name)


def worked(teller: Teller, agent: Agent, *, now: int) -> int:
    """Milliseconds of work, with what runs now."""
    spent = teller.spent.get(agent.agent_id, NOTHING).millis
    step = teller.world.steps.get(agent.running) if agent.running else None
    running = now - step.started_at if step and step.started_at else 0
    return spent + max(running, 0)


def agents_table(teller: Teller, *, moving: bool = False) -> Fitted:
    """A row per agent. While it is `moving`, who works shows a sign of life and their time goes on."""
    now = int(time.time() * 1000) if moving else teller.at
    rows = [_agent(teller, agent, now, moving=moving) for agent in _shown(teller.world)]
    if len(teller.world.agents) > MOST:
        more = _word("more", teller.language, count=len(teller.world.agents) - MOST)
        rows.append(row("", "", more, "", "", "", ""))
    return Fitted(_columns(teller.language), rows, spread=moving)


def _columns(language: str) -> tuple[Column, ...]:
    if language != CHINESE:
        return COLUMNS
    return tuple(replace(one, name=name) for one, name in zip(COLUMNS, HEADS_ZH, strict=True))


def _agent(teller: Teller, agent: Agent, now: int, *, moving: bool) -> list[Text]:
    name = agent.agent_id
    what, step, state = doing(teller.world, agent, teller.language)
    told = STATES_ZH.get(state, state) if teller.language == CHINESE else state
    sign = f"{SPINNER[now // 100 % len(SPINNER)]} " if moving and agent.running else ""
    return row(
        Text(name, style=colour(teller.world, name)),
        agent.spec.role,
        what,
        step,
        Text(f"{sign}{told}", style=STATES.get(state, "")),
        f"{teller.spent.get(name, NOTHING).tokens:,}",
        seconds(worked(teller, agent, now=now)),
    )


def _shown(world: World) -> list[Agent]:
    """All agents by name; when they are too many, those who have something to do."""
    every = sorted(world.agents.values(), key=lambda agent: agent.agent_id)
    if len(every) <= MOST:
        return every
    return sorted(every, key=lambda agent: (agent.working_state == "idle", agent.agent_id))[:MOST]


def seconds(millis: int) -> str:
    """A length of time, as short as it can be said."""
    if millis < 60_000:
        return f"{millis / 1000:.1f}s"
    minutes, rest = divmod(millis // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s"


def dollars(money: int) -> str:
    """Millionths of a dollar, with as many digits as it takes to see them."""
    value = money / 1_000_000
    return f"${value:,.2f}" if value >= 1 or not money else f"${value:.4f}" if value >= 0.0001 else f"${value:.6f}"


def stage_line(stage: Stage) -> Text:
    """A stage and how its subtasks stand."""
    line = Text(f"{stage.stage_id} {stage.intention}  ", style="bold" if stage.state == "running" else "dim")
    for subtask in stage.subtasks:
        sign, style = SUBTASKS[subtask.state]
        line.append(f" {sign} {subtask.name} ", style=f"not bold {style}")
    return line


def picture(teller: Teller, trouble: str | None = None) -> RenderableType:
    """The live area: tasks, stages, agents."""
    world = teller.world
    parts: list[RenderableType] = [Text("")]
    for task in world.tasks.values():
        head = Text(f"{task.task_id} {task.name}", style="bold")
        head.append(f"  team {world.team.team_id} · version {teller.version}", style="not bold dim")
        parts += [head, *(stage_line(world.stages[name]) for name in task.stages)]
    if trouble:
        parts.append(Text(trouble, style="bold red"))
    parts += [Text(""), agents_table(teller, moving=True)]
    return Group(*parts)
