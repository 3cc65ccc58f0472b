"""Intents: imperative, what someone asks for. MAS's `execute_output` keys are among them.

Who asks is not part of an intent: it is told beside it, so that no reply of a model can claim to be somebody else.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

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
from greenroom.core.state.agent import Ability
from greenroom.core.state.approval import Answer, Scope
from greenroom.core.state.message import Delivery, MessageKind
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import MemberWord, OnFailure, SubtaskEnd
from greenroom.core.state.step import Prepared, Terms, Work
from greenroom.core.state.task import Driver
from greenroom.core.state.team import Origin


@record
class CreateTeam:
    """Begin a team."""

    team_id: TeamId
    name: str
    kit: str = ""
    workspace: str = ""
    limits: Limits = Limits()
    waiting_timeout: int | None = None


@record
class ForkTeam:
    """Begin as a copy: what ran is interrupted; approvals, timers and reservations are void."""

    team_id: TeamId
    origin: Origin


@record
class Recover:
    """Take the team over: interrupt or doubt whatever ran under the old owner."""

    epoch: int
    owner: str


@record
class Declare:
    """Say which blueprints and abilities there are, and how long (ms) questions wait; None is for ever."""

    blueprints: tuple[AgentSpec, ...] = ()
    abilities: tuple[Ability, ...] = ()
    approvals_expire: int | None = None


@record
class PauseTeam:
    """Start nothing new anywhere; with `now`, interrupt what runs."""

    why: str = "paused by a person"
    now: bool = False


@record
class ResumeTeam:
    """Go on."""


@record
class AddAgent:
    """Make an agent (MAS `init_new_agent`), from a spec or from a blueprint's name."""

    agent_id: AgentId
    spec: AgentSpec | None = None
    blueprint: str | None = None


@record
class ChangeAgent:
    """Give an agent another spec: another model, other tools. From its next step on it is that one."""

    agent_id: AgentId
    spec: AgentSpec


@record
class RemoveAgent:
    """Let an agent go."""

    agent_id: AgentId
    why: str = "no longer needed"


@record
class AddParticipants:
    """Add agents to a task's group (MAS `add_task_participant`)."""

    task_id: TaskId
    agents: tuple[AgentId, ...]


@record
class UpdateWorkingMemory:
    """Remember a task or stage (MAS `update_working_memory`)."""

    agent_id: AgentId
    task_id: TaskId
    stage_id: StageId | None = None


@record
class SubtaskPlan:
    """A subtask to be: `needs` are names of subtasks of the same stage."""

    name: str
    duty: str
    agent: AgentId
    needs: tuple[str, ...] = ()
    required: bool = True


@record
class StagePlan:
    """A stage to be."""

    intention: str
    subtasks: tuple[SubtaskPlan, ...]
    on_failure: OnFailure = "stop"


@record
class AddTask:
    """Create a task with its group and first stages; with `start`, begin at once. Only people make a `standing` one."""

    name: str
    intention: str
    manager: AgentId
    group: tuple[AgentId, ...] = ()
    stages: tuple[StagePlan, ...] = ()
    driver: Driver = "auto"
    limits: Limits = Limits()
    start: bool = True
    standing: bool = False


@record
class StartTask:
    """Let a created task's stages run."""

    task_id: TaskId


@record
class FinishTask:
    """End a task; its running effects are ended first."""

    task_id: TaskId
    state: Literal["finished", "failed"] = "finished"
    summary: str = ""
    evidence: tuple[str, ...] = ()


@record
class PauseTask:
    """Start nothing new in this task; with `now`, interrupt what runs."""

    task_id: TaskId
    why: str = "paused by a person"
    now: bool = False


@record
class ResumeTask:
    """Let the task go on."""

    task_id: TaskId


@record
class CancelTask:
    """End a task as cancelled: queued steps at once, running ones as soon as they are dead."""

    task_id: TaskId
    why: str = "cancelled by a person"


@record
class AddStages:
    """Append stages to a task (MAS `add_stage`)."""

    task_id: TaskId
    stages: tuple[StagePlan, ...]


@record
class StartStage:
    """Make this the task's active stage."""

    stage_id: StageId


@record
class FinishStage:
    """End a stage (MAS `finish_stage`)."""

    stage_id: StageId
    state: Literal["finished", "failed"] = "finished"
    summary: str = ""


@record
class ReportStage:
    """Tell the manager that a stage has nothing left to do."""

    stage_id: StageId


@record
class AssignSubtask:
    """Let its agent begin with a subtask."""

    subtask_id: SubtaskId
    stage_id: StageId


@record
class FinishSubtask:
    """Say how a subtask ended, with evidence."""

    subtask_id: SubtaskId
    stage_id: StageId
    state: SubtaskEnd = "finished"
    summary: str = ""
    evidence: tuple[str, ...] = ()


@record
class UpdateStageAgentState:
    """MAS `update_stage_agent_state`: how the agent stands in the stage."""

    stage_id: StageId
    agent_id: AgentId
    state: MemberWord


@record
class UpdateStageAgentCompletion:
    """MAS `update_stage_agent_completion`: what the agent says of its part."""

    stage_id: StageId
    agent_id: AgentId
    completion_summary: str


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


@record
class QueueSteps:
    """Add steps in order (MAS `add_step`), or before the next one (`add_next_step`). `origins` are labels of where
    their words come from, where that is not only who asks."""

    agent_id: AgentId
    works: tuple[Work, ...]
    place: Literal["last", "next"] = "last"
    task_id: TaskId | None = None
    stage_id: StageId | None = None
    thread_id: ThreadId | None = None
    origins: tuple[str, ...] = ()


@record
class RecordStep:
    """Write down what a person has done already: people act first, and it is a step afterwards.

    What they say, report, end or decide in it is done first, here: then there is never the one without the other.
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
    """Change a step that has not begun; an `instruction_content` makes a pending one runnable."""

    step_id: StepId
    work: Work


@record
class RemoveStep:
    """Take a step that has not begun out of the queue."""

    step_id: StepId


@record
class Interrupt:
    """End whatever goes on in a conversation: somebody wants to say something else. It stays open."""

    thread_id: ThreadId


@record
class StartStep:
    """Begin the next attempt, under these terms. They are for this work: if the step is to do another one, it is no."""

    step_id: StepId
    terms: Terms
    work: Work


@record
class PrepareEffect:
    """Say what the attempt is about to do outside."""

    step_id: StepId
    attempt: int
    prepared: tuple[Prepared, ...]


@record
class ReleaseStep:
    """The attempt ended without a result and its effect is dead. Unless told, what was reserved counts as spent.

    With `pause` its task pauses, because nothing will get better until somebody does something. Without `ran` its
    effect never began, so it is in no doubt.
    """

    step_id: StepId
    attempt: int
    why: str = "interrupted"
    spent: Amounts | None = None
    pause: bool = False
    ran: bool = True


@record
class SetLimits:
    """Give a budget limits."""

    budget_id: BudgetId
    limits: Limits


@record
class MoveWindow:
    """Begin the thread's window with what ended at this version (`Step.ended_in`) or later; `size` is what that has.

    Without a version it begins with the last step that ended: for a step that asks this, with itself.
    """

    thread_id: ThreadId
    window_from: int | None = None
    size: int = 0


@record
class SetWorkspace:
    """Say where a thread's files are."""

    thread_id: ThreadId
    workspace: Data


@record
class SaveMemory:
    """Remember this in the team's short-term memory: as something new, or in the place of `memory_id`.

    The memories that it is `merged_from` are then no longer there by themselves.
    """

    content: str
    tags: tuple[str, ...] = ()
    memory_id: MemoryId | None = None
    merged_from: tuple[MemoryId, ...] = ()


@record
class Remember:
    """MAS's persistent memory: keep this for good, below what was kept before. It is the asking agent's own.

    Headings are of the third level or lower, so that it can stand in a prompt.
    """

    content: str


@record
class ClearMemory:
    """Remember these no longer."""

    memory_ids: tuple[MemoryId, ...]


@record
class WriteArtifact:
    """Write a version of an artifact. `based_on` is the version that it was made from: 0 for a new artifact.

    `blob` is its content, which the step that asks has kept.
    """

    task_id: TaskId
    artifact_id: ArtifactId
    title: str
    media_type: str
    blob: str
    size: int
    lines: int
    based_on: int = 0


AgentIntent = AddAgent | RemoveAgent | AddParticipants | UpdateWorkingMemory
TaskIntent = AddTask | StartTask | FinishTask | PauseTask | ResumeTask | CancelTask
StageIntent = AddStages | StartStage | FinishStage | FinishSubtask | UpdateStageAgentState | UpdateStageAgentCompletion
StepIntent = QueueSteps | ModifyStep | RemoveStep
MessageIntent = SendMessage | PostNote | SetValue | AskInfo | NeedToolDecision
SettingIntent = SetLimits | SetTimer | CancelTimer | MoveWindow | SetWorkspace
KnowledgeIntent = SaveMemory | Remember | ClearMemory | WriteArtifact

Consequence = AgentIntent | TaskIntent | StageIntent | StepIntent | MessageIntent | SettingIntent | KnowledgeIntent
"""What a finished step may ask for."""


@record
class FinishStep:
    """Record an attempt's result; each intent it carries is decided on its own.

    *cancelled* is one that somebody has cancelled and of which something is left.
    """

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
DoorIntent = ChangeAgent | ReportStage | AssignSubtask | Interrupt | FormGroup | RecordStep | AnswerApproval | FireTimer

Intent = Consequence | TeamIntent | AttemptIntent | DoorIntent
INTENT_TYPES: Final[dict[str, type[Intent]]] = {one.__name__: one for one in get_args(Intent)}
