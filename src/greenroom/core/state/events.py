"""All events as one closed union."""

from __future__ import annotations

from typing import Final, get_args

from greenroom.core.state.agent import AgentEvent
from greenroom.core.state.approval import ApprovalEvent
from greenroom.core.state.budget import BudgetEvent
from greenroom.core.state.knowledge import ArtifactEvent, MemoryEvent, NoteEvent
from greenroom.core.state.message import GroupEvent, MessageEvent
from greenroom.core.state.stage import StageEvent
from greenroom.core.state.step import StepEvent
from greenroom.core.state.task import TaskEvent
from greenroom.core.state.team import TeamEvent
from greenroom.core.state.thread import ThreadEvent
from greenroom.core.state.timer import TimerEvent

Event = (
    TeamEvent
    | AgentEvent
    | TaskEvent
    | StageEvent
    | ThreadEvent
    | StepEvent
    | MessageEvent
    | NoteEvent
    | BudgetEvent
    | ApprovalEvent
    | TimerEvent
    | MemoryEvent
    | ArtifactEvent
    | GroupEvent
)

EVENT_TYPES: Final[dict[str, type[Event]]] = {event_type.__name__: event_type for event_type in get_args(Event)}
