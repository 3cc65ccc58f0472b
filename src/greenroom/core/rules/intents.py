"""Intents: requests in the imperative, MAS's `execute_output` keys among them. Who sends one is never part of it."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from greenroom.core.base.amounts import NOTHING, Amounts, Limits
from greenroom.core.base.ids import (
    AgentId,
    ApprovalId,
    ArtifactId,
    BudgetId,
    GroupId,
    MemoryId,
    MessageId,
    StageId,
    StepId,
    SubtaskId,
    TaskId,
    TeamId,
    ThreadId,
    TimerId,
    WaitingId,
)
from greenroom.core.base.records import Data, record
from greenroom.core.state import stage as stages
from greenroom.core.state.agent import Capability
from greenroom.core.state.approval import ApprovalAnswer, ApprovalScope
from greenroom.core.state.knowledge import Citation, MemoryType
from greenroom.core.state.message import Delivery, MessageKind
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import MemberState, SubtaskEnd
from greenroom.core.state.step import PreparedEffect, StepTerms, Work
from greenroom.core.state.task import Driver, Routing
from greenroom.core.state.team import ForkOrigin

StagePlan: TypeAlias = stages.StagePlan
SubtaskPlan: TypeAlias = stages.SubtaskPlan


@record
class CreateTeam:
    """Create a team."""

    team_id: TeamId
    name: str
    kit: str = ""
    workspace: str = ""
    limits: Limits = Limits()
    waiting_timeout: int | None = None


@record
class ForkTeam:
    """Start a team as a copy. Running steps are interrupted; approvals, timers and reservations are dropped."""

    team_id: TeamId
    origin: ForkOrigin


@record
class Recover:
    """Take over a team. Steps that ran under the old owner become interrupted or uncertain."""

    epoch: int
    owner: str


@record
class Declare:
    """Set the blueprints, the skills and tools, and the approval timeout in ms (None: requests never expire)."""

    blueprints: tuple[AgentSpec, ...] = ()
    abilities: tuple[Capability, ...] = ()
    approvals_expire: int | None = None


@record
class PauseTeam:
    """Pause the team: start nothing new. With `now`, interrupt running steps too."""

    why: str = "paused by a person"
    now: bool = False


@record
class ResumeTeam:
    """Resume a paused team."""


@record
class AddAgent:
    """Add an agent (MAS `init_new_agent`), from a spec or from a blueprint's name."""

    agent_id: AgentId
    spec: AgentSpec | None = None
    blueprint: str | None = None


@record
class ChangeAgent:
    """Change an agent's spec: its model, its tools. It takes effect with the agent's next step."""

    agent_id: AgentId
    spec: AgentSpec


@record
class RemoveAgent:
    """Remove an agent from the team."""

    agent_id: AgentId
    why: str = "no longer needed"


@record
class AddParticipants:
    """Add agents to a task's group (MAS `add_task_participant`)."""

    task_id: TaskId
    agents: tuple[AgentId, ...]


@record
class UpdateWorkingMemory:
    """Add a task or stage to an agent's working memory (MAS `update_working_memory`)."""

    agent_id: AgentId
    task_id: TaskId
    stage_id: StageId | None = None


@record
class AddTask:
    """Create a task with its group and first stages; with `start`, start it. Only people create one that is `standing`
    or has `routing`: a team that passes it on."""

    name: str
    intention: str
    manager: AgentId
    group: tuple[AgentId, ...] = ()
    stages: tuple[StagePlan, ...] = ()
    driver: Driver = "auto"
    limits: Limits = Limits()
    start: bool = True
    standing: bool = False
    routing: Routing | None = None


@record
class StartTask:
    """Start a created task, so that its stages run."""

    task_id: TaskId


@record
class FinishTask:
    """End a task as finished or failed. Its running effects are stopped first."""

    task_id: TaskId
    state: Literal["finished", "failed"] = "finished"
    summary: str = ""
    evidence: tuple[str, ...] = ()


@record
class PauseTask:
    """Pause a task: start nothing new in it. With `now`, interrupt running steps too."""

    task_id: TaskId
    why: str = "paused by a person"
    now: bool = False


@record
class ResumeTask:
    """Resume a paused task."""

    task_id: TaskId


@record
class CancelTask:
    """Cancel a task: queued steps end immediately, running ones when they have stopped."""

    task_id: TaskId
    why: str = "cancelled by a person"


@record
class AddStages:
    """Append stages to a task (MAS `add_stage`)."""

    task_id: TaskId
    stages: tuple[StagePlan, ...]


@record
class Replan:
    """Give a stage another plan. New agents are added and join the task's group. Subtasks that run or have ended must
    be in it. Waiting ones can be changed, left out or added."""

    stage_id: StageId
    subtasks: tuple[SubtaskPlan, ...]
    agents: tuple[AddAgent, ...] = ()


@record
class StartStage:
    """Make a stage the task's active stage."""

    stage_id: StageId


@record
class FinishStage:
    """End a stage (MAS `finish_stage`)."""

    stage_id: StageId
    state: Literal["finished", "failed"] = "finished"
    summary: str = ""


@record
class ReportStage:
    """Notify the manager that a stage has no work left."""

    stage_id: StageId


@record
class AssignSubtask:
    """Let a subtask's agent begin."""

    subtask_id: SubtaskId
    stage_id: StageId


@record
class FinishSubtask:
    """End a subtask, with a summary, evidence and a typed hand-off. A failed one may be tried again, unless `final`."""

    subtask_id: SubtaskId
    stage_id: StageId
    state: SubtaskEnd = "finished"
    summary: str = ""
    evidence: tuple[str, ...] = ()
    output: Data | None = None
    final: bool = False


@record
class UpdateStageAgentState:
    """Set an agent's state in a stage (MAS `update_stage_agent_state`)."""

    stage_id: StageId
    agent_id: AgentId
    state: MemberState


@record
class UpdateStageAgentCompletion:
    """Report how an agent's part of a stage went (MAS `update_stage_agent_completion`)."""

    stage_id: StageId
    agent_id: AgentId
    completion_summary: str


@record
class SendMessage:
    """Send a message. With `waiting`, the sender waits until every receiver has answered.

    `call_id` is the sender's native call whose result is the answer. With a `group`, all participants get the message,
    and `receiver` names the models that read it too. `answers` is the message that a person answers; if it is omitted,
    the only message to which they owe it an answer. With `clear` a hand-over empties the sender's conversation.
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
    clear: bool = False


@record
class FormGroup:
    """Form a group of a task's people, or change its participants."""

    group_id: GroupId
    task_id: TaskId
    participants: tuple[AgentId, ...]


@record
class PostNote:
    """Post a short note on the task board (MAS `send_shared_message`)."""

    task_id: TaskId
    content: str
    stage_id: StageId | None = None


@record
class SetValue:
    """Set a value on the task board."""

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
    """Ask one of eleven queries (MAS `ask_info`). The answer is a message that ends the agent's wait."""

    query: Query
    task_id: TaskId
    about: tuple[str, ...] = ()


@record
class NeedToolDecision:
    """Have the agent judge the result of a long-tail tool next (MAS `need_tool_decision`)."""

    agent_id: AgentId
    task_id: TaskId
    stage_id: StageId | None
    tool_name: str


@record
class AnswerApproval:
    """Approve or deny a step. With scope *run* or *always*, approval grants a rule: `grant`, or the proposed one."""

    approval_id: ApprovalId
    answer: ApprovalAnswer
    scope: ApprovalScope = "once"
    reason: str = ""
    grant: str = ""


@record
class SetTimer:
    """Wake an agent at `due` with `text`."""

    agent_id: AgentId
    task_id: TaskId
    name: str
    due: int
    text: str = ""


@record
class CancelTimer:
    """Cancel a timer that would wake an agent."""

    timer_id: TimerId


@record
class FireTimer:
    """Handle a timer that is due."""

    timer_id: TimerId


@record
class QueueSteps:
    """Add steps at the end of an agent's queue (MAS `add_step`), or before its next step (`add_next_step`). `origins`
    labels the sources of their text, beyond what the sender has read."""

    agent_id: AgentId
    works: tuple[Work, ...]
    place: Literal["last", "next"] = "last"
    task_id: TaskId | None = None
    stage_id: StageId | None = None
    thread_id: ThreadId | None = None
    origins: tuple[str, ...] = ()


@record
class RecordStep:
    """Record what a person has done. People act first; the step follows.

    The message, report, end or decision that belongs to it is applied first, in the same commit.
    """

    agent_id: AgentId
    work: Work
    task_id: TaskId
    stage_id: StageId | None = None
    state: Literal["finished", "failed"] = "finished"
    result: Data | None = None
    error: str = ""
    says: SendMessage | None = None
    reports: FinishSubtask | None = None
    ends: FinishStage | None = None
    decides: AnswerApproval | None = None


@record
class ModifyStep:
    """Change a step that has not started. An `instruction_content` makes a pending step runnable."""

    step_id: StepId
    work: Work


@record
class RemoveStep:
    """Remove a step that has not started from the queue."""

    step_id: StepId


@record
class Interrupt:
    """Cancel everything that runs in a conversation, so that a person can send something else. It stays open."""

    thread_id: ThreadId


@record
class StartStep:
    """Start the next attempt under these terms. It is rejected if the step's work has changed since."""

    step_id: StepId
    terms: StepTerms
    work: Work


@record
class PrepareEffect:
    """Record the external effects that the attempt is about to make."""

    step_id: StepId
    attempt: int
    prepared: tuple[PreparedEffect, ...]


@record
class ReleaseStep:
    """End an attempt that stopped without a result. Without `spent`, its reservation counts as spent.

    With `pause` its task pauses until a person acts. Without `ran` the effect never began, so it is not uncertain.
    `partial` is the text of an answer that has no end.
    """

    step_id: StepId
    attempt: int
    why: str = "interrupted"
    spent: Amounts | None = None
    pause: bool = False
    ran: bool = True
    partial: str = ""


@record
class SetLimits:
    """Set the limits of a budget."""

    budget_id: BudgetId
    limits: Limits


@record
class MoveWindow:
    """Move the start of a thread's window to a version (`Step.ended_in`). `size` is what the window still holds.

    Without a version it begins with the last ended step; for a step that asks for this, with itself.
    """

    thread_id: ThreadId
    window_from: int | None = None
    size: int = 0


@record
class SetWorkspace:
    """Set a thread's workspace."""

    thread_id: ThreadId
    workspace: Data


@record
class SaveMemory:
    """Save a memory in the log: a new one, or new content for `memory_id`. Those in `merged_from` are removed."""

    content: str
    tags: tuple[str, ...] = ()
    memory_id: MemoryId | None = None
    merged_from: tuple[MemoryId, ...] = ()
    type: MemoryType = "short_term"


@record
class Remember:
    """Append text to the sending agent's permanent memory (MAS's persistent memory).

    Headings are of the third level or lower, so that the text fits into a prompt.
    """

    content: str


@record
class ClearMemory:
    """Remove memories from the team's short-term memory."""

    memory_ids: tuple[MemoryId, ...]


@record
class WriteArtifact:
    """Write a version of an artifact, made from version `based_on` (0: a new artifact). The sending step has stored its
    content as `blob`, or a person goes back to the content of an earlier version."""

    task_id: TaskId
    artifact_id: ArtifactId
    title: str
    media_type: str
    blob: str
    size: int
    lines: int
    based_on: int = 0
    reason: str = ""
    citations: tuple[Citation, ...] = ()


AgentIntent = AddAgent | RemoveAgent | AddParticipants | UpdateWorkingMemory
TaskIntent = AddTask | StartTask | FinishTask | PauseTask | ResumeTask | CancelTask
StageIntent = (
    AddStages | Replan | StartStage | FinishStage | FinishSubtask | UpdateStageAgentState | UpdateStageAgentCompletion
)
StepIntent = QueueSteps | ModifyStep | RemoveStep
MessageIntent = SendMessage | PostNote | SetValue | AskInfo | NeedToolDecision
SettingIntent = SetLimits | SetTimer | CancelTimer | MoveWindow | SetWorkspace
KnowledgeIntent = SaveMemory | Remember | ClearMemory | WriteArtifact

Consequence = AgentIntent | TaskIntent | StageIntent | StepIntent | MessageIntent | SettingIntent | KnowledgeIntent
"""The intents that a finished step may carry."""


@record
class FinishStep:
    """Record an attempt's result; of a *cancelled* one a partial result. Each intent is decided separately."""

    step_id: StepId
    attempt: int
    outcome: Literal["finished", "failed", "uncertain", "cancelled"] = "finished"
    result: Data | None = None
    error: str = ""
    spent: Amounts = NOTHING
    intents: tuple[Consequence, ...] = ()
    blobs: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


TeamIntent = CreateTeam | ForkTeam | Recover | Declare | PauseTeam | ResumeTeam
AttemptIntent = StartStep | PrepareEffect | FinishStep | ReleaseStep
ClientIntent = (
    ChangeAgent | ReportStage | AssignSubtask | Interrupt | FormGroup | RecordStep | AnswerApproval | FireTimer
)

Intent = Consequence | TeamIntent | AttemptIntent | ClientIntent
INTENT_TYPES: Final[dict[str, type[Intent]]] = {intent_type.__name__: intent_type for intent_type in get_args(Intent)}
