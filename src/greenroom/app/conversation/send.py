"""Telling: a person says something to whoever manages a task, while it goes on and from wherever they are."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from greenroom.app.lookup import Found, refused
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import Refused
from greenroom.core.base.ids import AgentId, TaskId, thread_id
from greenroom.core.base.records import record
from greenroom.core.rules.intents import QueueSteps, RemoveStep
from greenroom.core.state.step import Step, Work
from greenroom.core.state.world import World


@record
class Delivery:
    """Who will read it, in which task. Without an owner nobody runs the team; `paused` is why it stands still."""

    reader: AgentId
    task: TaskId
    owner: str | None = None
    paused: str = ""


async def tell(runtime: Runtime, found: Found, text: str) -> Delivery:
    """Put it into the conversation of the task's manager, before all else that is queued there but what was said."""
    world = await runtime.world(found.team)
    task = _task(world, found)
    reader = world.tasks[task].manager
    if world.agents[reader].spec.kind != "llm":
        raise refused("a_person", f"{reader!r} manages {task} and is no agent.", "Talk to them yourself.")
    work = Work(type="skill", executor="converse", text_content=text)
    # Something that was said before may not have been read yet: the request itself, while its checks still run.
    unread = any(
        step.task_id == task and step.work.type == "skill" and step.state == "init" and bool(step.work.text_content)
        for step in world.steps_of(reader)
    )
    place: Literal["last", "next"] = "last" if unread else "next"
    await runtime.ask(found.team, QueueSteps(agent_id=reader, works=(work,), task_id=task, place=place))
    await _one_turn_less(runtime, found, await runtime.world(found.team), reader, task)
    holder = await runtime.log.holder(found.team)
    paused = world.tasks[task].paused or world.team.paused or ""
    return Delivery(reader=reader, task=task, owner=holder.owner if holder else None, paused=paused)


async def _one_turn_less(runtime: Runtime, found: Found, world: World, reader: AgentId, task: TaskId) -> None:
    """A turn that would only go on is not needed any more: the one in which this is read goes on as well."""
    home = thread_id(reader, task)
    for step in world.steps_of(reader):
        if step.thread_id == home and _only_goes_on(step):
            with suppress(Refused):  # it has just begun
                await runtime.ask(found.team, RemoveStep(step_id=step.step_id))


def _only_goes_on(step: Step) -> bool:
    work = step.work
    return (
        step.state == "init"
        and step.cause is not None
        and step.answers is None
        and step.message_id is None
        and work.executor == "converse"
        and not work.text_content
    )


def _task(world: World, found: Found) -> TaskId:
    """The task that is meant: the one that was named, else the first that is open."""
    if found.task is not None and found.task in world.tasks:
        return found.task
    if found.task is None and world.tasks:
        return min(world.tasks, key=lambda name: (len(name), name))
    what = found.task or "all that was worked on"
    hint = f"Begin something new, or take it up at an earlier moment: `greenroom fork {found.team}`."
    raise refused("nothing_open", f"Nobody reads this any more: {what} in {found.team} is over.", hint)
