"""Rules for agents: add, change, remove, join tasks, remember."""

from __future__ import annotations

import re
from typing import Final

from greenroom.core.base.errors import Rejection, reject
from greenroom.core.base.ids import AgentId, has_mixed_scripts, is_lookalike, sender_of
from greenroom.core.base.text import has_high_heading, is_underline_of
from greenroom.core.rules.draft import (
    Draft,
    RuleResult,
    is_manager,
    is_trusted,
    reject_not_in_group,
    reject_not_manager,
    reject_unknown,
)
from greenroom.core.rules.endings import cancel_steps, settle_message
from greenroom.core.rules.intents import (
    AddAgent,
    AddParticipants,
    ChangeAgent,
    Remember,
    RemoveAgent,
    UpdateWorkingMemory,
)
from greenroom.core.rules.origins import ABOUT_KEY, emit_message, filter_people, notify_participants
from greenroom.core.rules.questions import ask_present_person
from greenroom.core.rules.queue import release_wait
from greenroom.core.state.agent import AgentAdded, AgentChanged, AgentRemoved, AgentState, Duty, DutyTaken, Remembered
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.task import ParticipantsAdded
from greenroom.core.state.team_state import TeamState, sort_rows
from greenroom.core.state.thread import ThreadClosed
from greenroom.core.state.timer import TimerCancelled

AGENT_NAME = re.compile(r"[^\s#@>:!?/,]{1,64}")
"""A valid agent id. The excluded characters separate the parts of step, thread and message ids."""

RESERVED_NAMES: Final = ("", "system", "door")
"""Names that no agent may have: the empty name, and the names that stand for Greenroom and its clients."""

MAX_MEMORY_CHARS: Final = 16_000
"""Maximum characters of an agent's permanent memory. All of it is in every prompt."""


def add_agent(draft: Draft, intent: AddAgent, by: str) -> RuleResult:
    """Add an agent. Its id must never have been used, and its name must be free."""
    if not is_manager(draft.state, by):
        return reject_not_manager(by, "make agents")
    state = draft.state
    refused = _check_name(state, intent.agent_id)
    if refused is not None:
        return refused
    spec = intent.spec if intent.spec is not None else state.blueprints.get(intent.blueprint or "")
    if spec is None:
        return reject_unknown("blueprint", str(intent.blueprint), tuple(state.blueprints))
    if (spec.manager or spec.kind != "llm") and not is_trusted(state, by):
        return reject_not_manager(by, "make a manager, a person or a system agent")
    refused = _check_granted(state, intent, spec, by)
    if refused is not None:
        return refused
    draft.emit(AgentAdded(at=draft.now, agent_id=intent.agent_id, spec=spec, made_by=by, origins=draft.read))
    ask_present_person(draft)
    return None


def _check_name(state: TeamState, name: AgentId) -> RuleResult:
    """Reject an id that is malformed, already used, or easily confused with another."""
    is_reserved = any(is_lookalike(name, known_name) for known_name in RESERVED_NAMES)
    if is_reserved or not AGENT_NAME.fullmatch(name) or not name.isprintable():
        hint = "Use 1 to 64 characters without spaces and without # @ > : ! ? / ,"
        return reject("bad_agent_id", "{name!r} cannot be an agent's id.", hint, name=name)
    if has_mixed_scripts(name):
        why = "{name!r} mixes letters of scripts that look alike."
        hint = "Write it in one script: Latin, Cyrillic or Greek."
        return reject("mixed_agent_id", why, hint, code="bad_agent_id", name=name)
    if name in state.agents or name in state.retired:
        return reject("agent_exists", "The agent id {name!r} is taken.", "Choose another.", name=name)
    alike = min(
        (known_name for known_name in (*state.agents, *state.retired) if is_lookalike(known_name, name)), default=None
    )
    if alike is not None:
        why = "The agent id {name!r} can be taken for {alike!r}."
        return reject("similar_agent_exists", why, "Choose another.", code="agent_exists", name=name, alike=alike)
    return None


def _check_granted(state: TeamState, intent: AddAgent, spec: AgentSpec, by: str) -> RuleResult:
    """Reject a spec from a model that grants more than the model itself has. People's blueprints may grant anything."""
    maker = state.agents.get(AgentId(by))
    if intent.spec is None or maker is None or is_trusted(state, by):
        return None
    extra = sorted({*spec.tools, *spec.calls} - {*maker.spec.tools, *maker.spec.calls})
    if not extra and not spec.groups and not spec.proof:
        return None
    return Rejection(
        code="not_yours_to_give",
        why=f"{by!r} may not give {', '.join(extra) or 'groups of tools'} to an agent: it has that not itself.",
        hint=f"Give what you have, or make it from a blueprint: {', '.join(sorted(state.blueprints)) or 'none'}.",
    )


def change_agent(draft: Draft, intent: ChangeAgent, by: str) -> RuleResult:
    """Change an agent's spec. Only people may, and the agent's kind and style stay."""
    if not is_trusted(draft.state, by):
        return Rejection(code="not_yours", why=f"{by!r} may not change agents.", hint="Ask a person.")
    agent = draft.state.agents.get(intent.agent_id)
    if agent is None:
        return reject_unknown("agent", intent.agent_id, tuple(draft.state.agents))
    if (agent.spec.kind, agent.spec.style) != (intent.spec.kind, intent.spec.style):
        values = {"name": agent.agent_id, "kind": agent.spec.kind, "style": agent.spec.style}
        return reject("another_kind", "{name!r} stays {kind} and {style}.", **values)
    draft.emit(AgentChanged(at=draft.now, agent_id=agent.agent_id, spec=intent.spec, changed_by=by))
    return None


def remove_agent(draft: Draft, intent: RemoveAgent, by: str) -> RuleResult:
    """Remove an agent. Its queued steps are skipped and waits for it end."""
    state = draft.state
    if not is_manager(state, by):
        return reject_not_manager(by, "remove agents")
    agent = state.agents.get(intent.agent_id)
    if agent is None:
        return reject_unknown("agent", intent.agent_id, tuple(state.agents))
    refused = _check_may_remove(state, agent, by) or _check_not_needed(state, agent)
    if refused is not None:
        return refused
    _close_open_work(draft, intent.agent_id)
    draft.emit(AgentRemoved(at=draft.now, agent_id=intent.agent_id, why=intent.why))
    ask_present_person(draft)
    return None


def _check_may_remove(state: TeamState, agent: AgentState, by: str) -> RuleResult:
    """Reject a model that removes a person, a system agent or another manager. It may remove workers and itself."""
    worker = agent.spec.kind == "llm" and not agent.spec.manager
    if worker or by == agent.agent_id or is_trusted(state, by):
        return None
    what = "is a person" if agent.spec.kind == "human" else "manages, or is a system agent"
    why = f"{by!r} may not remove {agent.agent_id!r}, who {what}: only a person may."
    return Rejection(code="not_yours_to_remove", why=why, hint="Ask a person with a message.")


def _check_not_needed(state: TeamState, agent: AgentState) -> RuleResult:
    name = agent.agent_id
    if agent.running is not None:
        hint = "Pause its task now, then remove it."
        return reject("agent_busy", "{name!r} runs step {step!r}.", hint, name=name, step=agent.running)
    if any(task.manager == name for task in state.tasks.values()):
        return reject("agent_manages", "{name!r} manages an open task.", "End the task first.", name=name)
    if any(
        subtask.agent == name and subtask.state in ("init", "running")
        for stage in state.stages.values()
        for subtask in stage.subtasks
    ):
        hint = "End or hand over its subtasks first."
        return reject("agent_allotted", "{name!r} has open subtasks.", hint, name=name)
    return None


def _close_open_work(draft: Draft, name: AgentId) -> None:
    """Close everything open that refers to the agent: waits, steps, messages, timers, threads."""
    for wait in sort_rows(draft.state.waits):
        if name in (wait.on, wait.waiter):
            release_wait(draft, wait.waiting_id, "agent_gone", silent=wait.waiter == name)
    _notify_senders(draft, name)
    cancel_steps(draft, list(draft.state.steps_of(name)), "skipped")
    for message in sort_rows(draft.state.mail):
        settle_message(draft, message, message.receiver if message.sender_id == name else (name,))
    for timer in sort_rows(draft.state.timers):
        if timer.agent_id == name:
            draft.emit(TimerCancelled(at=draft.now, timer_id=timer.timer_id))
    for thread in sort_rows(draft.state.threads):
        if thread.agent_id == name:
            draft.emit(ThreadClosed(at=draft.now, thread_id=thread.thread_id))


def _notify_senders(draft: Draft, name: AgentId) -> None:
    """Tell people that the agent will not read the messages they sent it."""
    unread = {
        unread_step.message_id: unread_step
        for unread_step in draft.state.steps_of(name)
        if unread_step.message_id is not None
    }
    for message, step in unread.items():
        writer = sender_of(message)
        if writer != name and filter_people(draft.state, (writer,)):
            about = step.work.text_content.partition("\n")[2]
            data = {"instruction": "remove_agent", "agent_id": name, ABOUT_KEY: about}
            text = f"{name} will not answer: the agent was removed. You wrote: {about}"
            emit_message(draft, name, (writer,), text, task=step.task_id, data=data, kind="instruction")


def add_participants(draft: Draft, intent: AddParticipants, by: str) -> RuleResult:
    """Add agents to a task's group."""
    task = draft.state.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return reject_unknown("task", intent.task_id, tuple(draft.state.tasks))
    if by != task.manager and not is_trusted(draft.state, by):
        return reject_not_manager(by, f"add agents to task {task.task_id!r}")
    for agent in intent.agents:
        if agent not in draft.state.agents:
            return reject_unknown("agent", agent, tuple(draft.state.agents))
    draft.emit(ParticipantsAdded(at=draft.now, task_id=intent.task_id, agents=intent.agents))
    notify_participants(draft, task, tuple(name for name in intent.agents if name not in task.group))
    return None


def remember(draft: Draft, intent: Remember, by: str) -> RuleResult:
    """Append to the agent's permanent memory. The text must be short and fit into a prompt."""
    agent = draft.state.agents.get(AgentId(by))
    if agent is None:
        return Rejection(code="not_an_agent", why=f"{by!r} is not an agent: only agents have a memory of their own.")
    content = intent.content.strip()
    if not content:
        return Rejection(code="empty_memory", why="There is nothing to remember.")
    if has_high_heading(content) or is_underline_of(agent.memory, content):
        why = "A heading in a memory is of the third level or lower."
        return Rejection(code="high_heading", why=why, hint="Begin it with ###.")
    if len(agent.memory) + len(content) > MAX_MEMORY_CHARS:
        why = f"The memory of {by!r} would be longer than {MAX_MEMORY_CHARS:,} characters."
        return Rejection(code="memory_full", why=why, hint="Remember less, and only what every later task needs.")
    draft.emit(Remembered(at=draft.now, agent_id=agent.agent_id, content=content, origins=draft.read))
    return None


def update_working_memory(draft: Draft, intent: UpdateWorkingMemory, by: str) -> RuleResult:
    """Add a task or stage to an agent's working memory."""
    state = draft.state
    if by != intent.agent_id and not is_manager(state, by):
        return reject_not_manager(by, f"change the working memory of {intent.agent_id!r}")
    if intent.agent_id not in state.agents:
        return reject_unknown("agent", intent.agent_id, tuple(state.agents))
    task = state.tasks.get(intent.task_id)
    if task is None:
        return reject_unknown("task", intent.task_id, tuple(state.tasks))
    if intent.agent_id not in task.group:
        return reject_not_in_group(intent.agent_id, task)
    if intent.stage_id is not None and intent.stage_id not in task.stages:
        return reject_unknown("stage", intent.stage_id, task.stages)
    duty = Duty(task_id=intent.task_id, stage_id=intent.stage_id)
    draft.emit(DutyTaken(at=draft.now, agent_id=intent.agent_id, duty=duty))
    return None
