"""Intents: imperative, what someone asks for. MAS's `execute_output` keys are among them.

Who asks is not part of an intent: it is told beside it, so that no reply of a model can claim to be somebody else.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.ids import StepId
from greenroom.core.base.records import Data, record
from greenroom.core.rules.intents.knowledge import ClearMemory, Remember, SaveMemory, WriteArtifact
from greenroom.core.rules.intents.plan import (
    AddAgent,
    AddParticipants,
    AddStages,
    AddTask,
    AssignSubtask,
    CancelTask,
    ChangeAgent,
    CreateTeam,
    Declare,
    FinishStage,
    FinishSubtask,
    FinishTask,
    ForkTeam,
    PauseTask,
    PauseTeam,
    Recover,
    RemoveAgent,
    ReportStage,
    ResumeTask,
    ResumeTeam,
    StagePlan,
    StartStage,
    StartTask,
    SubtaskPlan,
    UpdateStageAgentCompletion,
    UpdateStageAgentState,
    UpdateWorkingMemory,
)
from greenroom.core.rules.intents.talk import (
    AnswerApproval,
    AskInfo,
    CancelTimer,
    FireTimer,
    FormGroup,
    NeedToolDecision,
    PostNote,
    Query,
    SendMessage,
    SetTimer,
    SetValue,
)
from greenroom.core.rules.intents.work import (
    Interrupt,
    ModifyStep,
    MoveWindow,
    PrepareEffect,
    QueueSteps,
    RecordStep,
    ReleaseStep,
    RemoveStep,
    SetLimits,
    SetWorkspace,
    StartStep,
)

__all__ = [
    "INTENT_TYPES",
    "AddAgent",
    "AddParticipants",
    "AddStages",
    "AddTask",
    "AnswerApproval",
    "AskInfo",
    "AssignSubtask",
    "CancelTask",
    "CancelTimer",
    "ChangeAgent",
    "ClearMemory",
    "Consequence",
    "CreateTeam",
    "Declare",
    "FinishStage",
    "FinishStep",
    "FinishSubtask",
    "FinishTask",
    "FireTimer",
    "ForkTeam",
    "FormGroup",
    "Intent",
    "Interrupt",
    "ModifyStep",
    "MoveWindow",
    "NeedToolDecision",
    "PauseTask",
    "PauseTeam",
    "PostNote",
    "PrepareEffect",
    "Query",
    "QueueSteps",
    "RecordStep",
    "Recover",
    "ReleaseStep",
    "Remember",
    "RemoveAgent",
    "RemoveStep",
    "ReportStage",
    "ResumeTask",
    "ResumeTeam",
    "SaveMemory",
    "SendMessage",
    "SetLimits",
    "SetTimer",
    "SetValue",
    "SetWorkspace",
    "StagePlan",
    "StartStage",
    "StartStep",
    "StartTask",
    "SubtaskPlan",
    "UpdateStageAgentCompletion",
    "UpdateStageAgentState",
    "UpdateWorkingMemory",
    "WriteArtifact",
]

Consequence = (
    AddAgent
    | RemoveAgent
    | AddParticipants
    | UpdateWorkingMemory
    | AddTask
    | StartTask
    | FinishTask
    | PauseTask
    | ResumeTask
    | CancelTask
    | AddStages
    | StartStage
    | FinishStage
    | FinishSubtask
    | UpdateStageAgentState
    | UpdateStageAgentCompletion
    | QueueSteps
    | ModifyStep
    | RemoveStep
    | SendMessage
    | PostNote
    | SetValue
    | AskInfo
    | NeedToolDecision
    | SetLimits
    | SetTimer
    | CancelTimer
    | MoveWindow
    | SetWorkspace
    | SaveMemory
    | Remember
    | ClearMemory
    | WriteArtifact
)
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


Intent = (
    Consequence
    | CreateTeam
    | ChangeAgent
    | ForkTeam
    | Recover
    | Declare
    | PauseTeam
    | ResumeTeam
    | ReportStage
    | AssignSubtask
    | Interrupt
    | FormGroup
    | RecordStep
    | StartStep
    | PrepareEffect
    | FinishStep
    | ReleaseStep
    | AnswerApproval
    | FireTimer
)

INTENT_TYPES: Final[dict[str, type[Intent]]] = {one.__name__: one for one in get_args(Intent)}
