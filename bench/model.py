"""The cost of the model layer: agents that call a model and a tool over HTTP, compared with the same loop in bare
aiohttp.

The fake server runs in its own process, so the CPU time is the client's alone. One run of an agent is one tool round: a
model call that asks for a tool, the tool, and a second model call that reads the result.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from bench._floor import PROMPT, SCHEMA, converse, import_seconds, late_round, open_session, written_bytes
from greenroom.abilities.skills.converse import Converse
from greenroom.adapters.models.openai.model import Endpoint, OpenAICompatible
from greenroom.adapters.models.pricing import FREE_PRICE
from greenroom.adapters.models.retry import RateLimiter, RetryingModel, RetryPolicy
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.context import tune_process
from greenroom.app.runtime import Runtime
from greenroom.app.team_host import TeamHost
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities, Outcome, StepContext
from greenroom.core.ports.log import Store
from greenroom.core.ports.model import Model, ToolSpec
from greenroom.core.rules.intents import AddAgent, AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepEnded, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState
from greenroom.core.sync.bus import CommitNotice
from tests.fake_openai.process import run_in_process

GOALS: Final = {
    "one_agent_cpu_ms": ("<=", 2.0),
    "one_agent_cpu_ms_durable": ("<=", 3.0),
    "one_agent_bytes": ("<=", 20_000.0),
    "agents_1000_wall_over_aiohttp": ("<=", 1.4),
    "agents_1000_wall_over_aiohttp_durable": ("<=", 1.8),
    "cpu_ms_per_agent_durable": ("<=", 3.0),
    "round_190_cpu_ms": ("<=", 3.0),
    "rounds_200_s": ("<=", 2.0),
    "rounds_200_bytes": ("<=", 2_000_000.0),
    "new_agent_us": ("<=", 20.0),
    "import_s": ("<=", 0.3),
}

LATENCY: Final = 0.5
MANY: Final = 1000
RUNS: Final = 200
ROUNDS: Final = 200
ADD: Final = ToolSpec(name="add", description="Add two numbers.", parameters=SCHEMA)
SPEC: Final = AgentSpec(name="adder", role="calculator", tools=("add",))
LIMITS: Final = Limits(money=10**12, tokens=10**12)


class Add:
    """A tool without side effects."""

    type: StepType = "tool"
    name: str = "add"
    description: str = "Add two numbers."

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return free terms."""
        return StepTerms(effect="pure")

    async def run(self, context: StepContext) -> Outcome:
        """Add the numbers."""
        given = context.step.work.instruction_content or {}
        return Outcome(result={"output": str(sum(one for one in given.values() if isinstance(one, int)))})


class One:
    """A registry with a single model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def get_model(self, _: str) -> Model:
        """Return the model for every name."""
        return self._model


class House:
    """A running team whose agents use a model at this address."""

    def __init__(self, runtime: Runtime, team: TeamId, host: TeamHost) -> None:
        self.runtime, self.team, self.host = runtime, team, host
        self.texts: dict[AgentId, asyncio.Event] = {}
        self.ended: list[float] = []
        self._tasks = 0
        host.listen(self._follow)

    def _follow(self, commit: CommitNotice) -> None:
        for event in commit.events:
            if isinstance(event, StepEnded) and event.result is not None and "calls" in event.result:
                self.ended.append(time.process_time())
                if not event.result["calls"]:
                    self.texts[AgentId(event.step_id.partition("#")[0])].set()
            elif isinstance(event, StepEnded) and event.error:
                raise RuntimeError(event.error)

    async def run(self, *agents: AgentId) -> None:
        """Run a task in which each agent answers the question in its own conversation."""
        name = TaskId(f"t{self.host.state.team.tasks_made + 1}")
        self.texts = {agent: asyncio.Event() for agent in agents}
        work = Work(type="skill", executor="converse", text_content=PROMPT)
        task = AddTask(name="add", intention="", manager=agents[0], group=agents, driver="manager")
        queued = [QueueSteps(agent_id=agent, works=(work,), task_id=name) for agent in agents]
        await self.host.submit(task, *queued, by="door")
        for done in self.texts.values():
            await done.wait()


@asynccontextmanager
async def house(url: str, log: Store, agents: Sequence[AgentId]) -> AsyncIterator[House]:
    """Open the team, and close it again."""
    endpoint = Endpoint("fake", url)
    plain = OpenAICompatible(endpoint, "fake", price=FREE_PRICE.compute_max_cost, cost=FREE_PRICE.compute_cost)
    model = RetryingModel(plain, RateLimiter(parallel=MANY), RetryPolicy())
    kit = Capabilities([Converse(One(model), [ADD]), Add()])
    runtime = Runtime(log, capability_factories={"bench": lambda _: kit})
    try:
        team = await runtime.create(
            "bench", [(name, SPEC) for name in agents], capabilities_name="bench", limits=LIMITS
        )
        yield House(runtime, team, await runtime.start(team))
    finally:
        await runtime.close()
        await endpoint.close()


# ---------------------------------------------------------------------------------------------- measuring


async def _one(url: str, log: Store) -> tuple[float, float]:
    """Return the CPU milliseconds and the bytes written per run of one agent."""
    agent = AgentId("adder")
    async with house(url, log, [agent]) as home:
        for _ in range(20):
            await home.run(agent)
        gc.collect()
        cpu, wrote = time.process_time(), written_bytes()
        for _ in range(RUNS):
            await home.run(agent)
        return (time.process_time() - cpu) / RUNS * 1000, (written_bytes() - wrote) / RUNS


async def _many(url: str, log: Store) -> tuple[float, float]:
    """Return the seconds until all of many agents have an answer, and the CPU milliseconds per agent."""
    names = [AgentId(f"a{number}") for number in range(MANY)]
    async with house(url, log, names) as home:
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        await home.run(*names)
        return time.perf_counter() - wall, (time.process_time() - cpu) / MANY * 1000


async def _rounds(url: str, log: Store) -> tuple[float, float, float]:
    """Return the CPU milliseconds of a late round, the seconds of all rounds, and the bytes written."""
    agent = AgentId("adder")
    async with house(url, log, [agent]) as home:
        gc.collect()
        wall, wrote = time.perf_counter(), written_bytes()
        await home.run(agent)
        wall, wrote = time.perf_counter() - wall, written_bytes() - wrote
        return late_round(home.ended, ROUNDS), wall, float(wrote)


async def _floor(figures: dict[str, float], fast: str, slow: str, long: str) -> None:
    async with open_session() as session:
        for _ in range(20):
            await converse(session, fast)
        cpu = time.process_time()
        for _ in range(RUNS):
            await converse(session, fast)
        figures["floor_one_agent_cpu_ms"] = (time.process_time() - cpu) / RUNS * 1000
        marks: list[float] = []
        await converse(session, long, marks)
        figures["floor_round_190_cpu_ms"] = late_round(marks, ROUNDS)
    async with open_session() as session:
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(converse(session, slow) for _ in range(MANY)))
        figures["floor_agents_1000_s"] = time.perf_counter() - wall
        figures["floor_cpu_ms_per_agent"] = (time.process_time() - cpu) / MANY * 1000


async def _new_agents() -> float:
    """Return the microseconds to make an agent."""
    runtime = Runtime(MemoryLog(), capability_factories={"bench": lambda _: Capabilities([Add()])})
    team = await runtime.create("bench", [(AgentId("first"), SPEC)], capabilities_name="bench")
    host = await runtime.start(team)
    made = [AddAgent(agent_id=AgentId(f"n{number}"), spec=SPEC) for number in range(2000)]
    gc.collect()
    cpu = time.process_time()
    for page in range(0, len(made), 500):
        await host.submit(*made[page : page + 500], by="door")
    took = (time.process_time() - cpu) / len(made) * 1e6
    await runtime.close()
    return took


async def run() -> dict[str, float]:
    """Measure all figures of the model layer."""
    figures: dict[str, float] = {}
    tune_process()
    with (
        tempfile.TemporaryDirectory(prefix="greenroom-bench-") as name,
        run_in_process("tool_round") as fast,
        run_in_process("tool_round", latency=LATENCY) as slow,
        run_in_process(f"rounds:{ROUNDS}") as long,
    ):
        folder = Path(name)
        await _floor(figures, fast, slow, long)
        figures["one_agent_cpu_ms"], _ = await _one(fast, MemoryLog())
        durable = await _one(fast, await SqliteLog.open(folder / "one"))
        figures["one_agent_cpu_ms_durable"], figures["one_agent_bytes"] = durable
        wall, figures["cpu_ms_per_agent"] = await _many(slow, MemoryLog())
        figures["agents_1000_wall_over_aiohttp"] = wall / figures["floor_agents_1000_s"]
        wall, figures["cpu_ms_per_agent_durable"] = await _many(slow, await SqliteLog.open(folder / "many"))
        figures["agents_1000_wall_over_aiohttp_durable"] = wall / figures["floor_agents_1000_s"]
        late, total, wrote = await _rounds(long, await SqliteLog.open(folder / "long"))
        figures["round_190_cpu_ms"], figures["rounds_200_s"], figures["rounds_200_bytes"] = late, total, wrote
    figures["new_agent_us"] = await _new_agents()
    figures["import_s"] = import_seconds("import greenroom; greenroom.Runtime")
    return figures
