"""The first request that an agent would make, exactly: its turn is taken up to the moment in which a model is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, cast

from greenroom.abilities.skills.converse import Converse
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import Bug, WorldFault
from greenroom.core.base.ids import AgentId, task_id
from greenroom.core.base.records import record
from greenroom.core.ports.executor import Bench, Live, Outcome
from greenroom.core.ports.model import Finished, Model, ModelCard, ModelEvent, ModelRequest, Models, TextDelta, ToolSpec
from greenroom.core.ports.reading import Reader
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.agent import Agent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from greenroom.core.state.world import World

NOBODY: Final = "prompt:nobody"


@record
class Surroundings:
    """What a request is made of beside the agent: tools, who can be called, what reads text, what the project says."""

    tools: tuple[ToolSpec, ...] = ()
    others: Mapping[str, AgentSpec]
    reader: Reader | None = None
    project: str = ""


@record
class FirstRequest:
    """The request, and the model that it would go to. Without one, `trouble` says why."""

    request: ModelRequest
    model: str = ""
    trouble: str = ""


async def first_request(spec: AgentSpec, message: str, models: Models, around: Surroundings) -> FirstRequest:
    """What a model is asked with when this agent, with a task of its own, is told `message`. Nobody is asked."""
    listening = _Listening(models)
    converse = Converse(listening, around.tools, solo=True, reader=around.reader, project=around.project)
    await converse.run(cast("Bench", await _bench(spec, message, around.others)))
    if listening.heard is None:
        raise Bug(f"{spec.name!r} would ask no model.")
    return FirstRequest(request=listening.heard, model=listening.known, trouble=listening.trouble)


async def _bench(spec: AgentSpec, message: str, others: Mapping[str, AgentSpec]) -> _Alone:
    """Its first step, in a team that is made in memory only: the agent, and those that it calls."""
    runtime = Runtime(MemoryLog())
    agent = AgentId(spec.name)
    called = [(AgentId(name), others[name]) for name in spec.calls if name in others and name != spec.name]
    work = Work(type="skill", executor="converse", intention="Answer.", text_content=message)
    begin = (
        AddTask(name="prompt", intention=message, manager=agent),
        QueueSteps(agent_id=agent, works=(work,), task_id=task_id(1)),
    )
    try:
        team = await runtime.create("prompt", [(agent, spec), *called], begin=begin)
        return _Alone(await runtime.world(team), agent)
    finally:
        await runtime.close()


class _Alone:
    """What a turn needs of a bench on which nothing has happened yet."""

    def __init__(self, world: World, agent: AgentId) -> None:
        self.world = world
        self.agent: Agent = world.agents[agent]
        self.step: Step = next(one for one in world.steps.values() if one.agent_id == agent)
        self.key = f"prompt:{self.step.step_id}"

    def show(self, event: Live) -> None:
        """Nobody watches."""

    def leave(self, left: Callable[[], Outcome | None]) -> None:
        """Nobody cancels it."""

    async def history(self) -> Sequence[Step]:
        """Nothing has ended."""
        return ()


class _Listening:
    """The models, and one that only listens: it is what its namesake is, and keeps what it is asked."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self.heard: ModelRequest | None = None
        self.known = ""
        self.trouble = ""
        self.name = NOBODY
        self.card = ModelCard()

    def named(self, name: str) -> Model:
        """Itself, in the place of the model of this name."""
        try:
            meant = self._models.named(name)
        except WorldFault as fault:
            self.trouble = str(fault)
        else:
            self.known, self.name, self.card = meant.name, meant.name, meant.card
        return self

    def price(self, read: int, written: int) -> int | None:
        """Nothing: nobody is asked."""
        return 0 * (read + written)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Keep it."""
        self.heard = request
        yield TextDelta(text="(nobody was asked)")
        yield Finished()
