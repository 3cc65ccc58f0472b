"""The cost of the kernel: durable steps through the whole loop, compared with a bare SQLite commit in that folder."""

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
from greenroom.app.runtime import Runtime
from greenroom.app.team_host import SNAPSHOT_EVERY, TeamHost
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.codec import encode_archived, encode_event
from greenroom.core.ports.executor import Capabilities, Outcome, StepContext
from greenroom.core.ports.log import ArchiveRow, EventBatch, Lease, NewEvent
from greenroom.core.rules.decide import Transition, decide
from greenroom.core.rules.intents import AddAgent, AddTask, FinishStep, Intent, QueueSteps, StartStep
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState
from greenroom.core.sync.replay import make_snapshot, replay

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
"""Limits that are checked but never reached."""

COMMITS: Final = 400
"""Number of commits in a new database, for single steps and for the floor. The WAL still grows during both
measurements. Later commits are cheaper, the bare commits most of all."""

SPEC: Final = AgentSpec(name="spinner", skills=("spin",))


class Spin:
    """A skill that only asks for the next step, until all agents have done enough."""

    type: StepType = "skill"
    name: str = "spin"
    description: str = "Do nothing."

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self.ended: list[float] = []
        self.done = asyncio.Event()

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return free terms."""
        return StepTerms(effect="model")

    async def run(self, context: StepContext) -> Outcome:
        """Ask for another step."""
        self.ended.append(time.perf_counter())
        await context.history()
        number = int(context.step.step_id.rpartition("#")[2])
        if number >= self._steps:
            return Outcome(result={"text": "done"})
        again = QueueSteps(agent_id=context.step.agent_id, works=(WORK,))
        return Outcome(result={"text": f"step {number}"}, intents=(again,))


async def spin_agents(home: Path, agents: int, steps: int) -> tuple[Spin, float, float]:
    """Let agents spin. Return the skill with its times, the elapsed time and the CPU time."""
    spin = Spin(steps)
    runtime = await Runtime.open(home, capability_factories={"bench": lambda _: Capabilities([spin])})
    names = [AgentId(f"a{number}") for number in range(agents)]
    team = await runtime.create("bench", [(name, SPEC) for name in names], capabilities_name="bench", limits=PLENTY)
    host = await runtime.start(team)
    await runtime.ask(team, AddTask(name="spin", intention="", manager=names[0], group=tuple(names), driver="manager"))
    task = next(iter(host.state.tasks))
    host.listen(lambda commit: None if commit.state.steps else spin.done.set())
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    await runtime.ask(team, *(QueueSteps(agent_id=name, works=(WORK,), task_id=task) for name in names))
    await spin.done.wait()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    await runtime.close()
    return spin, wall, cpu


def _bare_commits(file: Path) -> list[float]:
    """Return the seconds of durable commits of one small row each in a new database: the floor."""
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
    """Return the kilobytes that one idle agent takes in a running process."""
    runtime = await Runtime.open(home, capability_factories={"bench": lambda _: Capabilities([])})
    team = await runtime.create("bench", [(AgentId("first"), SPEC)], capabilities_name="bench")
    host = await runtime.start(team)
    gc.collect()
    tracemalloc.start()
    for page in range(0, agents, 500):
        await runtime.ask(team, *(AddAgent(agent_id=AgentId(f"i{page + n}"), spec=SPEC) for n in range(500)))
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] / 1024 / agents
    tracemalloc.stop()
    if len(host.state.agents) != agents + 1:
        raise RuntimeError("not all agents were created")
    await runtime.close()
    return grown


class _Writer:
    """Writes a long log in large batches, without actors, as input for recovery."""

    def __init__(self, log: SqliteLog, lease: Lease, state: TeamState, version: int) -> None:
        self._log, self._lease = log, lease
        self.state, self.version = state, version
        self._pending: list[Transition] = []

    def decide(self, intent: Intent, by: str) -> None:
        """Decide an intent and buffer its events."""
        decided = decide(self.state, intent, by=by, now=1)
        if not isinstance(decided, Transition):
            raise TypeError(str(decided))
        self.state = decided.state
        self._pending.append(decided)

    async def flush(self) -> None:
        """Write the buffered events."""
        events: list[NewEvent] = []
        rows: list[ArchiveRow] = []
        for decided in self._pending:
            first = self.version + len(events) + 1
            rows += [encode_archived(row, first + index) for index, row in decided.archived if row.kind != "step"]
            events += [encode_event(event) for event in decided.events]
        self._pending = []
        batch = f"bench.{self.version}"
        self.version = await self._log.append(
            EventBatch(
                stream=self._lease.stream,
                expected_version=self.version,
                epoch=self._lease.epoch,
                batch=batch,
                events=events,
                archive=rows,
            )
        )


async def _long_log(home: Path, length: int) -> TeamId:
    """Write a log of `length` events whose newest snapshot is as old as possible."""
    runtime = await Runtime.open(home, capability_factories={})
    names = [AgentId(f"a{number}") for number in range(100)]
    team = await runtime.create("long", [(name, SPEC) for name in names])
    await runtime.ask(team, AddTask(name="spin", intention="", manager=names[0], group=tuple(names), driver="manager"))
    await runtime.stop(team)
    log = await SqliteLog.open(home)
    lease = await log.acquire(team, "bench")
    if not isinstance(lease, Lease):
        raise TypeError("the bench does not own its team")
    found = await replay(log, team)
    writer = _Writer(log, lease, found.state, found.version)
    task = next(iter(found.state.tasks))
    for name in names:
        writer.decide(QueueSteps(agent_id=name, works=(WORK,), task_id=task), "door")
    number, saved = 1, False
    while writer.version < length:
        for name in names:
            step = next(iter(writer.state.steps_of(name))).step_id
            writer.decide(StartStep(step_id=step, terms=StepTerms(effect="model"), work=WORK), name)
            again = QueueSteps(agent_id=name, works=(WORK,))
            writer.decide(FinishStep(step_id=step, attempt=1, result={"text": "step"}, intents=(again,)), name)
        number += 1
        if number % 10 == 0:
            await writer.flush()
            if not saved and writer.version >= length - SNAPSHOT_EVERY:
                await log.save_snapshot(team, make_snapshot(writer.state, writer.version))
                saved = True
    await log.close()
    await runtime.close()
    return team


async def _recover(home: Path, team: TeamId) -> float:
    """Return the seconds from opening the store to a recovered, owned team."""
    begin = time.perf_counter()
    log = await SqliteLog.open(home)
    lease = await log.acquire(team, "recovery")
    if not isinstance(lease, Lease):
        raise TypeError("the bench does not own its team")
    host = await TeamHost.open(log, lease, clock=SystemClock())
    took = time.perf_counter() - begin
    await host.close()
    await log.close()
    return took


async def run(events: int = 1_000_000) -> dict[str, float]:
    """Measure all figures of the kernel."""
    figures: dict[str, float] = {}
    tune_process()
    with tempfile.TemporaryDirectory(prefix="greenroom-bench-") as name:
        folder = Path(name)
        bare = _bare_commits(folder / "before.db")
        lone, _, _ = await spin_agents(folder / "lone", 1, 10_050)
        floor = statistics.median([*bare, *_bare_commits(folder / "after.db")])  # the speed of the disk varies
        figures["floor_bare_commit_us"] = floor * 1e6
        gaps = [b - a for a, b in zip(lone.ended, lone.ended[1:], strict=False)]
        figures["lone_step_us"] = statistics.median(gaps[:COMMITS]) * 1e6
        figures["lone_step_over_commit"] = statistics.median(gaps[:COMMITS]) / floor
        # Skip the very first commits: while the WAL grows to its size, a commit costs twice.
        figures["step_10000_over_10"] = statistics.median(gaps[9900:]) / statistics.median(gaps[500:650])
        steps = 20
        _, wall, cpu = await spin_agents(folder / "many", 1000, steps)
        figures["durable_steps_per_s_1000_agents"] = 1000 * steps / wall
        figures["cpu_ms_per_step"] = cpu / (1000 * steps) * 1000
        figures["kb_per_idle_agent"] = await _idle(folder / "idle", 10_000)
        team = await _long_log(folder / "long", events)
        figures["recover_1m_events_s"] = await _recover(folder / "long", team)
    return figures
