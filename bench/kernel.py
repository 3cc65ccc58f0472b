"""The kernel's price: durable steps through the whole ring, against a bare SQLite commit in the same folder and run."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Final

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.clock import SystemClock
from greenroom.app.context import tune_process
from greenroom.app.host import SNAPSHOT_EVERY, Host
from greenroom.app.kit import Kit
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.codec import encode_archived, encode_event
from greenroom.core.ports.executor import Abilities, Bench, Outcome
from greenroom.core.ports.log import Append, ArchiveRow, Lease, NewEvent
from greenroom.core.rules.decide import Decided, decide
from greenroom.core.rules.intents import AddAgent, AddTask, FinishStep, Intent, QueueSteps, StartStep
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepType, Terms, Work
from greenroom.core.state.world import World
from greenroom.core.sync.replay import replay, snapshot_of

GOALS: Final = {
    "durable_steps_per_s_1000_agents": (">=", 5000.0),
    "cpu_ms_per_step": ("<=", 0.15),
    "lone_step_over_commit": ("<=", 3.0),
    "kb_per_idle_agent": ("<=", 4.0),
    "step_10000_over_10": ("<=", 1.2),
    "recover_1m_events_s": ("<=", 1.0),
}

WORK: Final = Work(type="skill", executor="spin", intention="Go on.")
PLENTY: Final = Limits(money=10**12, tokens=10**12, steps=10**9)
"""Limits that are looked at and never reached."""

COMMITS: Final = 400
"""Commits of a new database that a lone step and the floor are measured on: while its WAL still grows, on both sides.

Later both are cheaper, the bare commit by more: what is left then is the price of leaving the interpreter's caches.
"""

SPEC: Final = AgentSpec(name="spinner", skills=("spin",))


class Spin:
    """A skill that does nothing but ask for the next step, until everybody has had enough."""

    type: StepType = "skill"
    name: str = "spin"
    description: str = "Do nothing."

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self.ended: list[float] = []
        self.done = asyncio.Event()

    def terms(self, _: World, __: Step) -> Terms:
        """Costs nothing."""
        return Terms(effect="model")

    async def run(self, bench: Bench) -> Outcome:
        """Ask for another step."""
        self.ended.append(time.perf_counter())
        await bench.history()
        number = int(bench.step.step_id.rpartition("#")[2])
        if number >= self._steps:
            return Outcome(result={"text": "done"})
        again = QueueSteps(agent_id=bench.step.agent_id, works=(WORK,))
        return Outcome(result={"text": f"step {number}"}, intents=(again,))


async def _spin(home: Path, agents: int, steps: int) -> tuple[Spin, float, float]:
    """Let agents spin; returns the skill with its times, the wall time and the CPU time."""
    spin = Spin(steps)
    runtime = await Runtime.open(home, kits={"bench": lambda _: Kit(abilities=Abilities([spin]))})
    names = [AgentId(f"a{number}") for number in range(agents)]
    team = await runtime.create("bench", [(name, SPEC) for name in names], kit="bench", limits=PLENTY)
    host = await runtime.start(team)
    await runtime.ask(team, AddTask(name="spin", intention="", manager=names[0], group=tuple(names), driver="manager"))
    task = next(iter(host.world.tasks))
    host.listen(lambda commit: None if commit.world.steps else spin.done.set())
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    await runtime.ask(team, *(QueueSteps(agent_id=name, works=(WORK,), task_id=task) for name in names))
    await spin.done.wait()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    await runtime.close()
    return spin, wall, cpu


def _bare_commits(file: Path) -> list[float]:
    """Seconds of durable commits of one small row each, the first of a new database: the floor."""
    base = sqlite3.connect(file, isolation_level=None)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=FULL")
    base.execute("CREATE TABLE floor (version INTEGER PRIMARY KEY, data BLOB)")
    times = []
    for number in range(COMMITS):
        begin = time.perf_counter()
        base.execute("BEGIN IMMEDIATE")
        base.execute("INSERT INTO floor VALUES (?, ?)", (number, b"x" * 300))
        base.execute("COMMIT")
        times.append(time.perf_counter() - begin)
    base.close()
    return times


async def _idle(home: Path, agents: int) -> float:
    """Kilobytes that one idle agent takes in a running process."""
    runtime = await Runtime.open(home, kits={"bench": lambda _: Kit(abilities=Abilities([]))})
    team = await runtime.create("bench", [(AgentId("first"), SPEC)], kit="bench")
    host = await runtime.start(team)
    gc.collect()
    tracemalloc.start()
    for page in range(0, agents, 500):
        await runtime.ask(team, *(AddAgent(agent_id=AgentId(f"i{page + n}"), spec=SPEC) for n in range(500)))
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] / 1024 / agents
    tracemalloc.stop()
    if len(host.world.agents) != agents + 1:
        raise RuntimeError("not all agents are there")
    await runtime.close()
    return grown


class _Writer:
    """Writes a long log without actors, in large batches: only to have something to recover."""

    def __init__(self, log: SqliteLog, lease: Lease, world: World, version: int) -> None:
        self._log, self._lease = log, lease
        self.world, self.version = world, version
        self._pending: list[Decided] = []

    def decide(self, intent: Intent, by: str) -> None:
        """Take it as decided."""
        decided = decide(self.world, intent, by=by, now=1)
        if not isinstance(decided, Decided):
            raise TypeError(str(decided))
        self.world = decided.world
        self._pending.append(decided)

    async def flush(self) -> None:
        """Write what was decided."""
        events: list[NewEvent] = []
        rows: list[ArchiveRow] = []
        for decided in self._pending:
            first = self.version + len(events) + 1
            rows += [encode_archived(row, first + index) for index, row in decided.archived if row.kind != "step"]
            events += [encode_event(event) for event in decided.events]
        self._pending = []
        batch = f"bench.{self.version}"
        self.version = await self._log.append(
            Append(
                stream=self._lease.stream,
                expected_version=self.version,
                epoch=self._lease.epoch,
                batch=batch,
                events=events,
                archive=rows,
            )
        )


async def _long_log(home: Path, length: int) -> TeamId:
    """A log of `length` events whose newest snapshot is as old as a snapshot gets."""
    runtime = await Runtime.open(home, kits={})
    names = [AgentId(f"a{number}") for number in range(100)]
    team = await runtime.create("long", [(name, SPEC) for name in names])
    await runtime.ask(team, AddTask(name="spin", intention="", manager=names[0], group=tuple(names), driver="manager"))
    await runtime.stop(team)
    log = await SqliteLog.open(home)
    lease = await log.acquire(team, "bench")
    if not isinstance(lease, Lease):
        raise TypeError("the bench does not own its team")
    found = await replay(log, team)
    writer = _Writer(log, lease, found.world, found.version)
    task = next(iter(found.world.tasks))
    for name in names:
        writer.decide(QueueSteps(agent_id=name, works=(WORK,), task_id=task), "door")
    number, saved = 1, False
    while writer.version < length:
        for name in names:
            step = next(iter(writer.world.steps_of(name))).step_id
            writer.decide(StartStep(step_id=step, terms=Terms(effect="model"), work=WORK), name)
            again = QueueSteps(agent_id=name, works=(WORK,))
            writer.decide(FinishStep(step_id=step, attempt=1, result={"text": "step"}, intents=(again,)), name)
        number += 1
        if number % 10 == 0:
            await writer.flush()
            if not saved and writer.version >= length - SNAPSHOT_EVERY:
                await log.save_snapshot(team, snapshot_of(writer.world, writer.version))
                saved = True
    await log.close()
    await runtime.close()
    return team


async def _recover(home: Path, team: TeamId) -> float:
    """Seconds from opening the store to a recovered, owned team."""
    begin = time.perf_counter()
    log = await SqliteLog.open(home)
    lease = await log.acquire(team, "recovery")
    if not isinstance(lease, Lease):
        raise TypeError("the bench does not own its team")
    host = await Host.open(log, lease, clock=SystemClock())
    took = time.perf_counter() - begin
    await host.close()
    await log.close()
    return took


async def run(events: int = 1_000_000) -> dict[str, float]:
    """All figures of the kernel."""
    figures: dict[str, float] = {}
    tune_process()
    with tempfile.TemporaryDirectory(prefix="greenroom-bench-") as name:
        folder = Path(name)
        bare = _bare_commits(folder / "before.db")
        lone, _, _ = await _spin(folder / "lone", 1, 10_050)
        floor = statistics.median([*bare, *_bare_commits(folder / "after.db")])  # the disk's mood changes
        figures["floor_bare_commit_us"] = floor * 1e6
        gaps = [b - a for a, b in zip(lone.ended, lone.ended[1:], strict=False)]
        figures["lone_step_us"] = statistics.median(gaps[:COMMITS]) * 1e6
        figures["lone_step_over_commit"] = statistics.median(gaps[:COMMITS]) / floor
        # Not the very first ones: while the WAL grows to its size, a commit costs twice.
        figures["step_10000_over_10"] = statistics.median(gaps[9900:]) / statistics.median(gaps[500:650])
        steps = 20
        _, wall, cpu = await _spin(folder / "many", 1000, steps)
        figures["durable_steps_per_s_1000_agents"] = 1000 * steps / wall
        figures["cpu_ms_per_step"] = cpu / (1000 * steps) * 1000
        figures["kb_per_idle_agent"] = await _idle(folder / "idle", 10_000)
        team = await _long_log(folder / "long", events)
        figures["recover_1m_events_s"] = await _recover(folder / "long", team)
    return figures
