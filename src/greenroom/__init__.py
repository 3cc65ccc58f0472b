"""Greenroom: a team of AI agents that you can trust with real work.

This module exports the public names. Each is loaded on first use, so that `import greenroom` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from greenroom.abilities.skills.converse import Converse as Converse
    from greenroom.app.conversation.chat import Turn as Turn
    from greenroom.app.function_tool import Context as Context
    from greenroom.app.function_tool import Done as Done
    from greenroom.app.function_tool import OutputError as OutputError
    from greenroom.app.function_tool import Tool as Tool
    from greenroom.app.function_tool import tool as tool
    from greenroom.app.library.agent import Agent as Agent
    from greenroom.app.library.agent import SyncConversation as SyncConversation
    from greenroom.app.library.approval import ApprovalDecision as ApprovalDecision
    from greenroom.app.library.approval import ApprovalRequest as ApprovalRequest
    from greenroom.app.library.events import EventBus as EventBus
    from greenroom.app.library.greenroom import Greenroom as Greenroom
    from greenroom.app.library.run import Conversation as Conversation
    from greenroom.app.library.run import Run as Run
    from greenroom.app.library.run_result import ExecutedTools as ExecutedTools
    from greenroom.app.library.run_result import ReasoningDelta as ReasoningDelta
    from greenroom.app.library.run_result import RetryScheduled as RetryScheduled
    from greenroom.app.library.run_result import RunEvent as RunEvent
    from greenroom.app.library.run_result import RunInfo as RunInfo
    from greenroom.app.library.run_result import RunResult as RunResult
    from greenroom.app.library.run_result import RunUsage as RunUsage
    from greenroom.app.library.run_result import TextDelta as TextDelta
    from greenroom.app.library.run_result import ToolCallFinished as ToolCallFinished
    from greenroom.app.library.run_result import ToolCallStarted as ToolCallStarted
    from greenroom.app.model_registry import ModelRegistry as ModelRegistry
    from greenroom.app.runtime import Runtime as Runtime
    from greenroom.app.task_status import TaskStatus as TaskStatus
    from greenroom.core.base.amounts import Amounts as Amounts
    from greenroom.core.base.amounts import Limits as Limits
    from greenroom.core.base.errors import Bug as Bug
    from greenroom.core.base.errors import GreenroomError as GreenroomError
    from greenroom.core.base.errors import ModelFault as ModelFault
    from greenroom.core.base.errors import ProviderFault as ProviderFault
    from greenroom.core.base.errors import RefusedError as RefusedError
    from greenroom.core.base.errors import Rejection as Rejection
    from greenroom.core.base.errors import WorldFault as WorldFault
    from greenroom.core.ports.executor import Capabilities as Capabilities
    from greenroom.core.ports.executor import Executor as Executor
    from greenroom.core.ports.executor import Outcome as Outcome
    from greenroom.core.ports.executor import StepContext as StepContext
    from greenroom.core.ports.model import ChatMessage as ChatMessage
    from greenroom.core.ports.model import Failed as Failed
    from greenroom.core.ports.model import Finished as Finished
    from greenroom.core.ports.model import Model as Model
    from greenroom.core.ports.model import ModelCard as ModelCard
    from greenroom.core.ports.model import ModelEvent as ModelEvent
    from greenroom.core.ports.model import ModelRequest as ModelRequest
    from greenroom.core.ports.model import Models as Models
    from greenroom.core.ports.model import ModelTextDelta as ModelTextDelta
    from greenroom.core.ports.model import Purpose as Purpose
    from greenroom.core.ports.model import ToolCall as ToolCall
    from greenroom.core.ports.model import ToolSpec as ToolSpec
    from greenroom.core.ports.model import Usage as Usage
    from greenroom.core.rules.intents import AddAgent as AddAgent
    from greenroom.core.rules.intents import AddStages as AddStages
    from greenroom.core.rules.intents import AddTask as AddTask
    from greenroom.core.rules.intents import AnswerApproval as AnswerApproval
    from greenroom.core.rules.intents import CancelTask as CancelTask
    from greenroom.core.rules.intents import PauseTask as PauseTask
    from greenroom.core.rules.intents import PostNote as PostNote
    from greenroom.core.rules.intents import QueueSteps as QueueSteps
    from greenroom.core.rules.intents import ResumeTask as ResumeTask
    from greenroom.core.rules.intents import SendMessage as SendMessage
    from greenroom.core.rules.intents import SetLimits as SetLimits
    from greenroom.core.rules.intents import StagePlan as StagePlan
    from greenroom.core.rules.intents import SubtaskPlan as SubtaskPlan
    from greenroom.core.state.approval import Approval as Approval
    from greenroom.core.state.spec import AgentSpec as AgentSpec
    from greenroom.core.state.spec import History as History
    from greenroom.core.state.spec import TurnPolicy as TurnPolicy
    from greenroom.core.state.step import PreparedEffect as PreparedEffect
    from greenroom.core.state.step import Step as Step
    from greenroom.core.state.step import StepTerms as StepTerms
    from greenroom.core.state.step import Work as Work
    from greenroom.core.state.team_state import TeamState as TeamState

_ROOMS: Final[dict[str, tuple[str, ...]]] = {
    "abilities.skills.converse": ("Converse",),
    "app.conversation.chat": ("Turn",),
    "app.function_tool": (
        "Context",
        "Done",
        "OutputError",
        "Tool",
        "tool",
    ),
    "app.library.agent": (
        "Agent",
        "SyncConversation",
    ),
    "app.library.approval": (
        "ApprovalDecision",
        "ApprovalRequest",
    ),
    "app.library.events": ("EventBus",),
    "app.library.greenroom": ("Greenroom",),
    "app.library.run": (
        "Conversation",
        "Run",
    ),
    "app.library.run_result": (
        "ExecutedTools",
        "ReasoningDelta",
        "RetryScheduled",
        "RunEvent",
        "RunInfo",
        "RunResult",
        "RunUsage",
        "TextDelta",
        "ToolCallFinished",
        "ToolCallStarted",
    ),
    "app.model_registry": ("ModelRegistry",),
    "app.runtime": ("Runtime",),
    "app.task_status": ("TaskStatus",),
    "core.base.amounts": (
        "Amounts",
        "Limits",
    ),
    "core.base.errors": (
        "Bug",
        "GreenroomError",
        "ModelFault",
        "ProviderFault",
        "RefusedError",
        "Rejection",
        "WorldFault",
    ),
    "core.ports.executor": (
        "Capabilities",
        "Executor",
        "Outcome",
        "StepContext",
    ),
    "core.ports.model": (
        "ChatMessage",
        "Failed",
        "Finished",
        "Model",
        "ModelCard",
        "ModelEvent",
        "ModelRequest",
        "ModelTextDelta",
        "Models",
        "Purpose",
        "ToolCall",
        "ToolSpec",
        "Usage",
    ),
    "core.rules.intents": (
        "AddAgent",
        "AddStages",
        "AddTask",
        "AnswerApproval",
        "CancelTask",
        "PauseTask",
        "PostNote",
        "QueueSteps",
        "ResumeTask",
        "SendMessage",
        "SetLimits",
        "StagePlan",
        "SubtaskPlan",
    ),
    "core.state.approval": ("Approval",),
    "core.state.spec": (
        "AgentSpec",
        "History",
        "TurnPolicy",
    ),
    "core.state.step": (
        "PreparedEffect",
        "Step",
        "StepTerms",
        "Work",
    ),
    "core.state.team_state": ("TeamState",),
}

_HOME: Final = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = tuple(sorted(_HOME))


def __getattr__(name: str) -> object:
    room = _HOME.get(name)
    if room is None:
        raise AttributeError(f"module 'greenroom' has no attribute {name!r}")
    return getattr(import_module(f"greenroom.{room}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
