"""Sends a message from a person to the manager of a running task."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from greenroom.app.lookup import TaskReference, make_refusal
from greenroom.app.messages import translate
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import RefusedError
from greenroom.core.base.ids import AgentId, TaskId, thread_id
from greenroom.core.base.records import record
from greenroom.core.rules.intents import QueueSteps, RemoveStep
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team_state import TeamState


@record
class Delivery:
    """The reader and task of a sent message. Without an `owner` no process runs the team; `paused` is the reason."""

    reader: AgentId
    task: TaskId
    owner: str | None = None
    paused: str = ""


async def send_to_manager(runtime: Runtime, reference: TaskReference, text: str) -> Delivery:
    """Queue a message for the task's manager, before other work but after unread messages."""
    state = await runtime.state(reference.team)
    task = _find_task(state, reference)
    reader = state.tasks[task].manager
    if state.agents[reader].spec.kind != "llm":
        raise make_refusal(
            "a_person", translate("send.manager_is_person", reader=reader, task=task), translate("send.talk_directly")
        )
    work = Work(type="skill", executor="converse", text_content=text)
    # An earlier message may still be unread: the prompt itself, while its checks run.
    unread = any(
        step.task_id == task and step.work.type == "skill" and step.state == "init" and bool(step.work.text_content)
        for step in state.steps_of(reader)
    )
    position: Literal["last", "next"] = "last" if unread else "next"
    await runtime.ask(reference.team, QueueSteps(agent_id=reader, works=(work,), task_id=task, place=position))
    await _drop_continuations(runtime, reference, await runtime.state(reference.team), reader, task)
    holder = await runtime.log.holder(reference.team)
    paused = state.tasks[task].paused or state.team.paused or ""
    return Delivery(reader=reader, task=task, owner=holder.owner if holder else None, paused=paused)


async def _drop_continuations(
    runtime: Runtime, reference: TaskReference, state: TeamState, reader: AgentId, task: TaskId
) -> None:
    """Remove queued turns that would only continue. The turn that reads the message also continues."""
    manager_thread = thread_id(reader, task)
    for step in state.steps_of(reader):
        if step.thread_id == manager_thread and _is_continuation(step):
            with suppress(RefusedError):  # it has just started
                await runtime.ask(reference.team, RemoveStep(step_id=step.step_id))


def _is_continuation(step: Step) -> bool:
    work = step.work
    return (
        step.state == "init"
        and step.cause is not None
        and step.answers is None
        and step.message_id is None
        and work.executor == "converse"
        and not work.text_content
    )


def _find_task(state: TeamState, reference: TaskReference) -> TaskId:
    """Return the named task, or the first open one. Raise `RefusedError` if it is over."""
    if reference.task is not None and reference.task in state.tasks:
        return reference.task
    if reference.task is None and state.tasks:
        return min(state.tasks, key=lambda name: (len(name), name))
    ended_work = reference.task or translate("send.all_work")
    hint = translate("send.start_new", team=reference.team)
    raise make_refusal("nothing_open", translate("send.work_over", work=ended_work, team=reference.team), hint)
