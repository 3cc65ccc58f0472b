"""Sending: who may write to whom, and what the receiver gets to do. Questions to the house itself: `questions.py`."""

from __future__ import annotations

import re
from typing import Final

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import (
    AgentId,
    BudgetId,
    StageId,
    ThreadId,
    WaitingId,
    message_id,
    sender_of,
    thread_id,
    waiting_id,
)
from greenroom.core.base.records import evolve
from greenroom.core.base.text import fenced
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, not_in_group, unknown
from greenroom.core.rules.endings import end_step, notice, settle_mail
from greenroom.core.rules.intents import FormGroup, SendMessage
from greenroom.core.rules.limits import stop_at
from greenroom.core.rules.origins import given_by_message, given_here, has_read, people_of, said_by
from greenroom.core.rules.queue import (
    decider,
    enqueue,
    fill_call,
    is_open,
    may_wait,
    next_place,
    open_thread,
    reader,
    release,
    replier,
    set_timeout,
    word_place,
)
from greenroom.core.rules.stages import follow_subtasks
from greenroom.core.state.agent import Agent
from greenroom.core.state.budget import Spent
from greenroom.core.state.message import Group, GroupFormed, Message, MessageSent, MessageSettled, Wait, waits
from greenroom.core.state.origin import untrusted
from greenroom.core.state.stage import SubtaskHandedOver
from greenroom.core.state.step import Work
from greenroom.core.state.task import Task

ONE_HOP = Amounts(hops=1)

VERBS = frozenset({"approval_id", "subtask_id", "stage_id"})
"""What a letter is about that is answered by a verb of its own and not by a message."""


def send_message(draft: Draft, intent: SendMessage, by: str) -> Verdict:
    """A sent message is with its receivers, and whoever waited for it goes on."""
    sender = _sender(draft, intent, by)
    if isinstance(sender, Rejected):
        return sender
    meant = _meant(draft, intent, sender)
    if isinstance(meant, Rejected):
        return meant
    intent, letter = meant
    refused = _addressable(draft, intent, sender) or _answerable(draft, intent, sender)
    if refused is None and intent.waiting:
        refused = may_wait(draft.world, sender, intent.receiver)
    if refused is not None:
        return refused
    handed = _handed(draft, intent, sender) if intent.delivery == "handoff" else None
    if isinstance(handed, Rejected):
        return handed
    full = _full(draft, intent, sender)
    if full is not None:
        return _too_many_hops(draft, intent, full)
    for budget in draft.world.budgets_of(intent.task_id, sender):
        draft.emit(Spent(at=draft.now, budget_id=budget, amounts=ONE_HOP))
    _send(draft, _made(draft, intent, sender, handed), intent.timeout, handed)
    if letter is not None:
        settle_mail(draft, letter, (sender,))
    return None


def _meant(draft: Draft, intent: SendMessage, sender: AgentId) -> tuple[SendMessage, Message | None] | Rejected:
    """To whom it goes in a group, and the letter that it answers, with the id that is waited for."""
    told = in_group(draft, intent, sender) if intent.group is not None else intent
    if isinstance(told, Rejected):
        return told
    letter = _answered(draft, told, sender)
    if letter is not None:
        return evolve(told, return_waiting_id=_waiting_of(letter, sender)), letter
    if told.answers is not None and told.return_waiting_id is None:
        return unknown("letter", told.answers, tuple(draft.world.mail))
    return told, None


def _answered(draft: Draft, intent: SendMessage, sender: AgentId) -> Message | None:
    """The letter that a person's plain message answers: the one that is named, else the only one of its receivers that
    they owe an answer to."""
    if draft.world.agents[sender].spec.kind != "human" or intent.return_waiting_id is not None or intent.waiting:
        return None
    owed = [
        letter
        for letter in draft.world.mail.values()
        if letter.task_id == intent.task_id
        and letter.sender_id in intent.receiver
        and sender in letter.receiver
        and VERBS.isdisjoint(letter.data or ())
        and intent.answers in (None, letter.message_id)
    ]
    return owed[0] if len(owed) == 1 else None


def _waiting_of(letter: Message, receiver: AgentId) -> WaitingId | None:
    """The id that this receiver of the letter is to return, if its sender waits."""
    return None if letter.waiting is None else letter.waiting[letter.receiver.index(receiver)]


def _send(draft: Draft, message: Message, timeout: int | None, handed: SubtaskHandedOver | None) -> None:
    thread = draft.cause.thread_id if draft.cause else None
    draft.emit(MessageSent(at=draft.now, message=message, thread_id=thread))
    for wait in waits(message, thread):
        set_timeout(draft, wait, timeout)
    if handed is not None:
        _hand_over(draft, message, handed)
    for index, receiver in enumerate(message.receiver):
        deliver(draft, message, receiver, message.waiting[index] if message.waiting else None)
    if message.return_waiting_id is not None:
        _returned(draft, message, message.return_waiting_id)


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


def _addressable(draft: Draft, intent: SendMessage, sender: AgentId) -> Verdict:
    """Only the group talks in a task; a person may write to it, and be answered, from outside."""
    task = draft.world.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    if sender not in task.group and draft.world.agents[sender].spec.kind != "human":
        return not_in_group(sender, task)
    return _receivers(draft, intent, task) or _contents(intent, task)


def _receivers(draft: Draft, intent: SendMessage, task: Task) -> Verdict:
    if not intent.receiver:
        return Rejected(
            code="no_receiver", why="The message has no receiver.", hint=f"The group: {', '.join(task.group)}."
        )
    wait = draft.world.waits.get(intent.return_waiting_id) if intent.return_waiting_id else None
    for receiver in intent.receiver:
        if receiver not in task.group and (wait is None or receiver != wait.waiter):
            return Rejected(
                code="unknown_receiver",
                why=f"{receiver!r} is not in the group of task {intent.task_id!r}.",
                hint=f"Available: {', '.join(task.group)}.",
            )
    if len(set(intent.receiver)) != len(intent.receiver):
        return Rejected(code="double_receiver", why=f"A receiver is named twice: {', '.join(intent.receiver)}.")
    return None


def _contents(intent: SendMessage, task: Task) -> Verdict:
    stage = intent.stage_relative
    if stage != "no_relative" and stage not in task.stages:
        return unknown("stage", stage, task.stages)
    if not intent.message.strip():
        return Rejected(code="empty_message", why="The message is empty.")
    return None


def _answerable(draft: Draft, intent: SendMessage, sender: AgentId) -> Verdict:
    if intent.waiting and (not intent.need_reply or sender in intent.receiver):
        return Rejected(code="waits_for_nothing", why="A message that waits needs a reply from somebody else.")
    if intent.delivery == "call" and not intent.waiting:
        return Rejected(code="bad_call", why="A call waits for its answer.", hint="Set need_reply and waiting.")
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
    if wait.task_id != intent.task_id:
        return Rejected(code="wrong_task", why=f"It was asked in task {wait.task_id!r}.", hint="Answer there.")
    return None


def _handed(draft: Draft, intent: SendMessage, sender: AgentId) -> SubtaskHandedOver | Rejected:
    """The subtask that the asking step works on, if it is its agent's to give away."""
    cause = draft.cause
    if len(intent.receiver) != 1 or intent.need_reply or sender in intent.receiver:
        return Rejected(code="bad_handoff", why="A hand-off goes to exactly one other agent and wants no reply.")
    stage = draft.world.stages.get(cause.stage_id) if cause is not None and cause.stage_id is not None else None
    subtask = stage.subtask(cause.subtask_id) if stage is not None and cause is not None and cause.subtask_id else None
    if stage is None or subtask is None or stage.task_id != intent.task_id:
        return Rejected(code="nothing_to_hand_off", why="Only work on a subtask of the task can be handed off.")
    if subtask.state != "running" or subtask.agent != sender:
        return Rejected(code="nothing_to_hand_off", why=f"{sender!r} does not work on {subtask.subtask_id!r} any more.")
    return SubtaskHandedOver(
        at=draft.now, stage_id=stage.stage_id, subtask_id=subtask.subtask_id, agent_id=intent.receiver[0]
    )


def _full(draft: Draft, intent: SendMessage, sender: AgentId) -> BudgetId | None:
    """The budget that leaves no hop for this message."""
    for name in draft.world.budgets_of(intent.task_id, sender):
        budget = draft.world.budgets[name]
        if budget.limits.hops is not None and budget.spent.hops >= budget.limits.hops:
            return name
    return None


def _too_many_hops(draft: Draft, intent: SendMessage, budget: BudgetId) -> Verdict:
    """An endless exchange ends here: its task pauses, and the sender reads that its message was not sent."""
    text = f"No message was sent to {', '.join(intent.receiver)}: the limit of hops of {budget!r} is reached."
    if draft.cause is None:
        return Rejected(code="limit_reached", why=text, hint="Raise the limit first.")
    stop_at(draft, budget, "hops", task=intent.task_id, step=draft.cause.step_id)
    notice(draft, draft.cause, "SendMessage", "limit_reached", text)
    return None


def _made(draft: Draft, intent: SendMessage, sender: AgentId, handed: SubtaskHandedOver | None) -> Message:
    """A person who is handed a subtask owes an answer to that: ending it is the answer."""
    name = message_id(sender, draft.world.agents[sender].messages_made + 1)
    duty = handed is not None and draft.world.agents[handed.agent_id].spec.kind == "human"
    return Message(
        message_id=name,
        task_id=intent.task_id,
        sender_id=sender,
        receiver=intent.receiver,
        message=intent.message,
        stage_relative=intent.stage_relative,
        need_reply=intent.need_reply or duty,
        waiting=tuple(waiting_id(name, one) for one in intent.receiver) if intent.waiting else None,
        return_waiting_id=intent.return_waiting_id,
        kind=intent.kind,
        delivery=intent.delivery,
        protocol=intent.protocol,
        data={**(intent.data or {}), "subtask_id": handed.subtask_id} if handed is not None and duty else intent.data,
        handoff_summary=intent.handoff_summary,
        sent_at=draft.now,
        call_id=intent.call_id,
        origins=said_by(draft, sender),
        group=intent.group,
    )


def _hand_over(draft: Draft, message: Message, handed: SubtaskHandedOver) -> None:
    """Control moves: the subtask has a new agent, the old one's steps for it are not run."""
    old = thread_id(message.sender_id, handed.subtask_id)
    for step in [one for one in draft.world.steps_of(message.sender_id) if one.thread_id == old]:
        end_step(draft, step, "skipped", error=f"handed over to {handed.agent_id}")
    draft.emit(handed)
    follow_subtasks(draft, handed.stage_id, message.sender_id)


def deliver(draft: Draft, message: Message, receiver: AgentId, waiting: WaitingId | None) -> None:
    """What the receiver gets to do. A person gets no step: they answer when they like."""
    agent = draft.world.agents[receiver]
    asked = draft.world.waits.get(message.return_waiting_id) if message.return_waiting_id else None
    asked = asked if asked is not None and asked.waiter == receiver else None
    if agent.spec.kind == "human":
        return
    if asked is not None and fill_call(draft, asked, "answer", message.message, message.origins):
        return
    person = draft.world.agents[message.sender_id].spec.kind == "human"
    work = Work(
        type="skill",
        executor=_skill(message, agent.spec.style, person),
        intention=f"A message from {message.sender_id} is in text_content.",
        text_content=_wording(message, waiting),
    )
    at_once = waiting is not None or (person and agent.spec.style == "plan")
    place = next_place(draft.world, agent) if at_once else None
    enqueue(
        draft,
        _home(draft, message, agent, asked),
        work,
        place=place if asked is None else word_place(draft.world, agent, asked.waiting_id),
        message=message.message_id,
        answers=waiting,
        stage=None if message.stage_relative == "no_relative" else StageId(message.stage_relative),
        jumped=at_once or asked is not None,
        goes_on=asked is not None or _answers(draft, receiver),
        origins=message.origins,
    )


def _answers(draft: Draft, receiver: AgentId) -> bool:
    """Whether what is sent is what the sender makes of a message of the receiver, who did not wait for it."""
    read = draft.cause.message_id if draft.cause is not None else None
    return read is not None and sender_of(read) == receiver


def _skill(message: Message, style: str, person: bool) -> str:
    """What the receiver does with it: a person's request is thought about, a question answered, the rest read."""
    if person and message.kind == "request":
        return decider(style)
    return replier(style) if message.need_reply else reader(style)


def _home(draft: Draft, message: Message, agent: Agent, asked: Wait | None) -> ThreadId:
    """An answer goes where it was asked for; a call has a thread of its own; else it goes to the work it is about."""
    name, task = agent.agent_id, message.task_id
    if asked is not None and asked.thread_id is not None and is_open(draft.world, asked.thread_id):
        return asked.thread_id
    if message.delivery == "call":
        return open_thread(draft, name, task, call=message.message_id, on_behalf=given_here(draft))
    if message.delivery == "handoff" and draft.cause is not None:
        stage_id, subtask_id = draft.cause.stage_id, draft.cause.subtask_id
        return open_thread(draft, name, task, stage=stage_id, subtask=subtask_id, on_behalf=given_here(draft))
    stage = draft.world.stages.get(StageId(message.stage_relative))
    if stage is not None:
        for subtask in stage.subtasks:
            if subtask.agent == name and subtask.state == "running":
                return open_thread(draft, name, task, stage=stage.stage_id, subtask=subtask.subtask_id)
    return open_thread(draft, name, task, on_behalf=given_by_message(draft, name, task))


def _wording(message: Message, waiting: WaitingId | None) -> str:
    """What the receiver reads. What somebody says who has read what anybody may have written stands in a fence."""
    strange = untrusted(message.origins)
    parts = [f"from: {message.sender_id}"]
    if strange:
        parts.append(has_read(strange))
    if message.handoff_summary is not None or message.delivery == "handoff":
        summary = message.handoff_summary or ""
        parts.append("summary_of_sender_work: " + (f"\n{fenced(summary)}" if strange and summary else summary))
    parts.append(fenced(message.message) if strange else message.message)
    if waiting is not None:
        parts.append(f"<return_waiting_id>{waiting}</return_waiting_id>")
    return "\n".join(parts)


def _returned(draft: Draft, message: Message, waiting: WaitingId) -> None:
    question = draft.world.waits[waiting].message_id
    release(draft, waiting, "reply")
    if question in draft.world.mail:
        draft.emit(MessageSettled(at=draft.now, message_id=question, agent_id=message.sender_id))


# ---------------------------------------------------------------------------------------------- groups

GROUP_NAME: Final = re.compile(r"[^\s#@>:!?/,]{1,64}")


def form_group(draft: Draft, intent: FormGroup, by: str) -> Verdict:
    """People of a task talk together; formed again, with others."""
    if not is_trusted(draft.world, by):
        return Rejected(code="not_a_person", why=f"{by!r} may not form a group: people do.")
    task = draft.world.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    if not GROUP_NAME.fullmatch(intent.group_id) or not intent.group_id.isprintable():
        hint = "Use 1 to 64 characters without spaces and without # @ > : ! ? / ,"
        return Rejected(code="bad_group", why=f"{intent.group_id!r} cannot be a group's name.", hint=hint)
    known = draft.world.groups.get(intent.group_id)
    if known is not None and known.task_id != task.task_id:
        return Rejected(code="group_exists", why=f"The group {intent.group_id!r} talks in task {known.task_id!r}.")
    for one in intent.participants:
        if one not in task.group:
            return not_in_group(one, task)
        if draft.world.agents[one].spec.kind != "human":
            why = f"{one!r} is no person, and only people take part in a group."
            return Rejected(code="not_a_person", why=why, hint="Name it in what you say there: then it hears that.")
    people = tuple(dict.fromkeys(intent.participants))
    if len(people) < 2:
        return Rejected(code="small_group", why="A group has two people or more.", hint="Write to them directly.")
    group = Group(group_id=intent.group_id, task_id=task.task_id, participants=people, formed_at=draft.now)
    draft.emit(GroupFormed(at=draft.now, group=group))
    return None


def in_group(draft: Draft, intent: SendMessage, sender: AgentId) -> SendMessage | Rejected:
    """What is said in a group goes to all who take part, and to the models that are named."""
    group = draft.world.groups.get(intent.group) if intent.group is not None else None
    if group is None or group.task_id != intent.task_id:
        return unknown("group", str(intent.group), tuple(draft.world.groups))
    if sender not in group.participants:
        return Rejected(code="not_in_group", why=f"{sender!r} takes no part in the group {group.group_id!r}.")
    if intent.waiting or intent.return_waiting_id is not None or intent.delivery != "post":
        why = "In a group nobody waits for an answer."
        return Rejected(code="no_waiting_here", why=why, hint="Write to the one you mean directly.")
    others = [one for one in people_of(draft.world, group.participants) if one != sender]
    return evolve(intent, receiver=tuple(dict.fromkeys((*others, *intent.receiver))))
