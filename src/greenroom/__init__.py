"""Greenroom: a team of AI agents that you can trust with real work.

The public names. They are loaded when they are first used, so that `import greenroom` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from greenroom.abilities.skills.converse import Converse as Converse
    from greenroom.app.conversation.chat import Exchange as Exchange
    from greenroom.app.functions import Context as Context
    from greenroom.app.functions import Done as Done
    from greenroom.app.functions import Misfit as Misfit
    from greenroom.app.functions import Tool as Tool
    from greenroom.app.functions import tool as tool
    from greenroom.app.kit import Kit as Kit
    from greenroom.app.library.agent import Agent as Agent
    from greenroom.app.library.agent import SyncTalk as SyncTalk
    from greenroom.app.library.approval import Answer as Answer
    from greenroom.app.library.approval import Asked as Asked
    from greenroom.app.library.events import EventBus as EventBus
    from greenroom.app.library.greenroom import Greenroom as Greenroom
    from greenroom.app.library.results import Again as Again
    from greenroom.app.library.results import Called as Called
    from greenroom.app.library.results import Executed as Executed
    from greenroom.app.library.results import Heard as Heard
    from greenroom.app.library.results import Result as Result
    from greenroom.app.library.results import Returned as Returned
    from greenroom.app.library.results import RunInfo as RunInfo
    from greenroom.app.library.results import Said as Said
    from greenroom.app.library.results import Thought as Thought
    from greenroom.app.library.run import Run as Run
    from greenroom.app.library.run import Talk as Talk
    from greenroom.app.model_registry import Supply as Supply
    from greenroom.app.runtime import Runtime as Runtime
    from greenroom.app.task_status import Standing as Standing
    from greenroom.core.base.amounts import Amounts as Amounts
    from greenroom.core.base.amounts import Limits as Limits
    from greenroom.core.base.errors import Bug as Bug
    from greenroom.core.base.errors import GreenroomError as GreenroomError
    from greenroom.core.base.errors import ModelFault as ModelFault
    from greenroom.core.base.errors import ProviderFault as ProviderFault
    from greenroom.core.base.errors import Refused as Refused
    from greenroom.core.base.errors import Rejected as Rejected
    from greenroom.core.base.errors import WorldFault as WorldFault
    from greenroom.core.ports.executor import Abilities as Abilities
    from greenroom.core.ports.executor import Bench as Bench
    from greenroom.core.ports.executor import Executor as Executor
    from greenroom.core.ports.executor import Outcome as Outcome
    from greenroom.core.ports.model import ChatMessage as ChatMessage
    from greenroom.core.ports.model import Failed as Failed
    from greenroom.core.ports.model import Finished as Finished
    from greenroom.core.ports.model import Model as Model
    from greenroom.core.ports.model import ModelCard as ModelCard
    from greenroom.core.ports.model import ModelEvent as ModelEvent
    from greenroom.core.ports.model import ModelRequest as ModelRequest
    from greenroom.core.ports.model import Models as Models
    from greenroom.core.ports.model import Purpose as Purpose
    from greenroom.core.ports.model import TextDelta as TextDelta
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
    from greenroom.core.state.spec import Turn as Turn
    from greenroom.core.state.step import Prepared as Prepared
    from greenroom.core.state.step import Step as Step
    from greenroom.core.state.step import Terms as Terms
    from greenroom.core.state.step import Work as Work
    from greenroom.core.state.world import World as World

_ROOMS: Final[dict[str, tuple[str, ...]]] = {
    "abilities.skills.converse": ("Converse",),
    "app.conversation.chat": ("Exchange",),
    "app.functions": ("Context", "Done", "Misfit", "Tool", "tool"),
    "app.kit": ("Kit",),
    "app.library.agent": ("Agent", "SyncTalk"),
    "app.library.approval": ("Answer", "Asked"),
    "app.library.events": ("EventBus",),
    "app.library.greenroom": ("Greenroom",),
    "app.library.results": ("Again", "Called", "Executed", "Heard", "Result", "Returned", "RunInfo", "Said", "Thought"),
    "app.library.run": ("Run", "Talk"),
    "app.model_registry": ("Supply",),
    "app.runtime": ("Runtime",),
    "app.task_status": ("Standing",),
    "core.state.approval": ("Approval",),
    "core.base.amounts": ("Amounts", "Limits"),
    "core.base.errors": ("Bug", "GreenroomError", "ModelFault", "ProviderFault", "Refused", "Rejected", "WorldFault"),
    "core.ports.executor": ("Abilities", "Bench", "Executor", "Outcome"),
    "core.ports.model": (
        "ChatMessage",
        "Failed",
        "Finished",
        "Model",
        "ModelCard",
        "ModelEvent",
        "ModelRequest",
        "Models",
        "Purpose",
        "TextDelta",
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
    "core.state.spec": ("AgentSpec", "History", "Turn"),
    "core.state.step": ("Prepared", "Step", "Terms", "Work"),
    "core.state.world": ("World",),
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
