"""Rules for hand-overs of a whole task: one agent of a routing team has it at a time, and a message passes it on."""

from __future__ import annotations

import hashlib

from greenroom.core.base.errors import Rejection, reject
from greenroom.core.base.ids import AgentId
from greenroom.core.rules.draft import Draft, RuleResult
from greenroom.core.rules.intents import SendMessage
from greenroom.core.state.agent import AgentAdded
from greenroom.core.state.task import HOPS_KEPT, Hop, ParticipantsAdded, Routing, Task, TaskHandedOver
from greenroom.core.state.thread import WindowMoved


def find_routed_task(draft: Draft, intent: SendMessage) -> tuple[Task, Routing] | None:
    """Return the task that the message passes on; None for every other message."""
    task = draft.state.tasks.get(intent.task_id)
    if intent.delivery != "handoff" or task is None or task.routing is None or task.ending is not None:
        return None
    return (task, task.routing) if draft.cause is not None and draft.cause.subtask_id is None else None


def check_hand_over(draft: Draft, intent: SendMessage, sender: AgentId, task: Task, routing: Routing) -> RuleResult:
    """Reject a hand-over to anyone but one other member, and one by an agent with work left in its conversation."""
    cause, names = draft.cause, [member.name for member in routing.members if member.name != sender]
    if len(intent.receiver) != 1 or intent.need_reply or intent.receiver[0] not in names:
        why, hint = "The task goes to exactly one other agent of the team.", "Write to one of these: {names}."
        return reject("bad_handoff", why, hint, names=", ".join(names))
    if task.manager != sender:
        return reject("not_in_control", "{manager!r} has the task now.", manager=task.manager)
    if cause is not None and draft.state.threads[cause.thread_id].open_steps:
        return Rejection(code="not_yet", why="You were told something more.", hint="Read it first, then hand over.")
    if intent.receiver[0] in draft.state.retired:
        return reject("agent_left", "{name!r} has left the team.", "Write to another one.", name=intent.receiver[0])
    return None


def explain_stop(task: Task, routing: Routing, sender: AgentId, intent: SendMessage) -> str:
    """Return why the task ends instead of being handed over once more; empty if it goes on."""
    if task.hops_made >= routing.max_hops:
        return f"The task was handed over {task.hops_made} times, which is the limit (max_hops), and is not done."
    if is_ping_pong((*task.hops, make_hop(sender, intent.receiver[0], intent.message))):
        return (
            f"{sender} and {intent.receiver[0]} only send the task back and forth: the same two messages, and no tool "
            f"was used in between. The last one said: {intent.message.strip()}"
        )
    return ""


def make_hop(sender: AgentId, receiver: AgentId, message: str) -> Hop:
    """Return a hand-over. Spacing and upper case of its message do not count."""
    content = hashlib.sha256(" ".join(message.split()).casefold().encode(errors="replace")).hexdigest()[:16]
    return Hop(sender=sender, receiver=receiver, content=content)


def is_ping_pong(hops: tuple[Hop, ...]) -> bool:
    """Return whether the last hand-overs go to and fro with the same two messages, and nothing was done between."""
    last = hops[-HOPS_KEPT:]
    if len(last) < HOPS_KEPT or any(hop.acted for hop in last):
        return False
    there, back = last[0], last[1]
    return (there.sender, there.receiver) == (back.receiver, back.sender) and last == (there, back) * (HOPS_KEPT // 2)


def admit_receiver(draft: Draft, task: Task, routing: Routing, name: AgentId) -> None:
    """Add the receiver to the team and to the task's group, unless it is there already."""
    spec = routing.find_member(name)
    if name not in draft.state.agents and spec is not None:
        draft.emit(AgentAdded(at=draft.now, agent_id=name, spec=spec, made_by=task.manager))
    if name not in task.group:
        draft.emit(ParticipantsAdded(at=draft.now, task_id=task.task_id, agents=(name,)))


def hand_over_task(draft: Draft, intent: SendMessage, sender: AgentId) -> None:
    """Give the task to the receiver of a message that was sent. Empty the sender's conversation if that is wanted."""
    hop = make_hop(sender, intent.receiver[0], intent.message)
    draft.emit(
        TaskHandedOver(
            at=draft.now, task_id=intent.task_id, sender_id=sender, agent_id=hop.receiver, content=hop.content
        )
    )
    if intent.clear and draft.cause is not None:
        begin = draft.state.version + 1
        draft.emit(WindowMoved(at=draft.now, thread_id=draft.cause.thread_id, window_from=begin))
