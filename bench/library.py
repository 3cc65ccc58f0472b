"""The cost of the library: agents built with the public names, compared with the same requests in bare aiohttp.

The fake server runs in its own process, so the CPU time is the client's alone. Floor and library alternate within one
run, and a figure is the median of the ratios: a busy machine slows both. One run of an agent is one tool round: a model
call that asks for a tool, the tool, and a second model call that reads the result.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from bench._floor import PROMPT, SYSTEM, call, converse, import_seconds, late_round, open_session, written_bytes
from greenroom import Agent, Greenroom, tool
from tests.fake_openai.process import run_in_process

GOALS: Final = {
    "one_agent_cpu": ("<=", 4.0),
    "one_agent_cpu_durable": ("<=", 6.0),
    "agents_100_cpu": ("<=", 2.0),
    "agents_1000_wall": ("<=", 1.5),
    "agents_1000_wall_durable": ("<=", 2.0),
    "chain_of_10_cpu": ("<=", 4.0),
    "fan_of_8_cpu": ("<=", 4.0),
    "round_190_cpu": ("<=", 1.3),
    "rounds_200_bytes": ("<=", 2_000_000.0),
    "new_agent_us": ("<=", 20.0),
    "import_s": ("<=", 0.35),
}
"""All but the last three are multiples of the cost of bare aiohttp."""

LATENCY: Final = 0.5
ROUNDS: Final = 200
TURNS: Final = 5
"""How often floor and library alternate."""

MARKS: list[float] = []
"""CPU seconds at each call of the tool."""


@tool(effect="pure")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    MARKS.append(time.process_time())
    return a + b


PROVIDER: Final = """
[providers.{name}]
base_url = "{url}"
max_parallel = 1000

[prices."{name}:fake"]
input = 0
output = 0
"""


@dataclass(frozen=True)
class Servers:
    """The addresses of the fake servers. Their names are the provider names in the settings."""

    fast: str
    slow: str
    long: str
    text: str


@contextmanager
def serve() -> Iterator[Servers]:
    """Start the servers and add them to the settings of this process."""
    with (
        tempfile.TemporaryDirectory(prefix="greenroom-bench-") as folder,
        run_in_process("tool_round") as fast,
        run_in_process("tool_round", latency=LATENCY) as slow,
        run_in_process(f"rounds:{ROUNDS}") as long,
        run_in_process("hello") as text,
    ):
        servers = Servers(fast, slow, long, text)
        settings = "".join(PROVIDER.format(name=name, url=url) for name, url in vars(servers).items())
        file = Path(folder, "config.toml")
        file.write_text(settings, encoding="utf-8")
        os.environ["GREENROOM_CONFIG"] = str(file)
        yield servers


def adder(server: str, name: str = "adder", rounds: int = 0) -> Agent:
    """Build an agent with a tool whose model is at this server."""
    return Agent(name, "You add.", model=f"{server}:fake", tools=[add], max_turns=rounds)


@asynccontextmanager
async def house(*, durable: bool) -> AsyncIterator[Greenroom]:
    """Open a Greenroom in memory, or in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="greenroom-bench-") as folder:
        async with Greenroom(folder) if durable else Greenroom(in_memory=True) as opened:
            yield opened


Work = Callable[[], Awaitable[object]]


async def cpu_of(work: Work, times: int) -> float:
    """Return the CPU milliseconds of one repetition."""
    gc.collect()
    begin = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - begin) / times * 1000


async def compare(floor: Work, mine: Work, times: int, warm: int = 5) -> tuple[float, float, float]:
    """Return the median CPU ratio, and both medians in milliseconds."""
    for _ in range(warm):
        await floor()
        await mine()
    pairs = [(await cpu_of(floor, times), await cpu_of(mine, times)) for _ in range(TURNS)]
    return (
        median(ours / bare for bare, ours in pairs),
        median(bare for bare, _ in pairs),
        median(ours for _, ours in pairs),
    )


async def one_agent(figures: dict[str, float], servers: Servers) -> None:
    """Measure one agent with one tool round, repeatedly."""
    agent = adder("fast")
    for name, durable in (("one_agent_cpu", False), ("one_agent_cpu_durable", True)):
        async with open_session() as session, house(durable=durable) as home:
            found = await compare(partial(converse, session, servers.fast), partial(home.run, agent, PROMPT), 40)
            figures[name], figures["floor_one_agent_ms"], figures[f"{name}_ms"] = found


async def many(url: str, count: int, *, durable: bool | None) -> tuple[float, float]:
    """Return the seconds until all of `count` agents have an answer, and the CPU milliseconds per agent. `durable=None`
    measures bare aiohttp."""
    async with open_session() as session, house(durable=bool(durable)) as home:
        agents = [adder("slow", f"agent-{number}") for number in range(count)]

        def work(agent: Agent) -> Awaitable[object]:
            return converse(session, url) if durable is None else home.run(agent, PROMPT)

        await work(agents[0])
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*map(work, agents))
        return time.perf_counter() - wall, (time.process_time() - cpu) / count * 1000


async def many_agents(figures: dict[str, float], servers: Servers) -> None:
    """Measure many concurrent agents with a slow model."""
    pairs = [[await many(servers.slow, 100, durable=how) for how in (None, False)] for _ in range(TURNS)]
    figures["agents_100_cpu"] = median(mine[1] / bare[1] for bare, mine in pairs)
    figures["agents_100_cpu_ms"] = median(mine[1] for _, mine in pairs)
    rows = [[await many(servers.slow, 1000, durable=how) for how in (None, False, True)] for _ in range(3)]
    bare, memory, disk = (min(row[kind][0] for row in rows) for kind in range(3))
    figures["floor_agents_1000_s"] = bare
    figures["agents_1000_wall"], figures["agents_1000_wall_durable"] = memory / bare, disk / bare


Step = Callable[[str], Awaitable[str]]


async def chain(steps: Sequence[Step]) -> None:
    """Pass each answer to the next step."""
    text = PROMPT
    for step in steps:
        text = await step(text)


async def fan(steps: Sequence[Step]) -> None:
    """Run one step, then eight concurrent steps with its answer, then the first step with theirs."""
    text = await steps[0](PROMPT)
    parts = await asyncio.gather(*(step(text) for step in steps[1:9]))
    await steps[0]("\n".join(parts))


async def several_agents(figures: dict[str, float], servers: Servers) -> None:
    """Measure agents that pass answers on, with a model that answers immediately."""
    async with open_session() as session, house(durable=False) as home:

        async def ask(text: str) -> str:
            messages = [SYSTEM, {"role": "user", "content": text}]
            return str((await call(session, servers.text, messages, tools=False))["content"])

        async def run(agent: Agent, text: str) -> str:
            return (await home.run(agent, text)).output

        agents = [Agent(f"agent-{number}", "You answer.", model="text:fake") for number in range(10)]
        bare, mine = [ask] * 10, [partial(run, agent) for agent in agents]
        for name, way in (("chain_of_10_cpu", chain), ("fan_of_8_cpu", fan)):
            figures[name], _, figures[f"{name}_ms"] = await compare(partial(way, bare), partial(way, mine), 10)


async def long_conversation(figures: dict[str, float], servers: Servers) -> None:
    """Measure one long run on disk: the cost of a late round, and the bytes written."""
    agent = adder("long", rounds=ROUNDS + 10)
    quotients, floors = [], []
    async with open_session() as session, house(durable=True) as home:
        for _ in range(3):
            marks: list[float] = []
            await converse(session, servers.long, marks)
            floors.append(late_round(marks, ROUNDS))
            MARKS.clear()
            before = written_bytes()
            await home.run(agent, PROMPT)
            figures["rounds_200_bytes"] = float(written_bytes() - before)
            quotients.append(late_round(MARKS, ROUNDS) / floors[-1])
    figures["round_190_cpu"], figures["floor_round_190_ms"] = median(quotients), median(floors)


def new_agents() -> float:
    """Return the microseconds to describe an agent with a tool."""
    gc.collect()
    begin = time.process_time()
    for _ in range(5000):
        adder("fast")
    return (time.process_time() - begin) / 5000 * 1e6


async def run() -> dict[str, float]:
    """Measure all figures of the library."""
    figures: dict[str, float] = {}
    with serve() as servers:
        await one_agent(figures, servers)
        await many_agents(figures, servers)
        await several_agents(figures, servers)
        await long_conversation(figures, servers)
    figures["new_agent_us"] = new_agents()
    figures["import_s"] = import_seconds("from greenroom import Agent")
    return figures
