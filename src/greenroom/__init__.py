"""Greenroom: a team of AI agents that you can trust with real work.

This module exports the public names. Each is loaded on first use, so that `import greenroom` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from greenroom.abilities.skills.conversation.transcript import Transcript as Transcript
    from greenroom.abilities.skills.conversation.transcript import Transcripts as Transcripts
    from greenroom.abilities.skills.converse import Converse as Converse
    from greenroom.adapters.models.pricing import ModelPrice as ModelPrice
    from greenroom.adapters.storage.sqlite.store_folder import Access as Access
    from greenroom.app.conversation.attachments import Attachments as Attachments
    from greenroom.app.conversation.chat import Turn as Turn
    from greenroom.app.function_tool import Context as Context
    from greenroom.app.function_tool import Done as Done
    from greenroom.app.function_tool import Tool as Tool
    from greenroom.app.function_tool import tool as tool
    from greenroom.app.library.agent import Agent as Agent
    from greenroom.app.library.agent import SyncConversation as SyncConversation
    from greenroom.app.library.agent_definition import AgentDefinition as AgentDefinition
    from greenroom.app.library.agent_definition import AgentOptions as AgentOptions
    from greenroom.app.library.agent_definition import Instructions as Instructions
    from greenroom.app.library.agent_definition import OutputValidator as OutputValidator
    from greenroom.app.library.agent_definition import RunContext as RunContext
    from greenroom.app.library.agent_definition import ToolList as ToolList
    from greenroom.app.library.approval import ApprovalCallback as ApprovalCallback
    from greenroom.app.library.approval import ApprovalDecision as ApprovalDecision
    from greenroom.app.library.approval import ApprovalRequest as ApprovalRequest
    from greenroom.app.library.events import Callback as Callback
    from greenroom.app.library.events import EventBus as EventBus
    from greenroom.app.library.greenroom import Greenroom as Greenroom
    from greenroom.app.library.mcp_servers import MCPServer as MCPServer
    from greenroom.app.library.multi_agent import MultiAgent as MultiAgent
    from greenroom.app.library.run import Conversation as Conversation
    from greenroom.app.library.run import Run as Run
    from greenroom.app.library.run import RunArguments as RunArguments
    from greenroom.app.library.run_result import ExecutedTools as ExecutedTools
    from greenroom.app.library.run_result import ReasoningDelta as ReasoningDelta
    from greenroom.app.library.run_result import RetryScheduled as RetryScheduled
    from greenroom.app.library.run_result import RunEvent as RunEvent
    from greenroom.app.library.run_result import RunInfo as RunInfo
    from greenroom.app.library.run_result import RunLimits as RunLimits
    from greenroom.app.library.run_result import RunResult as RunResult
    from greenroom.app.library.run_result import RunUsage as RunUsage
    from greenroom.app.library.run_result import TextDelta as TextDelta
    from greenroom.app.library.run_result import ToolCallFinished as ToolCallFinished
    from greenroom.app.library.run_result import ToolCallStarted as ToolCallStarted
    from greenroom.app.library.teams import TeamRunStatus as TeamRunStatus
    from greenroom.app.library.teams import Teams as Teams
    from greenroom.app.model_registry import ModelRegistry as ModelRegistry
    from greenroom.app.runtime import LoggedEvent as LoggedEvent
    from greenroom.app.runtime import Runtime as Runtime
    from greenroom.app.task_status import TaskState as TaskState
    from greenroom.app.task_status import TaskStatus as TaskStatus
    from greenroom.app.team_host import TeamHost as TeamHost
    from greenroom.app.teams.analysis import TeamProposal as TeamProposal
    from greenroom.core.base.amounts import Amounts as Amounts
    from greenroom.core.base.amounts import Limits as Limits
    from greenroom.core.base.clock import Clock as Clock
    from greenroom.core.base.clock import Millis as Millis
    from greenroom.core.base.errors import Bug as Bug
    from greenroom.core.base.errors import CommitUnknown as CommitUnknown
    from greenroom.core.base.errors import GreenroomError as GreenroomError
    from greenroom.core.base.errors import IncompleteAnswer as IncompleteAnswer
    from greenroom.core.base.errors import ModelFault as ModelFault
    from greenroom.core.base.errors import OutputError as OutputError
    from greenroom.core.base.errors import ProviderFault as ProviderFault
    from greenroom.core.base.errors import RefusedError as RefusedError
    from greenroom.core.base.errors import Rejection as Rejection
    from greenroom.core.base.errors import RunsElsewhere as RunsElsewhere
    from greenroom.core.base.errors import StaleOwner as StaleOwner
    from greenroom.core.base.errors import StoreFault as StoreFault
    from greenroom.core.base.errors import StoreFull as StoreFull
    from greenroom.core.base.errors import WorldFault as WorldFault
    from greenroom.core.base.ids import AgentId as AgentId
    from greenroom.core.base.ids import ApprovalId as ApprovalId
    from greenroom.core.base.ids import ArtifactId as ArtifactId
    from greenroom.core.base.ids import BudgetId as BudgetId
    from greenroom.core.base.ids import GroupId as GroupId
    from greenroom.core.base.ids import MemoryId as MemoryId
    from greenroom.core.base.ids import MessageId as MessageId
    from greenroom.core.base.ids import NoteId as NoteId
    from greenroom.core.base.ids import Principals as Principals
    from greenroom.core.base.ids import StageId as StageId
    from greenroom.core.base.ids import StepId as StepId
    from greenroom.core.base.ids import SubtaskId as SubtaskId
    from greenroom.core.base.ids import TaskId as TaskId
    from greenroom.core.base.ids import TeamId as TeamId
    from greenroom.core.base.ids import ThreadId as ThreadId
    from greenroom.core.base.ids import TimerId as TimerId
    from greenroom.core.base.ids import WaitingId as WaitingId
    from greenroom.core.base.records import Data as Data
    from greenroom.core.ports.executor import Capabilities as Capabilities
    from greenroom.core.ports.executor import CapabilitiesFactory as CapabilitiesFactory
    from greenroom.core.ports.executor import CloseCallback as CloseCallback
    from greenroom.core.ports.executor import Executor as Executor
    from greenroom.core.ports.executor import LiveEvent as LiveEvent
    from greenroom.core.ports.executor import Outcome as Outcome
    from greenroom.core.ports.executor import StepContext as StepContext
    from greenroom.core.ports.log import ArchiveRow as ArchiveRow
    from greenroom.core.ports.log import EventBatch as EventBatch
    from greenroom.core.ports.log import InboxRow as InboxRow
    from greenroom.core.ports.log import Lease as Lease
    from greenroom.core.ports.log import LeaseHolder as LeaseHolder
    from greenroom.core.ports.log import NewEvent as NewEvent
    from greenroom.core.ports.log import StateSnapshot as StateSnapshot
    from greenroom.core.ports.log import Store as Store
    from greenroom.core.ports.log import StoredEvent as StoredEvent
    from greenroom.core.ports.log import StreamHead as StreamHead
    from greenroom.core.ports.log import StreamInfo as StreamInfo
    from greenroom.core.ports.log import TakenIntent as TakenIntent
    from greenroom.core.ports.model import ChatMessage as ChatMessage
    from greenroom.core.ports.model import Failed as Failed
    from greenroom.core.ports.model import FaultKind as FaultKind
    from greenroom.core.ports.model import Finished as Finished
    from greenroom.core.ports.model import FinishReason as FinishReason
    from greenroom.core.ports.model import Media as Media
    from greenroom.core.ports.model import Model as Model
    from greenroom.core.ports.model import ModelCard as ModelCard
    from greenroom.core.ports.model import ModelEvent as ModelEvent
    from greenroom.core.ports.model import ModelRequest as ModelRequest
    from greenroom.core.ports.model import Models as Models
    from greenroom.core.ports.model import ModelTextDelta as ModelTextDelta
    from greenroom.core.ports.model import Opaque as Opaque
    from greenroom.core.ports.model import Purpose as Purpose
    from greenroom.core.ports.model import ToolCall as ToolCall
    from greenroom.core.ports.model import ToolSpec as ToolSpec
    from greenroom.core.ports.model import Usage as Usage
    from greenroom.core.ports.reply_reader import ReplyCall as ReplyCall
    from greenroom.core.ports.reply_reader import ReplyProblem as ReplyProblem
    from greenroom.core.ports.reply_reader import ReplyReader as ReplyReader
    from greenroom.core.ports.skill_library import OfferedSkill as OfferedSkill
    from greenroom.core.ports.skill_library import SkillLibrary as SkillLibrary
    from greenroom.core.ports.tool import Target as Target
    from greenroom.core.rules.intents import AddAgent as AddAgent
    from greenroom.core.rules.intents import AddStages as AddStages
    from greenroom.core.rules.intents import AddTask as AddTask
    from greenroom.core.rules.intents import AnswerApproval as AnswerApproval
    from greenroom.core.rules.intents import CancelTask as CancelTask
    from greenroom.core.rules.intents import Consequence as Consequence
    from greenroom.core.rules.intents import Intent as Intent
    from greenroom.core.rules.intents import PauseTask as PauseTask
    from greenroom.core.rules.intents import PostNote as PostNote
    from greenroom.core.rules.intents import QueueSteps as QueueSteps
    from greenroom.core.rules.intents import ResumeTask as ResumeTask
    from greenroom.core.rules.intents import SendMessage as SendMessage
    from greenroom.core.rules.intents import SetLimits as SetLimits
    from greenroom.core.rules.intents import StagePlan as StagePlan
    from greenroom.core.rules.intents import SubtaskPlan as SubtaskPlan
    from greenroom.core.rules.intents import UpdateWorkingMemory as UpdateWorkingMemory
    from greenroom.core.state.agent import AgentState as AgentState
    from greenroom.core.state.agent import Capability as Capability
    from greenroom.core.state.agent import Duty as Duty
    from greenroom.core.state.approval import Approval as Approval
    from greenroom.core.state.approval import ApprovalAnswer as ApprovalAnswer
    from greenroom.core.state.approval import ApprovalScope as ApprovalScope
    from greenroom.core.state.approval import ApprovalState as ApprovalState
    from greenroom.core.state.approval import Grant as Grant
    from greenroom.core.state.archive import ArchivedRecord as ArchivedRecord
    from greenroom.core.state.archive import ArchiveEntry as ArchiveEntry
    from greenroom.core.state.archive import ArchiveKind as ArchiveKind
    from greenroom.core.state.budget import Budget as Budget
    from greenroom.core.state.events import Event as Event
    from greenroom.core.state.knowledge import Artifact as Artifact
    from greenroom.core.state.knowledge import BoardValue as BoardValue
    from greenroom.core.state.knowledge import Citation as Citation
    from greenroom.core.state.knowledge import Memory as Memory
    from greenroom.core.state.knowledge import MemoryType as MemoryType
    from greenroom.core.state.knowledge import Note as Note
    from greenroom.core.state.message import ConversationGroup as ConversationGroup
    from greenroom.core.state.message import Delivery as Delivery
    from greenroom.core.state.message import Message as Message
    from greenroom.core.state.message import MessageKind as MessageKind
    from greenroom.core.state.message import Wait as Wait
    from greenroom.core.state.origin import Labels as Labels
    from greenroom.core.state.spec import AgentKind as AgentKind
    from greenroom.core.state.spec import AgentSpec as AgentSpec
    from greenroom.core.state.spec import AgentStyle as AgentStyle
    from greenroom.core.state.spec import Cooperation as Cooperation
    from greenroom.core.state.spec import Handoff as Handoff
    from greenroom.core.state.spec import History as History
    from greenroom.core.state.spec import MultipleCalls as MultipleCalls
    from greenroom.core.state.spec import PlanPolicy as PlanPolicy
    from greenroom.core.state.spec import ToolGroup as ToolGroup
    from greenroom.core.state.spec import TurnEnd as TurnEnd
    from greenroom.core.state.spec import TurnPolicy as TurnPolicy
    from greenroom.core.state.stage import Member as Member
    from greenroom.core.state.stage import MemberState as MemberState
    from greenroom.core.state.stage import OnFailure as OnFailure
    from greenroom.core.state.stage import Stage as Stage
    from greenroom.core.state.stage import StageState as StageState
    from greenroom.core.state.stage import Subtask as Subtask
    from greenroom.core.state.stage import SubtaskState as SubtaskState
    from greenroom.core.state.step import AfterCancel as AfterCancel
    from greenroom.core.state.step import Effect as Effect
    from greenroom.core.state.step import PreparedEffect as PreparedEffect
    from greenroom.core.state.step import Step as Step
    from greenroom.core.state.step import StepState as StepState
    from greenroom.core.state.step import StepTerms as StepTerms
    from greenroom.core.state.step import StepType as StepType
    from greenroom.core.state.step import StoredMedia as StoredMedia
    from greenroom.core.state.step import Work as Work
    from greenroom.core.state.task import Driver as Driver
    from greenroom.core.state.task import Hop as Hop
    from greenroom.core.state.task import Routing as Routing
    from greenroom.core.state.task import Task as Task
    from greenroom.core.state.task import TaskEnd as TaskEnd
    from greenroom.core.state.task import TaskExecutionState as TaskExecutionState
    from greenroom.core.state.team import ForkOrigin as ForkOrigin
    from greenroom.core.state.team import Team as Team
    from greenroom.core.state.team_state import TeamState as TeamState
    from greenroom.core.state.thread import Thread as Thread
    from greenroom.core.state.timer import Timer as Timer
    from greenroom.core.state.timer import TimerPurpose as TimerPurpose
    from greenroom.core.sync.bus import CommitNotice as CommitNotice
    from greenroom.core.sync.bus import Listener as Listener
    from greenroom.core.sync.bus import LiveListener as LiveListener
    from greenroom.core.sync.bus import TroubleListener as TroubleListener
    from greenroom.teamwork.estimate import PastMerges as PastMerges
    from greenroom.teamwork.plan import Estimate as Estimate
    from greenroom.teamwork.plan import Need as Need
    from greenroom.teamwork.plan import Phase as Phase
    from greenroom.teamwork.plan import Plan as Plan
    from greenroom.teamwork.plan import PlannedSubtask as PlannedSubtask
    from greenroom.teamwork.plan import PlannerKind as PlannerKind
    from greenroom.teamwork.plan import PlanSource as PlanSource
    from greenroom.teamwork.plan import Range as Range
    from greenroom.teamwork.plan import Recommendation as Recommendation
    from greenroom.teamwork.plan import TaskAnalysis as TaskAnalysis
    from greenroom.teamwork.plan import TaskType as TaskType
    from greenroom.teamwork.plan import TeamDecision as TeamDecision

_ROOMS: Final[dict[str, str]] = {
    "abilities.skills.converse": "Converse",
    "app.conversation.chat": "Turn",
    "app.function_tool": "Context Done Tool tool",
    "app.library.agent": "Agent SyncConversation",
    "app.library.agent_definition": "RunContext",
    "app.library.approval": "ApprovalDecision ApprovalRequest",
    "app.library.events": "EventBus",
    "app.library.greenroom": "Greenroom",
    "app.library.mcp_servers": "MCPServer",
    "app.library.multi_agent": "MultiAgent",
    "app.library.run": "Conversation Run RunArguments",
    "app.library.run_result": (
        "ExecutedTools ReasoningDelta RetryScheduled RunEvent RunInfo RunLimits RunResult RunUsage TextDelta "
        "ToolCallFinished ToolCallStarted"
    ),
    "app.library.teams": "Teams",
    "app.model_registry": "ModelRegistry",
    "app.runtime": "Runtime",
    "app.task_status": "TaskStatus",
    "app.team_host": "TeamHost",
    "app.teams.analysis": "TeamProposal",
    "core.base.amounts": "Amounts Limits",
    "core.base.errors": (
        "Bug CommitUnknown GreenroomError IncompleteAnswer ModelFault OutputError ProviderFault RefusedError Rejection "
        "RunsElsewhere StaleOwner StoreFault StoreFull WorldFault"
    ),
    "core.ports.executor": "Capabilities Executor Outcome StepContext",
    "core.ports.model": (
        "ChatMessage Failed Finished Media Model ModelCard ModelEvent ModelRequest ModelTextDelta Models Purpose "
        "ToolCall ToolSpec Usage"
    ),
    "core.rules.intents": (
        "AddAgent AddStages AddTask AnswerApproval CancelTask PauseTask PostNote QueueSteps ResumeTask SendMessage "
        "SetLimits StagePlan SubtaskPlan UpdateWorkingMemory"
    ),
    "core.state.approval": "Approval",
    "core.state.spec": "AgentSpec History TurnPolicy",
    "core.state.step": "PreparedEffect Step StepTerms Work",
    "core.state.team_state": "TeamState",
    "teamwork.plan": "Plan PlannedSubtask TaskAnalysis",
}

_TYPES: Final[dict[str, str]] = {
    "abilities.skills.conversation.transcript": "Transcript Transcripts",
    "adapters.models.pricing": "ModelPrice",
    "adapters.storage.sqlite.store_folder": "Access",
    "app.library.agent_definition": "AgentDefinition AgentOptions Instructions OutputValidator ToolList",
    "app.library.approval": "ApprovalCallback",
    "app.conversation.attachments": "Attachments",
    "app.library.events": "Callback",
    "app.library.teams": "TeamRunStatus",
    "app.runtime": "LoggedEvent",
    "app.task_status": "TaskState",
    "core.base.clock": "Clock Millis",
    "core.base.ids": (
        "AgentId ApprovalId ArtifactId BudgetId GroupId MemoryId MessageId NoteId Principals StageId StepId SubtaskId "
        "TaskId TeamId ThreadId TimerId WaitingId"
    ),
    "core.base.records": "Data",
    "core.ports.executor": "CapabilitiesFactory CloseCallback LiveEvent",
    "core.ports.log": (
        "ArchiveRow EventBatch InboxRow Lease LeaseHolder NewEvent StateSnapshot Store StoredEvent StreamHead "
        "StreamInfo TakenIntent"
    ),
    "core.ports.model": "FaultKind FinishReason Opaque",
    "core.ports.reply_reader": "ReplyCall ReplyProblem ReplyReader",
    "core.ports.skill_library": "OfferedSkill SkillLibrary",
    "core.ports.tool": "Target",
    "core.rules.intents": "Consequence Intent",
    "core.state.agent": "AgentState Capability Duty",
    "core.state.approval": "ApprovalAnswer ApprovalScope ApprovalState Grant",
    "core.state.archive": "ArchiveEntry ArchiveKind ArchivedRecord",
    "core.state.budget": "Budget",
    "core.state.events": "Event",
    "core.state.knowledge": "Artifact BoardValue Citation Memory MemoryType Note",
    "core.state.message": "ConversationGroup Delivery Message MessageKind Wait",
    "core.state.origin": "Labels",
    "core.state.spec": "AgentKind AgentStyle Cooperation Handoff MultipleCalls PlanPolicy ToolGroup TurnEnd",
    "core.state.stage": "Member MemberState OnFailure Stage StageState Subtask SubtaskState",
    "core.state.step": "AfterCancel Effect StepState StepType StoredMedia",
    "core.state.task": "Driver Hop Routing Task TaskEnd TaskExecutionState",
    "core.state.team": "ForkOrigin Team",
    "core.state.thread": "Thread",
    "core.state.timer": "Timer TimerPurpose",
    "core.sync.bus": "CommitNotice Listener LiveListener TroubleListener",
    "teamwork.estimate": "PastMerges",
    "teamwork.plan": "Estimate Need Phase PlannerKind PlanSource Range Recommendation TaskType TeamDecision",
}
"""Types in the signatures of the names above."""

_HOME: Final = {name: room for rooms in (_ROOMS, _TYPES) for room, names in rooms.items() for name in names.split()}

__all__ = tuple(sorted(_HOME))


def __getattr__(name: str) -> object:
    room = _HOME.get(name)
    if room is None:
        raise AttributeError(f"module 'greenroom' has no attribute {name!r}")
    return getattr(import_module(f"greenroom.{room}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
