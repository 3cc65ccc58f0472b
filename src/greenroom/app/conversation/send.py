"""Sends a message from a person to the agents of a running task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Literal

from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.app.lookup import TaskReference
from greenroom.app.messages import translate
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import RefusedError, make_refusal
from greenroom.core.base.ids import AgentId, TaskId, ThreadId, thread_id
from greenroom.core.base.records import record
from greenroom.core.rules.intents import PostNote, QueueSteps, RemoveStep
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team_state import TeamState
from greenroom.teamwork.plan_graph import OWN_SUBTASKS

ADDRESS: Final = re.compile(r"@(\S+)\s+(\S.*)", re.DOTALL)
"""A message to one agent of a team run: `@code-writer-1 keep the names`."""


@record
class Delivery:
    """The readers and task of a sent message. Without an `owner` no process runs the team; `paused` is the reason.

    With `later`, agents that start later read it as a note.
    """

    readers: tuple[AgentId, ...]
    task: TaskId
    later: bool = False
    owner: str | None = None
    paused: str = ""

    @property
    def reader(self) -> str:
        """The readers in words."""
        return ", ".join((*self.readers, *([translate("send.later_agents")] if self.later else [])))


async def send_to_run(runtime: Runtime, reference: TaskReference, text: str) -> Delivery:
    """Queue a message for the task's manager, before other work but after unread messages.

    In a team run, the specialists that work now read it, and those that start later; or the one that it names first.
    """
    state = await runtime.state(reference.team)
    task = _find_task(state, reference)
    stage = next(iter(state.stages.values()), None) if state.team.kit == TEAM_RUN else None
    threads, body, later = _find_manager(state, task, text) if stage is None else _find_specialists(state, stage, text)
    notes = (PostNote(task_id=task, content=text),) if later else ()
    queued = (_queue_message(state, task, agent, thread, body) for agent, thread in threads.items())
    await runtime.ask(reference.team, *queued, *notes)
    await _drop_continuations(runtime, reference, await runtime.state(reference.team), threads)
    holder = await runtime.log.holder(reference.team)
    paused = state.tasks[task].paused or state.team.paused or ""
    owner = holder.owner if holder else None
    return Delivery(readers=tuple(threads), task=task, later=later, owner=owner, paused=paused)


Threads = Mapping[AgentId, ThreadId]


def _find_manager(state: TeamState, task: TaskId, text: str) -> tuple[Threads, str, bool]:
    reader = state.tasks[task].manager
    if state.agents[reader].spec.kind != "llm":
        raise make_refusal(
            "a_person", translate("send.manager_is_person", reader=reader, task=task), translate("send.talk_directly")
        )
    return {reader: thread_id(reader, task)}, text, False


def _find_specialists(state: TeamState, stage: Stage, text: str) -> tuple[Threads, str, bool]:
    """Return who works in a team run, the text for them, and whether agents that start later must read it too."""
    models = [subtask for subtask in stage.subtasks if state.agents[subtask.agent].spec.kind == "llm"]
    working = {part.agent: thread_id(part.agent, part.subtask_id) for part in models if part.state == "running"}
    waiting = [part.agent for part in models if part.state == "init" and part.name not in OWN_SUBTASKS]
    address = ADDRESS.fullmatch(text)
    if address is not None and address[1] in state.agents:
        named, text = AgentId(address[1]), address[2]
        working, waiting = {name: working[name] for name in working if name == named}, [*filter(named.__eq__, waiting)]
    if not working and not waiting:
        raise make_refusal("nothing_open", translate("send.no_reader", team=state.team.team_id))
    return working, text, bool(waiting)


def _queue_message(state: TeamState, task: TaskId, reader: AgentId, thread: ThreadId, text: str) -> QueueSteps:
    work = Work(type="skill", executor="converse", text_content=text)
    # An earlier message may still be unread: the prompt itself, while its checks run.
    unread = any(
        step.thread_id == thread and step.work.type == "skill" and step.state == "init" and bool(step.work.text_content)
        for step in state.steps_of(reader)
    )
    position: Literal["last", "next"] = "last" if unread else "next"
    known = thread if thread in state.threads and state.team.kit == TEAM_RUN else None
    return QueueSteps(agent_id=reader, works=(work,), task_id=task, thread_id=known, place=position)


async def _drop_continuations(runtime: Runtime, reference: TaskReference, state: TeamState, threads: Threads) -> None:
    """Remove queued turns that would only continue. The turn that reads the message also continues."""
    for step in (step for agent in threads for step in state.steps_of(agent)):
        if step.thread_id == threads[step.agent_id] and _is_continuation(step):
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
