"""Intents about the team, its agents, tasks, stages and subtasks."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, StageId, SubtaskId, TaskId, TeamId
from greenroom.core.base.records import record
from greenroom.core.state.agent import Ability
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import MemberWord, OnFailure, SubtaskEnd
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
