"""Agents: their queue, the replies they wait for, their memory. The fixed part is in `AgentSpec`."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, StageId, StepId, TaskId, WaitingId
from greenroom.core.base.records import evolve, record
from greenroom.core.state.origin import Labels, merge_labels
from greenroom.core.state.spec import AgentSpec

WorkingState = Literal["idle", "working", "waiting"]


@record
class Capability:
    """A skill or tool of the team, as described to agents."""

    name: str
    type: Literal["skill", "tool"]
    description: str


@record
class Duty:
    """A task, or a stage in it, that the agent takes part in. MAS's working memory without the step ids."""

    task_id: TaskId
    stage_id: StageId | None


@record
class AgentState:
    """The changing part of an agent.

    `todo` is the queue. `running` has left the queue and returns only if its attempt is interrupted. `memory` is
    Markdown that the agent keeps over all its tasks. `origins` labels what the agent's maker had read, and what the
    agent had read when it wrote its memory.
    """

    agent_id: AgentId
    spec: AgentSpec
    made_by: str = ""
    todo: tuple[StepId, ...] = ()
    running: StepId | None = None
    step_lock: tuple[WaitingId, ...] = ()
    duties: tuple[Duty, ...] = ()
    steps_made: int = 0
    messages_made: int = 0
    origins: Labels = ()
    memory: str = ""

    @property
    def working_state(self) -> WorkingState:
        """The agent's state in MAS's terms."""
        if self.running is not None:
            return "working"
        if self.step_lock:
            return "waiting"
        return "working" if self.todo else "idle"


@record
class Declared:
    """The team's blueprints for agents, its skills and tools, and the approval timeout were set."""

    at: int
    blueprints: tuple[AgentSpec, ...]
    abilities: tuple[Capability, ...]
    approvals_expire: int | None = None


@record
class AgentAdded:
    """An agent joined the team."""

    at: int
    agent_id: AgentId
    spec: AgentSpec
    made_by: str
    origins: Labels = ()


@record
class AgentChanged:
    """An agent got a new spec. It takes effect with the agent's next step."""

    at: int
    agent_id: AgentId
    spec: AgentSpec
    changed_by: str


@record
class AgentRemoved:
    """An agent left the team. Its id is never reused."""

    at: int
    agent_id: AgentId
    why: str


@record
class DutyTaken:
    """An agent took on a part in a task or stage."""

    at: int
    agent_id: AgentId
    duty: Duty


@record
class Remembered:
    """An agent appended text to its permanent memory."""

    at: int
    agent_id: AgentId
    content: str
    origins: Labels = ()


AgentEvent = Declared | AgentAdded | AgentChanged | AgentRemoved | DutyTaken | Remembered


def queue_step(agent: AgentState, step: StepId, place: int) -> AgentState:
    """Insert a new step into the queue at `place`."""
    todo = (*agent.todo[:place], step, *agent.todo[place:])
    return evolve(agent, todo=todo, steps_made=agent.steps_made + 1)


def without_step(agent: AgentState, step: StepId) -> AgentState:
    """Remove a step that was queued or running."""
    if agent.running == step:
        return evolve(agent, running=None)
    return evolve(agent, todo=tuple(other for other in agent.todo if other != step))


def start_step(agent: AgentState, step: StepId) -> AgentState:
    """Move a step from the queue to `running`."""
    if agent.todo[:1] == (step,):
        return evolve(agent, todo=agent.todo[1:], running=step)
    return evolve(agent, todo=tuple(other for other in agent.todo if other != step), running=step)


def requeue_step(agent: AgentState, step: StepId) -> AgentState:
    """Put an interrupted step back at the front of the queue, for a new attempt."""
    return evolve(agent, todo=(step, *agent.todo), running=None)


def remove_wait(agent: AgentState, waiting: WaitingId) -> AgentState:
    """Remove a returned waiting id."""
    return evolve(agent, step_lock=tuple(other for other in agent.step_lock if other != waiting))


def append_memory(agent: AgentState, content: str, origins: Labels) -> AgentState:
    """Append text and its origins to the agent's memory."""
    memory = f"{agent.memory}\n{content}" if agent.memory else content
    return evolve(agent, memory=memory, origins=merge_labels(agent.origins, origins))


def with_duty(agent: AgentState, duty: Duty) -> AgentState:
    """Add a duty, once."""
    return agent if duty in agent.duties else evolve(agent, duties=(*agent.duties, duty))


def without_duties(agent: AgentState, task: TaskId, stage: StageId | None) -> AgentState:
    """Remove the duties of a finished stage, or of a finished task with all its stages."""
    kept = tuple(
        duty for duty in agent.duties if duty.task_id != task or (stage is not None and duty.stage_id != stage)
    )
    return agent if len(kept) == len(agent.duties) else evolve(agent, duties=kept)
