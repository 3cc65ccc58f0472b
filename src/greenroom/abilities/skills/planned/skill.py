"""A skill of an agent that plans, as data: what it is called, what it is told, what its answer looks like and means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.packs import Pack
from greenroom.core.ports.reading import AnswerReader
from greenroom.core.rules.intents import Consequence
from greenroom.core.rules.steps import skills_of
from greenroom.core.state.agent import Agent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Member, Stage
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.world import World

PACK: Final = Pack("greenroom.abilities.skills.planned.prompts")

TEXT: Final[Data] = {"type": "string"}
"""What an answer looks like that is nothing but text."""

NOT_PLANNED: Final = frozenset({"summary", "tool_decision"})
"""What no agent plans: the one comes from a reflection, the other from a tool."""

Order = Literal["plain", "history", "tool", "message", "tool_history"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model answered. `repaired` is why its JSON had to be mended, `memory` what it wants to keep for good."""

    value: object
    memory: str = ""
    repaired: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """What an answer comes to: the result under the skill's own key, what else is kept, and what it asks for."""

    value: object
    more: Data = field(default_factory=dict)
    intents: tuple[Consequence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """All that a skill knows when it is asked: `history` are the ended steps of its conversation."""

    world: World
    step: Step
    agent: Agent
    history: Sequence[Step]
    tools: Mapping[str, ToolSpec]
    skills: Mapping[str, Skill]
    reader: AnswerReader
    project: str = ""

    @property
    def spec(self) -> AgentSpec:
        """Who is asked."""
        return self.agent.spec

    @property
    def language(self) -> str:
        """In which language it is told."""
        return self.agent.spec.language

    @property
    def task(self) -> Task | None:
        """The task of the step, if that is open."""
        return self.world.tasks.get(self.step.task_id)

    @property
    def stage(self) -> Stage | None:
        """The stage of the step, if it has one that runs."""
        found = self.world.stages.get(self.step.stage_id) if self.step.stage_id is not None else None
        return found if found is not None and found.state == "running" else None

    @property
    def member(self) -> Member | None:
        """How the agent stands in that stage."""
        return self.stage.member(self.agent.agent_id) if self.stage is not None else None

    @property
    def group(self) -> tuple[AgentId, ...]:
        """Who works on the task."""
        return self.task.group if self.task is not None else ()

    @property
    def notices(self) -> tuple[str, ...]:
        """What the agent has to be told: what it asked for and did not get. A running step has what was there then."""
        thread, step = self.world.threads.get(self.step.thread_id), self.step
        found = thread.notices if thread is not None else ()
        return found[: step.notices_seen] if step.state == "running" else found

    @property
    def may_plan(self) -> tuple[str, ...]:
        """The skills that the agent may give itself, of those that there are."""
        allowed = skills_of(self.spec) - NOT_PLANNED
        return tuple(name for name in self.skills if name in allowed)

    @property
    def may_use(self) -> tuple[str, ...]:
        """The tools that it may use."""
        return self.spec.tools

    @property
    def to_fill(self) -> Step | None:
        """The tool step whose instruction is to be filled in: the next one of the conversation that has none."""
        mine = [one for one in self.world.steps_of(self.agent.agent_id) if one.thread_id == self.step.thread_id]
        return next((one for one in mine if one.work.type == "tool" and one.state == "pending"), None)


def _as_it_is(value: object) -> object:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill. `tag` is what its answer stands in, `key` what its result is kept under, `said` what the board calls it.

    `order` names its row in the table of sections, `shape` is the JSON Schema of its answer. `meaning` says what
    follows from an answer that fits, or raises `ModelFault` to have it asked for again; before that, `tidied` brings
    what was written a little differently into that shape. Its prompt is in its `pack`.
    """

    name: str
    tag: str
    key: str
    said: str
    order: Order
    shape: Callable[[Moment], Data]
    meaning: Callable[[Moment, Answer], Meant]
    tidied: Callable[[object], object] = _as_it_is
    pack: Pack = PACK
