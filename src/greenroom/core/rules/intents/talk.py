"""Intents about messages, the board, questions, approvals and timers."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, ApprovalId, GroupId, MessageId, StageId, TaskId, TimerId, WaitingId
from greenroom.core.base.records import Data, record
from greenroom.core.state.approval import Answer, Scope
from greenroom.core.state.message import Delivery, MessageKind


@record
class SendMessage:
    """Send a message. `waiting` locks the sender until every receiver answered.

    `call_id` is the native call of the sender's own whose result the answer is. With a `group` it is said to all who
    take part there; `receiver` are then the models that are to hear it too. `answers` is the letter that a person
    answers with it; left out, it is the only one that they owe the receiver an answer to.
    """

    task_id: TaskId
    receiver: tuple[AgentId, ...]
    message: str
    stage_relative: StageId | Literal["no_relative"] = "no_relative"
    need_reply: bool = False
    waiting: bool = False
    return_waiting_id: WaitingId | None = None
    kind: MessageKind = "notification"
    delivery: Delivery = "post"
    protocol: str | None = None
    data: Data | None = None
    handoff_summary: str | None = None
    timeout: int | None = None
    sender: AgentId | None = None
    call_id: str | None = None
    group: GroupId | None = None
    answers: MessageId | None = None


@record
class FormGroup:
    """Let people of a task talk together; formed again, with others."""

    group_id: GroupId
    task_id: TaskId
    participants: tuple[AgentId, ...]


@record
class PostNote:
    """MAS `send_shared_message`: a short note on the task's board."""

    task_id: TaskId
    content: str
    stage_id: StageId | None = None


@record
class SetValue:
    """Put a value on the task's board."""

    task_id: TaskId
    key: str
    content: str


Query = Literal[
    "managed_tasks",
    "joined_tasks",
    "task",
    "stage",
    "blueprints",
    "all_agents",
    "team_agents",
    "task_agents",
    "stage_agents",
    "agent_states",
    "abilities",
]


@record
class AskInfo:
    """MAS `ask_info`: one of eleven queries; the answer comes as a message that unlocks the asker."""

    query: Query
    task_id: TaskId
    about: tuple[str, ...] = ()


@record
class NeedToolDecision:
    """MAS `need_tool_decision`: a long-tail tool wants its result judged next."""

    agent_id: AgentId
    task_id: TaskId
    stage_id: StageId | None
    tool_name: str


@record
class AnswerApproval:
    """Say yes or no to a step. A yes for the *run* or for *always* is one to a rule: `grant`, else the proposed one."""

    approval_id: ApprovalId
    answer: Answer
    scope: Scope = "once"
    reason: str = ""
    grant: str = ""


@record
class SetTimer:
    """Be woken at `due` with `text`."""

    agent_id: AgentId
    task_id: TaskId
    name: str
    due: int
    text: str = ""


@record
class CancelTimer:
    """Not be woken after all."""

    timer_id: TimerId


@record
class FireTimer:
    """Its time has come."""

    timer_id: TimerId
