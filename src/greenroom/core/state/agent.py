"""Agents: what stands in their queue, whom they wait for. Who they are is in their spec."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, StageId, StepId, TaskId, WaitingId
from greenroom.core.base.records import evolve, record
from greenroom.core.state.origin import Labels, merged
from greenroom.core.state.spec import AgentSpec

WorkingState = Literal["idle", "working", "waiting"]


@record
class Ability:
    """A skill or tool of the house, as it is described to agents."""

    name: str
    type: Literal["skill", "tool"]
    description: str


@record
class Duty:
    """A task, or a stage of it, that the agent takes part in: MAS's working memory without its step ids."""

    task_id: TaskId
    stage_id: StageId | None


@record
class Agent:
    """The dynamic part. `todo` is the queue; `running` has left it, and is back only when its attempt was cut off.

    `origins` is what its maker had read, and what it had read itself when it wrote into its `memory`: what it keeps for
    good, as Markdown, whatever task it works in.
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
        """MAS's word for what the agent is doing."""
        if self.running is not None:
            return "working"
        if self.step_lock:
            return "waiting"
        return "working" if self.todo else "idle"


@record
class Declared:
    """The blueprints agents can be made from, and the abilities of the house, as they are now; and how long
    questions wait."""

    at: int
    blueprints: tuple[AgentSpec, ...]
    abilities: tuple[Ability, ...]
    approvals_expire: int | None = None


@record
class AgentAdded:
    """The agent lives from now on."""

    at: int
    agent_id: AgentId
    spec: AgentSpec
    made_by: str
    origins: Labels = ()


@record
class AgentChanged:
    """The agent is another one from its next step on."""

    at: int
    agent_id: AgentId
    spec: AgentSpec
    changed_by: str


@record
class AgentRemoved:
    """The agent is gone; its id is never used again."""

    at: int
    agent_id: AgentId
    why: str


@record
class DutyTaken:
    """The agent remembers that it takes part in a task or stage."""

    at: int
    agent_id: AgentId
    duty: Duty


@record
class Remembered:
    """The agent keeps something for good, below what it kept before."""

    at: int
    agent_id: AgentId
    content: str
    origins: Labels = ()


AgentEvent = Declared | AgentAdded | AgentChanged | AgentRemoved | DutyTaken | Remembered


def queued(agent: Agent, step: StepId, place: int) -> Agent:
    """A new step stands in the queue at `place`."""
    todo = (*agent.todo[:place], step, *agent.todo[place:])
    return evolve(agent, todo=todo, steps_made=agent.steps_made + 1)


def without_step(agent: Agent, step: StepId) -> Agent:
    """The step is neither queued nor running any more."""
    if agent.running == step:
        return evolve(agent, running=None)
    return evolve(agent, todo=tuple(other for other in agent.todo if other != step))


def started(agent: Agent, step: StepId) -> Agent:
    """The step leaves the queue and runs."""
    if agent.todo[:1] == (step,):
        return evolve(agent, todo=agent.todo[1:], running=step)
    return evolve(agent, todo=tuple(other for other in agent.todo if other != step), running=step)


def requeued(agent: Agent, step: StepId) -> Agent:
    """An interrupted step is the next one again, as a new attempt."""
    return evolve(agent, todo=(step, *agent.todo), running=None)


def unlocked(agent: Agent, waiting: WaitingId) -> Agent:
    """One waiting id is back."""
    return evolve(agent, step_lock=tuple(other for other in agent.step_lock if other != waiting))


def remembering(agent: Agent, content: str, origins: Labels) -> Agent:
    """The agent with a little more in its memory."""
    memory = f"{agent.memory}\n{content}" if agent.memory else content
    return evolve(agent, memory=memory, origins=merged(agent.origins, origins))


def with_duty(agent: Agent, duty: Duty) -> Agent:
    """The duty is remembered once."""
    return agent if duty in agent.duties else evolve(agent, duties=(*agent.duties, duty))


def without_duties(agent: Agent, task: TaskId, stage: StageId | None) -> Agent:
    """A finished stage, or a finished task with all its stages, is forgotten."""
    kept = tuple(
        duty for duty in agent.duties if duty.task_id != task or (stage is not None and duty.stage_id != stage)
    )
    return agent if len(kept) == len(agent.duties) else evolve(agent, duties=kept)
