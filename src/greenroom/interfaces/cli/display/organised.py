"""An organisation at a glance: who does what, which tasks and stages, who waits for whom, what it has cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from greenroom.app.organisation.letters import kind_of
from greenroom.app.organisation.names import in_language
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.state.agent import Agent
from greenroom.core.state.task import Task
from greenroom.core.state.world import World, ordered
from greenroom.interfaces.cli.display.moving import Moving
from greenroom.interfaces.cli.display.output import Console, harmless
from greenroom.interfaces.cli.display.progress import Lines, Progress, Rows
from greenroom.interfaces.cli.display.reasons import reason
from greenroom.interfaces.cli.display.rows import agents_table, dollars, stage_line
from greenroom.interfaces.cli.display.telling import Line, Teller
from greenroom.interfaces.cli.display.words import shorten

HEAD: Final = {
    "en": "{name} · tasks: {tasks} · at work: {busy} · {money}",
    "zh": "{name} · 任务：{tasks} · 工作中：{busy} · {money}",
}
OF: Final = {"en": "{spent} of {most}", "zh": "已用{spent}，上限{most}"}
WAITS: Final = {"en": "{who} waits for {whom}", "zh": "{who}在等待{whom}"}
OWES: Final = {
    "en": "{who} has {count} to answer: greenroom talk {name} --as {who}",
    "zh": "{who}有{count}条消息需要回复：greenroom talk {name} --as {who}",
}
PAUSED: Final = {"en": "stands still: {why}", "zh": "已暂停：{why}"}
UNTOLD: Final = ("NotePosted", "OwnerChanged")
TITLE: Final = 60
"""Characters of a task's name."""


def language_of(world: World) -> str:
    """The language in which its people are spoken to."""
    return next((one.spec.language for one in ordered(world.agents) if one.spec.kind == "human"), "en")


def head(world: World) -> Text:
    """The organisation in one line."""
    language, budget = language_of(world), world.budgets[TEAM_BUDGET]
    spent, most = dollars(budget.spent.money), budget.limits.money
    money = spent if most is None else in_language(OF, language).format(spent=spent, most=dollars(most))
    busy = sum(1 for one in world.agents.values() if one.running is not None)
    words = in_language(HEAD, language).format(
        name=world.team.name, tasks=max(len(world.tasks) - 1, 0), busy=busy, money=money
    )
    return Text(harmless(words), style="bold")


def tasks_lines(world: World) -> Iterator[Text]:
    """Every open task with its open stages; a pause is said where it is."""
    language = language_of(world)
    if world.team.paused is not None:
        yield Text(
            harmless(in_language(PAUSED, language).format(why=reason(world.team.paused, language))), style="yellow"
        )
    for task in sorted(world.tasks.values(), key=lambda one: (len(one.task_id), one.task_id)):
        yield _task(task)
        if task.paused is not None:
            yield Text(
                harmless(f"   {in_language(PAUSED, language).format(why=reason(task.paused, language))}"),
                style="yellow",
            )
        for stage in task.stages:
            yield Text("   ").append_text(stage_line(world.stages[stage]))


def _task(task: Task) -> Text:
    line = Text(f"{task.task_id} ", style="dim")
    line.append(harmless(shorten(task.name, TITLE)), style="not dim bold")
    return line.append(f"  {', '.join(task.group)}", style="not bold dim")


def waits_lines(world: World) -> Iterator[Text]:
    """Who waits for whom, and which people owe an answer."""
    language = language_of(world)
    for agent in ordered(world.agents):
        whom = waited_for(world, agent)
        if whom:
            words = in_language(WAITS, language).format(who=agent.agent_id, whom=", ".join(whom))
            yield Text(words, style="yellow")
    for agent in ordered(world.agents):
        count = sum(1 for one in world.mail.values() if agent.agent_id in one.receiver)
        if agent.spec.kind == "human" and count:
            words = in_language(OWES, language).format(who=agent.agent_id, count=count, name=world.team.name)
            yield Text(words, style="bold yellow")


def waited_for(world: World, agent: Agent) -> tuple[str, ...]:
    """Whom somebody waits for."""
    found = [world.waits[one].on for one in agent.step_lock if one in world.waits]
    asked = (one for one in ordered(world.mail) if one.sender_id == agent.agent_id and kind_of(one) == "approval")
    return tuple(dict.fromkeys((*found, *(person for one in asked for person in one.receiver))))


def picture(teller: Teller, trouble: str | None = None, *, moving: bool = True) -> RenderableType:
    """All of it."""
    world = teller.world
    parts: list[RenderableType] = [*((Text(""),) if moving else ()), head(world), *tasks_lines(world)]
    if trouble:
        parts.append(Text(trouble, style="bold red"))
    return Group(*parts, Text(""), agents_table(teller, moving=moving), *waits_lines(world))


class Story(Lines):
    """A line per event that people want to know of: what agents note on their board for each other is not."""

    def line(self, teller: Teller, line: Line) -> None:
        """Print it, if it is told."""
        if line.type not in UNTOLD or self._everything:
            super().line(teller, line)


class Picture(Story):
    """Lines above, and below them the organisation as it is now, until it is taken away."""

    def __init__(self, console: Console, *, everything: bool = False) -> None:
        super().__init__(console, everything=everything)
        self._moving = Moving(console)

    def begin(self, teller: Teller) -> None:
        """Show it from now on."""
        self._moving.begin(lambda: picture(teller, self._trouble))

    def end(self) -> None:
        """Take it away."""
        self._moving.end()


def pictured(progress: Progress, *, everything: bool) -> Progress:
    """What fits where this one fits: a picture where it can move, lines where lines are wanted, else the same."""
    console = Console(stderr=True, highlight=False)
    if isinstance(progress, Rows):
        return Picture(console, everything=everything)
    return Story(console, everything=everything) if isinstance(progress, Lines) else progress
