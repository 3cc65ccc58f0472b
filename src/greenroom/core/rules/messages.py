"""Rules for messages: who may write to whom, and what the receiver does with it. Queries are in `questions.py`."""

from __future__ import annotations

import re
from typing import Final

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import Rejection, reject
from greenroom.core.base.ids import (
    AgentId,
    BudgetId,
    StageId,
    TaskId,
    ThreadId,
    WaitingId,
    message_id,
    sender_of,
    thread_id,
    waiting_id,
)
from greenroom.core.base.records import evolve
from greenroom.core.base.text import add_fence
from greenroom.core.rules.draft import SYSTEM, Draft, RuleResult, is_trusted, reject_not_in_group, reject_unknown
from greenroom.core.rules.endings import add_notice, end_step, settle_message
from greenroom.core.rules.handovers import (
    admit_receiver,
    check_hand_over,
    explain_stop,
    find_routed_task,
    hand_over_task,
)
from greenroom.core.rules.intents import FinishTask, FormGroup, SendMessage
from greenroom.core.rules.limits import pause_at_limit
from greenroom.core.rules.origins import (
    filter_people,
    label_message,
    list_message_principals,
    list_principals,
    render_origins_line,
)
from greenroom.core.rules.queue import (
    check_may_wait,
    choose_deciding_skill,
    choose_reading_skill,
    choose_reply_skill,
    enqueue,
    fill_call,
    find_next_place,
    find_place_for_answer,
    is_thread_open,
    open_thread,
    release_wait,
    set_timeout,
)
from greenroom.core.rules.stages import count_running, has_room, update_member_state
from greenroom.core.state.agent import AgentAdded, AgentState
from greenroom.core.state.budget import Spent
from greenroom.core.state.message import (
    ConversationGroup,
    GroupFormed,
    Message,
    MessageSent,
    MessageSettled,
    Wait,
    create_waits,
)
from greenroom.core.state.origin import filter_untrusted
from greenroom.core.state.stage import SubtaskHandedOver
from greenroom.core.state.step import Work
from greenroom.core.state.task import ParticipantsAdded, Task

ONE_HOP = Amounts(hops=1)

VERB_KEYS = frozenset({"approval_id", "subtask_id", "stage_id"})
"""Keys of message data that a person answers with a command of its own, not with a message."""


def send_message(draft: Draft, intent: SendMessage, by: str) -> RuleResult:
    """Send and deliver a message. A waiting agent that it answers continues."""
    sender = _find_sender(draft, intent, by)
    if isinstance(sender, Rejection):
        return sender
    routed = find_routed_task(draft, intent)
    if routed is None:
        return _send_checked(draft, intent, sender)
    refused = check_hand_over(draft, intent, sender, *routed)
    if refused is not None:
        return refused
    if why := explain_stop(*routed, sender, intent):
        return draft.apply(FinishTask(task_id=intent.task_id, state="failed", summary=why), SYSTEM)
    admit_receiver(draft, *routed, intent.receiver[0])
    return _send_checked(draft, intent, sender, is_task=True)


def _send_checked(draft: Draft, intent: SendMessage, sender: AgentId, *, is_task: bool = False) -> RuleResult:
    """Send a message if its addresses, its reply and the budgets allow it. With `is_task` it passes the task on."""
    resolved = _resolve_receivers(draft, intent, sender)
    if isinstance(resolved, Rejection):
        return resolved
    intent, question = resolved
    refused = _check_addressing(draft, intent, sender) or _check_reply(draft, intent, sender)
    if refused is None and intent.waiting:
        refused = check_may_wait(draft.state, sender, intent.receiver)
    if refused is not None:
        return refused
    is_subtask = intent.delivery == "handoff" and not is_task
    handed = _find_handed_subtask(draft, intent, sender) if is_subtask else None
    if isinstance(handed, Rejection):
        return handed
    full = _find_full_budget(draft, intent, sender)
    if full is not None:
        return _stop_at_hop_limit(draft, intent, full)
    for budget in draft.state.budgets_of(intent.task_id, sender):
        draft.emit(Spent(at=draft.now, budget_id=budget, amounts=ONE_HOP))
    _send(draft, _build_message(draft, intent, sender, handed), intent.timeout, handed)
    if is_task:
        hand_over_task(draft, intent, sender)
    if question is not None:
        settle_message(draft, question, (sender,))
    return None


def _resolve_receivers(
    draft: Draft, intent: SendMessage, sender: AgentId
) -> tuple[SendMessage, Message | None] | Rejection:
    """Return the message with its group receivers and waiting id, and the message that it answers."""
    addressed = address_group(draft, intent, sender) if intent.group is not None else intent
    if isinstance(addressed, Rejection):
        return addressed
    if addressed.delivery == "call":
        copies = tuple(_find_free_copy(draft, addressed.task_id, name) for name in addressed.receiver)
        addressed = evolve(addressed, receiver=copies)
    question = _find_answered_message(draft, addressed, sender)
    if question is not None:
        return evolve(addressed, return_waiting_id=_find_waiting_id(question, sender)), question
    if addressed.answers is not None and addressed.return_waiting_id is None:
        return reject_unknown("letter", addressed.answers, tuple(draft.state.mail))
    return addressed, None


def _find_free_copy(draft: Draft, task_id: TaskId, name: AgentId) -> AgentId:
    """Return the agent to call: this one, or a copy of it that is free. An agent runs one step at a time; a new copy is
    added while its spec allows more at once."""
    state, agent, task = draft.state, draft.state.agents.get(name), draft.state.tasks.get(task_id)
    limit = agent.spec.cooperation.concurrency if agent is not None and agent.spec.cooperation is not None else 1
    if agent is None or task is None or name not in task.group or limit < 2:
        return name
    names = [name, *(AgentId(f"{name}-{number}") for number in range(2, limit + 1))]
    known = [copy for copy in names if copy in task.group and state.agents[copy].spec == agent.spec]
    free = (copy for copy in known if not state.agents[copy].todo and state.agents[copy].running is None)
    found = next(free, None)
    new = next((copy for copy in names if copy not in state.agents and copy not in state.retired), None)
    if found is not None or new is None:
        return found or min(known, key=lambda copy: len(state.agents[copy].todo))
    draft.emit(AgentAdded(at=draft.now, agent_id=new, spec=agent.spec, made_by=SYSTEM, origins=agent.origins))
    draft.emit(ParticipantsAdded(at=draft.now, task_id=task_id, agents=(new,)))
    return new


def _find_answered_message(draft: Draft, intent: SendMessage, sender: AgentId) -> Message | None:
    """Return the message that a person's plain message answers: the named one, or the only one they have to answer."""
    if draft.state.agents[sender].spec.kind != "human" or intent.return_waiting_id is not None or intent.waiting:
        return None
    questions = [
        message
        for message in draft.state.mail.values()
        if message.task_id == intent.task_id
        and message.sender_id in intent.receiver
        and sender in message.receiver
        and VERB_KEYS.isdisjoint(message.data or ())
        and intent.answers in (None, message.message_id)
    ]
    return questions[0] if len(questions) == 1 else None


def _find_waiting_id(message: Message, receiver: AgentId) -> WaitingId | None:
    """Return the waiting id that this receiver has to return, or None if the sender does not wait."""
    return None if message.waiting is None else message.waiting[message.receiver.index(receiver)]


def _send(draft: Draft, message: Message, timeout: int | None, hand_over: SubtaskHandedOver | None) -> None:
    thread = draft.cause.thread_id if draft.cause else None
    draft.emit(MessageSent(at=draft.now, message=message, thread_id=thread))
    for wait in create_waits(message, thread):
        set_timeout(draft, wait, timeout)
    if hand_over is not None:
        _hand_over(draft, message, hand_over)
    for index, receiver in enumerate(message.receiver):
        deliver(draft, message, receiver, message.waiting[index] if message.waiting else None)
    if message.return_waiting_id is not None:
        question = draft.state.waits[message.return_waiting_id].message_id
        release_wait(draft, message.return_waiting_id, "reply")
        if question in draft.state.mail:
            draft.emit(MessageSettled(at=draft.now, message_id=question, agent_id=message.sender_id))


def _find_sender(draft: Draft, intent: SendMessage, by: str) -> AgentId | Rejection:
    """Return the sender. An agent writes as itself; a client writes as its person."""
    state = draft.state
    if by in state.agents and intent.sender in (None, by):
        return AgentId(by)
    if not is_trusted(state, by):
        return Rejection(code="not_yours", why=f"{by!r} may not write as {intent.sender!r}.")
    sender = intent.sender or state.find_human()
    if sender is None or sender not in state.agents:
        return reject_unknown("agent", str(sender), tuple(state.agents))
    return sender


def _check_addressing(draft: Draft, intent: SendMessage, sender: AgentId) -> RuleResult:
    """Reject senders outside the task's group, except people."""
    task = draft.state.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return reject_unknown("task", intent.task_id, tuple(draft.state.tasks))
    if sender not in task.group and draft.state.agents[sender].spec.kind != "human":
        return reject_not_in_group(sender, task)
    return _check_receivers(draft, intent, task) or _check_content(intent, task)


def _check_receivers(draft: Draft, intent: SendMessage, task: Task) -> RuleResult:
    if not intent.receiver:
        return reject("no_receiver", "The message has no receiver.", "The group: {group}.", group=", ".join(task.group))
    wait = draft.state.waits.get(intent.return_waiting_id) if intent.return_waiting_id else None
    for receiver in intent.receiver:
        if receiver not in task.group and (wait is None or receiver != wait.waiter):
            why, group = "{agent!r} is not in the group of task {task!r}.", ", ".join(task.group)
            values = {"agent": receiver, "task": intent.task_id, "group": group}
            return reject("not_in_group", why, "Available: {group}.", code="unknown_receiver", **values)
        if draft.state.agents[receiver].spec.kind == "system":
            return reject("system_receiver", "{agent!r} belongs to Greenroom and reads no messages.", agent=receiver)
    if len(set(intent.receiver)) != len(intent.receiver):
        return reject("double_receiver", "A receiver is named twice: {names}.", names=", ".join(intent.receiver))
    return None


def _check_content(intent: SendMessage, task: Task) -> RuleResult:
    stage = intent.stage_relative
    if stage != "no_relative" and stage not in task.stages:
        return reject_unknown("stage", stage, task.stages)
    if not intent.message.strip():
        return reject("empty_message", "The message is empty.")
    return None


def _check_reply(draft: Draft, intent: SendMessage, sender: AgentId) -> RuleResult:
    if intent.waiting and (not intent.need_reply or sender in intent.receiver):
        return Rejection(code="waits_for_nothing", why="A message that waits needs a reply from someone else.")
    if intent.delivery == "call" and not intent.waiting:
        return Rejection(code="bad_call", why="A call waits for its answer.", hint="Set need_reply and waiting.")
    if intent.return_waiting_id is None:
        return None
    wait = draft.state.waits.get(intent.return_waiting_id)
    if wait is None or wait.on != sender:
        return Rejection(
            code="unknown_waiting_id",
            why=f"No agent waits for {sender!r} with the id {intent.return_waiting_id!r}.",
            hint="Leave return_waiting_id out, or use the one of the message you answer.",
        )
    if wait.waiter not in intent.receiver:
        return reject("wrong_receiver", "The one who waits is {name!r}.", "Send it the answer.", name=wait.waiter)
    if wait.task_id != intent.task_id:
        return reject("wrong_task", "It was asked in task {task!r}.", "Answer there.", task=wait.task_id)
    return None


def _find_handed_subtask(draft: Draft, intent: SendMessage, sender: AgentId) -> SubtaskHandedOver | Rejection:
    """Return the hand-over of the subtask that the sending step works on, if its agent may hand it over."""
    cause = draft.cause
    if len(intent.receiver) != 1 or intent.need_reply or sender in intent.receiver:
        return Rejection(code="bad_handoff", why="A hand-off goes to exactly one other agent and wants no reply.")
    stage = draft.state.stages.get(cause.stage_id) if cause is not None and cause.stage_id is not None else None
    subtask = (
        stage.find_subtask(cause.subtask_id) if stage is not None and cause is not None and cause.subtask_id else None
    )
    if stage is None or subtask is None or stage.task_id != intent.task_id:
        return Rejection(code="nothing_to_hand_off", why="Only work on a subtask of the task can be handed off.")
    if subtask.state != "running" or subtask.agent != sender:
        return Rejection(
            code="nothing_to_hand_off", why=f"{sender!r} does not work on {subtask.subtask_id!r} any more."
        )
    if subtask.work:
        return Rejection(code="not_yours_to_give", why=f"{subtask.name!r} is planned for {sender!r}: it stays there.")
    rest = evolve(stage, subtasks=tuple(other for other in stage.subtasks if other is not subtask))
    if not has_room(stage, draft.state.agents[intent.receiver[0]].spec, count_running(draft.state, rest)):
        return Rejection(code="too_many", why=f"{intent.receiver[0]!r} cannot take it over: too many others run.")
    return SubtaskHandedOver(
        at=draft.now, stage_id=stage.stage_id, subtask_id=subtask.subtask_id, agent_id=intent.receiver[0]
    )


def _find_full_budget(draft: Draft, intent: SendMessage, sender: AgentId) -> BudgetId | None:
    """Return the budget that has no hop left for this message, or None."""
    for name in draft.state.budgets_of(intent.task_id, sender):
        budget = draft.state.budgets[name]
        if budget.limits.hops is not None and budget.spent.hops >= budget.limits.hops:
            return name
    return None


def _stop_at_hop_limit(draft: Draft, intent: SendMessage, budget: BudgetId) -> RuleResult:
    """End an endless exchange: pause the task and notify the sender that its message was not sent."""
    text = "No message was sent to {names}: the limit of hops of {budget!r} is reached."
    names = ", ".join(intent.receiver)
    refused = reject("limit_reached", text, "Raise the limit first.", names=names, budget=budget)
    if draft.cause is None:
        return refused
    pause_at_limit(draft, budget, "hops", task=intent.task_id, step=draft.cause.step_id)
    add_notice(draft, draft.cause, "SendMessage", refused.code, refused.why)
    return None


def _build_message(draft: Draft, intent: SendMessage, sender: AgentId, hand_over: SubtaskHandedOver | None) -> Message:
    """Build the message. A person who gets a subtask owes an answer: ending the subtask."""
    name = message_id(sender, draft.state.agents[sender].messages_made + 1)
    duty = hand_over is not None and draft.state.agents[hand_over.agent_id].spec.kind == "human"
    return Message(
        message_id=name,
        task_id=intent.task_id,
        sender_id=sender,
        receiver=intent.receiver,
        message=intent.message,
        stage_relative=intent.stage_relative,
        need_reply=intent.need_reply or duty,
        waiting=tuple(waiting_id(name, receiver) for receiver in intent.receiver) if intent.waiting else None,
        return_waiting_id=intent.return_waiting_id,
        kind=intent.kind,
        delivery=intent.delivery,
        protocol=intent.protocol,
        data={**(intent.data or {}), "subtask_id": hand_over.subtask_id}
        if hand_over is not None and duty
        else intent.data,
        handoff_summary=intent.handoff_summary,
        sent_at=draft.now,
        call_id=intent.call_id,
        origins=label_message(draft, sender),
        group=intent.group,
    )


def _hand_over(draft: Draft, message: Message, hand_over: SubtaskHandedOver) -> None:
    """Move the subtask to its new agent and skip the old agent's steps for it."""
    old_thread = thread_id(message.sender_id, hand_over.subtask_id)
    for step in [
        open_step for open_step in draft.state.steps_of(message.sender_id) if open_step.thread_id == old_thread
    ]:
        end_step(draft, step, "skipped", error=f"handed over to {hand_over.agent_id}")
    draft.emit(hand_over)
    update_member_state(draft, hand_over.stage_id, message.sender_id)


def deliver(draft: Draft, message: Message, receiver: AgentId, waiting: WaitingId | None) -> None:
    """Queue the receiver's step. A person gets none: they answer when they like."""
    agent = draft.state.agents[receiver]
    wait = draft.state.waits.get(message.return_waiting_id) if message.return_waiting_id else None
    wait = wait if wait is not None and wait.waiter == receiver else None
    if agent.spec.kind == "human":
        return
    if wait is not None and fill_call(draft, wait, "answer", message.message, message.origins):
        return
    person = draft.state.agents[message.sender_id].spec.kind == "human"
    work = Work(
        type="skill",
        executor=_choose_skill(message, agent.spec.style, person),
        intention=f"A message from {message.sender_id} is in text_content.",
        text_content=_render_message(message, waiting),
    )
    at_once = waiting is not None or (person and agent.spec.style == "plan")
    place = find_next_place(draft.state, agent) if at_once else None
    enqueue(
        draft,
        _choose_thread(draft, message, agent, wait),
        work,
        place=place if wait is None else find_place_for_answer(draft.state, agent, wait.waiting_id),
        message=message.message_id,
        answers=waiting,
        stage=None if message.stage_relative == "no_relative" else StageId(message.stage_relative),
        jumped=at_once or wait is not None,
        goes_on=wait is not None or _is_reply_to(draft, receiver),
        origins=message.origins,
    )


def _is_reply_to(draft: Draft, receiver: AgentId) -> bool:
    """Return whether the message results from reading a message of the receiver, who did not wait for it."""
    read = draft.cause.message_id if draft.cause is not None else None
    return read is not None and sender_of(read) == receiver


def _choose_skill(message: Message, style: str, person: bool) -> str:
    """Return the receiver's skill: plan for a person's request, answer a question, read the rest."""
    if person and message.kind == "request":
        return choose_deciding_skill(style)
    return choose_reply_skill(style) if message.need_reply else choose_reading_skill(style)


def _choose_thread(draft: Draft, message: Message, agent: AgentState, wait: Wait | None) -> ThreadId:
    """Return the thread for a message: the question's for an answer, a new one for a call, else the related work's."""
    name, task = agent.agent_id, message.task_id
    if wait is not None and wait.thread_id is not None and is_thread_open(draft.state, wait.thread_id):
        return wait.thread_id
    if message.delivery == "call":
        return open_thread(draft, name, task, call=message.message_id, on_behalf=list_principals(draft))
    if message.delivery == "handoff" and draft.cause is not None:
        stage_id, subtask_id = draft.cause.stage_id, draft.cause.subtask_id
        return open_thread(draft, name, task, stage=stage_id, subtask=subtask_id, on_behalf=list_principals(draft))
    stage = draft.state.stages.get(StageId(message.stage_relative))
    if stage is not None:
        for subtask in stage.subtasks:
            if subtask.agent == name and subtask.state == "running":
                return open_thread(draft, name, task, stage=stage.stage_id, subtask=subtask.subtask_id)
    return open_thread(draft, name, task, on_behalf=list_message_principals(draft, name, task))


def _render_message(message: Message, waiting: WaitingId | None) -> str:
    """Return the text that the receiver reads. Text from a sender that has read untrusted content is fenced."""
    labels = filter_untrusted(message.origins)
    parts = [f"from: {message.sender_id}"]
    if labels:
        parts.append(render_origins_line(labels))
    if message.handoff_summary is not None or message.delivery == "handoff":
        summary = message.handoff_summary or ""
        parts.append("summary_of_sender_work: " + (f"\n{add_fence(summary)}" if labels and summary else summary))
    text = add_fence(message.message) if labels else message.message
    parts.append(f"content:\n{text}" if message.kind == "handoff" else text)
    if waiting is not None:
        parts.append(f"<return_waiting_id>{waiting}</return_waiting_id>")
    return "\n".join(parts)


GROUP_NAME: Final = re.compile(r"[^\s#@>:!?/,]{1,64}")


def form_group(draft: Draft, intent: FormGroup, by: str) -> RuleResult:
    """Form a group of a task's people, or change its participants."""
    if not is_trusted(draft.state, by):
        return Rejection(code="not_a_person", why=f"{by!r} may not form a group: people do.")
    task = draft.state.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return reject_unknown("task", intent.task_id, tuple(draft.state.tasks))
    if not GROUP_NAME.fullmatch(intent.group_id) or not intent.group_id.isprintable():
        hint = "Use 1 to 64 characters without spaces and without # @ > : ! ? / ,"
        return reject("bad_group", "{name!r} cannot be a group's name.", hint, name=intent.group_id)
    known = draft.state.groups.get(intent.group_id)
    if known is not None and known.task_id != task.task_id:
        why = "The group {name!r} talks in task {task!r}."
        return reject("group_exists", why, name=intent.group_id, task=known.task_id)
    for name in intent.participants:
        if name not in task.group:
            return reject_not_in_group(name, task)
        if draft.state.agents[name].spec.kind != "human":
            why = "{name!r} is not a person, and only people take part in a group."
            hint = "Name it in your message: it then gets that message."
            return reject("no_person", why, hint, code="not_a_person", name=name)
    people = tuple(dict.fromkeys(intent.participants))
    if len(people) < 2:
        return reject("small_group", "A group has two people or more.", "Write to them directly.")
    group = ConversationGroup(group_id=intent.group_id, task_id=task.task_id, participants=people, formed_at=draft.now)
    draft.emit(GroupFormed(at=draft.now, group=group))
    return None


def address_group(draft: Draft, intent: SendMessage, sender: AgentId) -> SendMessage | Rejection:
    """Address a group message to all other participants and to the named models."""
    group = draft.state.groups.get(intent.group) if intent.group is not None else None
    if group is None or group.task_id != intent.task_id:
        return reject_unknown("group", str(intent.group), tuple(draft.state.groups))
    if sender not in group.participants:
        why = "{name!r} takes no part in the group {group!r}."
        return reject("not_in_this_group", why, code="not_in_group", name=sender, group=group.group_id)
    if intent.waiting or intent.return_waiting_id is not None or intent.delivery != "post":
        why = "A message to a group cannot wait for an answer."
        return reject("no_waiting_here", why, "Write to that person directly.")
    others = [name for name in filter_people(draft.state, group.participants) if name != sender]
    return evolve(intent, receiver=tuple(dict.fromkeys((*others, *intent.receiver))))
