"""Sending: who may write to whom, what the receiver gets to do, and questions to the house itself."""

from __future__ import annotations

from typing import cast

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, StageId, ThreadId, WaitingId, message_id, task_budget, waiting_id
from greenroom.core.base.records import Data
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, unknown
from greenroom.core.rules.endings import end_step
from greenroom.core.rules.intents import AskInfo, NeedToolDecision, SendMessage
from greenroom.core.rules.queries import answer
from greenroom.core.rules.queue import enqueue, next_place, open_thread
from greenroom.core.rules.waits import may_wait, reader, release, set_timeout
from greenroom.core.state.agent import Agent
from greenroom.core.state.budget import LimitReached, Spent, room
from greenroom.core.state.message import Message, MessageSent, MessageSettled, waits
from greenroom.core.state.stage import SubtaskHandedOver
from greenroom.core.state.step import Step, Work
from greenroom.core.state.task import TaskPaused

ONE_HOP = Amounts(hops=1)


def send_message(draft: Draft, intent: SendMessage, by: str) -> Verdict:
    """A sent message is with its receivers, and whoever waited for it goes on."""
    sender = _sender(draft, intent, by)
    if isinstance(sender, Rejected):
        return sender
    refused = _addressable(draft, intent) or _answerable(draft, intent, sender)
    if refused is None and intent.waiting:
        refused = may_wait(draft.world, sender, intent.receiver)
    if refused is None and intent.delivery == "handoff":
        refused = _handable(draft, intent)
    if refused is not None:
        return refused
    if not _hop(draft, intent):
        return None
    message = _made(draft, intent, sender)
    thread = draft.cause.thread_id if draft.cause else None
    draft.emit(MessageSent(at=draft.now, message=message, thread_id=thread))
    for wait in waits(message, thread):
        set_timeout(draft, wait, intent.timeout)
    if message.delivery == "handoff":
        _hand_over(draft, message)
    for index, receiver in enumerate(message.receiver):
        _deliver(draft, message, receiver, message.waiting[index] if message.waiting else None)
    if message.return_waiting_id is not None:
        _returned(draft, message)
    return None


def _sender(draft: Draft, intent: SendMessage, by: str) -> AgentId | Rejected:
    """An agent writes as itself; a door writes as the person it stands for."""
    world = draft.world
    if by in world.agents and intent.sender in (None, by):
        return AgentId(by)
    if not is_trusted(world, by):
        return Rejected(code="not_yours", why=f"{by!r} may not write as {intent.sender!r}.")
    sender = intent.sender or world.human()
    if sender is None or sender not in world.agents:
        return unknown("agent", str(sender), tuple(world.agents))
    return sender


def _addressable(draft: Draft, intent: SendMessage) -> Verdict:
    task = draft.world.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    if not intent.receiver:
        return Rejected(
            code="no_receiver", why="The message has no receiver.", hint=f"The group: {', '.join(task.group)}."
        )
    for receiver in intent.receiver:
        if receiver not in draft.world.agents or receiver not in task.group:
            return Rejected(
                code="unknown_receiver",
                why=f"{receiver!r} is not in the group of task {intent.task_id!r}.",
                hint=f"Available: {', '.join(task.group)}.",
            )
    if len(set(intent.receiver)) != len(intent.receiver):
        return Rejected(code="double_receiver", why=f"A receiver is named twice: {', '.join(intent.receiver)}.")
    stage = intent.stage_relative
    if stage != "no_relative" and stage not in draft.world.stages:
        return unknown("stage", stage, task.stages)
    if not intent.message.strip():
        return Rejected(code="empty_message", why="The message is empty.")
    return None


def _answerable(draft: Draft, intent: SendMessage, sender: AgentId) -> Verdict:
    if intent.waiting and (not intent.need_reply or sender in intent.receiver):
        return Rejected(code="waits_for_nothing", why="A message that waits needs a reply from somebody else.")
    if intent.return_waiting_id is None:
        return None
    wait = draft.world.waits.get(intent.return_waiting_id)
    if wait is None or wait.on != sender:
        return Rejected(
            code="unknown_waiting_id",
            why=f"Nobody waits for {sender!r} with the id {intent.return_waiting_id!r}.",
            hint="Leave return_waiting_id out, or use the one of the message you answer.",
        )
    if wait.waiter not in intent.receiver:
        return Rejected(code="wrong_receiver", why=f"The one who waits is {wait.waiter!r}.", hint="Send it the answer.")
    return None


def _handable(draft: Draft, intent: SendMessage) -> Verdict:
    cause = draft.cause
    if len(intent.receiver) != 1 or intent.need_reply:
        return Rejected(code="bad_handoff", why="A hand-off goes to exactly one agent and wants no reply.")
    if cause is None or cause.subtask_id is None:
        return Rejected(code="nothing_to_hand_off", why="Only work on a subtask can be handed off.")
    stage = draft.world.stages.get(cause.stage_id) if cause.stage_id else None
    subtask = stage.subtask(cause.subtask_id) if stage else None
    if subtask is None or subtask.state != "running":
        return Rejected(code="nothing_to_hand_off", why=f"Subtask {cause.subtask_id!r} is over.")
    return None


def _hop(draft: Draft, intent: SendMessage) -> bool:
    """Count the hop; an endless exchange ends at its limit, which pauses the task."""
    name = task_budget(intent.task_id)
    budget = draft.world.budgets[name]
    if room(budget, ONE_HOP) == "room":
        draft.emit(Spent(at=draft.now, budget_id=name, amounts=ONE_HOP))
        return True
    step = draft.cause.step_id if draft.cause else None
    draft.emit(LimitReached(at=draft.now, budget_id=name, limit="hops", step_id=step))
    draft.emit(TaskPaused(at=draft.now, task_id=intent.task_id, why=f"limit: {name} hops"))
    return False


def _made(draft: Draft, intent: SendMessage, sender: AgentId) -> Message:
    name = message_id(sender, draft.world.agents[sender].messages_made + 1)
    return Message(
        message_id=name,
        task_id=intent.task_id,
        sender_id=sender,
        receiver=intent.receiver,
        message=intent.message,
        stage_relative=intent.stage_relative,
        need_reply=intent.need_reply,
        waiting=tuple(waiting_id(name, one) for one in intent.receiver) if intent.waiting else None,
        return_waiting_id=intent.return_waiting_id,
        kind=intent.kind,
        delivery=intent.delivery,
        protocol=intent.protocol,
        data=intent.data,
        handoff_summary=intent.handoff_summary,
        sent_at=draft.now,
    )


def _hand_over(draft: Draft, message: Message) -> None:
    """Control moves: the subtask has a new agent, the old one's steps for it are not run."""
    cause = draft.cause
    if cause is None or cause.stage_id is None or cause.subtask_id is None:
        return
    for step in [one for one in draft.world.steps_of(message.sender_id) if one.thread_id == cause.thread_id]:
        end_step(draft, step, "skipped", error=f"handed over to {message.receiver[0]}")
    draft.emit(
        SubtaskHandedOver(
            at=draft.now,
            stage_id=cause.stage_id,
            subtask_id=cause.subtask_id,
            agent_id=message.receiver[0],
        )
    )


def _deliver(draft: Draft, message: Message, receiver: AgentId, waiting: WaitingId | None) -> None:
    """What the receiver gets to do. A person gets no step: they answer when they like."""
    agent = draft.world.agents[receiver]
    if agent.spec.kind == "human":
        return
    work = Work(
        type="skill",
        executor="send_message" if message.need_reply and agent.spec.style == "plan" else reader(agent.spec.style),
        intention=f"A message from {message.sender_id} is in text_content.",
        text_content=_wording(message, waiting),
    )
    jumps = waiting is not None or message.return_waiting_id is not None
    place = next_place(draft.world, agent) if jumps else None
    thread = _home(draft, message, agent)
    stage = None if message.stage_relative == "no_relative" else StageId(message.stage_relative)
    name = message.message_id
    enqueue(draft, thread, work, place=place, message=name, answers=waiting, stage=stage, jumped=jumps)


def _home(draft: Draft, message: Message, agent: Agent) -> ThreadId:
    """An answer goes where it was asked for; a call has a thread of its own; else it goes to the work it is about."""
    name, task = agent.agent_id, message.task_id
    asked = draft.world.waits.get(message.return_waiting_id) if message.return_waiting_id else None
    if asked is not None and asked.waiter == name and asked.thread_id in draft.world.threads:
        return cast("ThreadId", asked.thread_id)
    if message.delivery == "call":
        return open_thread(draft, name, task, call=message.message_id)
    if message.delivery == "handoff" and draft.cause is not None:
        return open_thread(draft, name, task, stage=draft.cause.stage_id, subtask=draft.cause.subtask_id)
    stage = draft.world.stages.get(StageId(message.stage_relative))
    if stage is not None:
        for subtask in stage.subtasks:
            if subtask.agent == name and subtask.state == "running":
                return open_thread(draft, name, task, stage=stage.stage_id, subtask=subtask.subtask_id)
    return open_thread(draft, name, task)


def _wording(message: Message, waiting: WaitingId | None) -> str:
    parts = [f"from: {message.sender_id}"]
    if message.handoff_summary is not None or message.delivery == "handoff":
        parts.append(f"summary_of_sender_work: {message.handoff_summary or ''}")
    parts.append(message.message)
    if waiting is not None:
        parts.append(f"<return_waiting_id>{waiting}</return_waiting_id>")
    return "\n".join(parts)


def _returned(draft: Draft, message: Message) -> None:
    waiting = message.return_waiting_id
    if waiting is None:
        return
    question = draft.world.waits[waiting].message_id
    release(draft, waiting, "reply")
    if question in draft.world.mail:
        draft.emit(MessageSettled(at=draft.now, message_id=question, agent_id=message.sender_id))


def ask_person(draft: Draft, step: Step, person: AgentId, question: str, data: Data) -> None:
    """A question about a step, as a message to a person; the asker is not locked, the step waits."""
    message = Message(
        message_id=message_id(step.agent_id, draft.world.agents[step.agent_id].messages_made + 1),
        task_id=step.task_id,
        sender_id=step.agent_id,
        receiver=(person,),
        message=question,
        need_reply=True,
        kind="request",
        data=data,
        sent_at=draft.now,
    )
    draft.emit(MessageSent(at=draft.now, message=message))


def ask_info(draft: Draft, intent: AskInfo, by: str) -> Verdict:
    """Lock, answer and unlock: the answer is the asker's next step."""
    agent = draft.world.agents.get(AgentId(by))
    if agent is None:
        return Rejected(code="not_an_agent", why=f"{by!r} is no agent: views are for doors.")
    task = draft.world.tasks.get(intent.task_id)
    if task is None or by not in task.group:
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    found = answer(draft.world, intent, agent)
    if isinstance(found, Rejected):
        return found
    asked = message_id(agent.agent_id, agent.messages_made + 1)
    waiting = waiting_id(asked, agent.agent_id)
    for name, text, waits_on, returns in (
        (asked, f"ask_info: {intent.query} {', '.join(intent.about)}".strip(), (waiting,), None),
        (message_id(agent.agent_id, agent.messages_made + 2), found, None, waiting),
    ):
        message = Message(
            message_id=name,
            task_id=intent.task_id,
            sender_id=agent.agent_id,
            receiver=(agent.agent_id,),
            message=text,
            waiting=waits_on,
            return_waiting_id=returns,
            kind="request" if returns is None else "response",
            sent_at=draft.now,
        )
        draft.emit(MessageSent(at=draft.now, message=message))
        if returns is not None:
            _deliver(draft, message, agent.agent_id, None)
            release(draft, returns, "reply")
    return None


def need_tool_decision(draft: Draft, intent: NeedToolDecision, by: str) -> Verdict:
    """The result of a long-tail tool is judged next."""
    agent = draft.world.agents.get(intent.agent_id)
    if agent is None or intent.task_id not in draft.world.tasks:
        return unknown("agent", intent.agent_id, tuple(draft.world.agents))
    cause = draft.cause
    if not is_trusted(draft.world, by) and (cause is None or cause.work.type != "tool" or by != intent.agent_id):
        return Rejected(code="tool_decision_not_planned", why="Only a tool step may ask for a tool_decision.")
    work = Work(
        type="skill",
        executor="tool_decision",
        intention=f"Decide how to go on with {intent.tool_name}.",
        text_content=intent.tool_name,
    )
    thread = cause.thread_id if cause else open_thread(draft, intent.agent_id, intent.task_id)
    place = next_place(draft.world, draft.world.agents[intent.agent_id])
    enqueue(draft, thread, work, place=place, stage=intent.stage_id)
    return None
