"""Questions: to a person about a step, to the house itself, and the one that a long-tail tool puts to its agent."""

from __future__ import annotations

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, MessageId, message_id, waiting_id
from greenroom.core.base.records import Data
from greenroom.core.rules.behalf import given_here
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, not_in_group, unknown
from greenroom.core.rules.intents import AskInfo, NeedToolDecision
from greenroom.core.rules.messages import deliver
from greenroom.core.rules.origins import known_of_all
from greenroom.core.rules.queries import answer, told_of
from greenroom.core.rules.queue import ahead, enqueue, is_open, open_thread, owed_in
from greenroom.core.rules.telling import tell
from greenroom.core.rules.waits import release
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.step import Step, Work
from greenroom.core.state.world import ordered


def ask_person(draft: Draft, step: Step, person: AgentId, question: str, data: Data) -> None:
    """A question about a step, as a message to a person; the asker is not locked, the step waits."""
    tell(draft, step.agent_id, (person,), question, task=step.task_id, data=data, kind="request")


def ask_who_is_there(draft: Draft) -> None:
    """A step that waits for a yes, and of which nobody who is there was told, is asked about again: whom it was asked
    of has left, or people came only now."""
    person = draft.world.human()
    told = {(message.data or {}).get("approval_id") for message in draft.world.mail.values()}
    for approval in ordered(draft.world.approvals):
        if person is not None and approval.state == "pending" and approval.approval_id not in told:
            step = draft.world.steps[approval.step_id]
            ask_person(draft, step, person, approval.question, {"approval_id": approval.approval_id})


def ask_info(draft: Draft, intent: AskInfo, by: str) -> Verdict:
    """Lock, answer and unlock: the answer is the asker's next step."""
    agent = draft.world.agents.get(AgentId(by))
    if agent is None:
        return Rejected(code="not_an_agent", why=f"{by!r} is no agent: views are for doors.")
    task = draft.world.tasks.get(intent.task_id)
    if task is None or by not in task.group or task.state == "cancelling":
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
            origins=known_of_all(draft, told_of(draft.world, intent, agent)) if returns is not None else (),
        )
        draft.emit(MessageSent(at=draft.now, message=message, thread_id=draft.cause.thread_id if draft.cause else None))
        if returns is not None:
            deliver(draft, message, agent.agent_id, None)
            release(draft, returns, "reply")
    return None


def need_tool_decision(draft: Draft, intent: NeedToolDecision, by: str) -> Verdict:
    """The result of a long-tail tool is judged next: an instruction to its agent, as a message that is a step."""
    task = draft.world.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    if intent.agent_id not in task.group:
        return not_in_group(intent.agent_id, task)
    if intent.stage_id is not None and intent.stage_id not in task.stages:
        return unknown("stage", intent.stage_id, task.stages)
    cause = draft.cause
    if not is_trusted(draft.world, by) and (cause is None or cause.work.type != "tool" or by != intent.agent_id):
        return Rejected(code="tool_decision_not_planned", why="Only a tool step may ask for a tool_decision.")
    work = Work(
        type="skill",
        executor="tool_decision",
        intention=f"Decide how to go on with {intent.tool_name}.",
        text_content=intent.tool_name,
    )
    here = cause is not None and (cause.agent_id, cause.task_id) == (intent.agent_id, intent.task_id)
    if cause is not None and here and is_open(draft.world, cause.thread_id):
        thread = cause.thread_id
    else:
        thread = open_thread(draft, intent.agent_id, intent.task_id, on_behalf=given_here(draft))
    owed = owed_in(draft, thread)
    place = ahead(draft.world, draft.world.agents[intent.agent_id], thread, owed)
    told = _instruct(draft, intent, work.intention)
    enqueue(
        draft,
        thread,
        work,
        place=place,
        message=told,
        answers=owed,
        stage=intent.stage_id,
        jumped=owed is not None,
        goes_on=True,
    )
    return None


def _instruct(draft: Draft, intent: NeedToolDecision, text: str) -> MessageId:
    """The instruction as a message, so that the log says where the step came from."""
    agent, told = intent.agent_id, {"instruction": "add_tool_decision", "tool_name": intent.tool_name}
    return tell(draft, agent, (agent,), text, task=intent.task_id, data=told, kind="instruction", stage=intent.stage_id)
