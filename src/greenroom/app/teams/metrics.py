"""What specialists took in past team runs: running averages per profile, measured from the log.

A small file beside the store keeps the sums of each run with its log's version, so only runs that went on are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.app.context import AppContext
from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR
from greenroom.app.settings.home import replace_file
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import StoreFault
from greenroom.core.base.ids import AgentId, SubtaskId, agent_of
from greenroom.core.base.records import encode, record
from greenroom.core.ports.codec import decode_event
from greenroom.core.ports.log import Log
from greenroom.core.state.agent import AgentAdded
from greenroom.core.state.events import Event
from greenroom.core.state.stage import SubtaskAssigned, SubtaskEnded
from greenroom.core.state.step import StepEnded, StepInterrupted
from greenroom.core.state.team import TeamCreated, TeamForked
from greenroom.teamwork.estimate import Basis

METRICS_FILE: Final = "team-metrics.json"
_COUNTED: Final = (AgentAdded, SubtaskAssigned, SubtaskEnded, StepEnded, StepInterrupted, TeamForked)
EVENTS_READ: Final = frozenset(event.__name__ for event in _COUNTED)


@record
class ProfileMetrics:
    """What the subtasks of one profile took together, with all their tries. Time is working time without any pauses."""

    completed: int = 0
    failed: int = 0
    spent: Amounts = NOTHING

    @property
    def runs(self) -> int:
        """How many subtasks ended."""
        return self.completed + self.failed

    @property
    def success_rate(self) -> float | None:
        """The share of subtasks that were completed, from 0 to 1. None without runs."""
        return round(self.completed / self.runs, 4) if self.runs else None

    @property
    def basis(self) -> Basis:
        """The averages of a subtask, as the estimate of a plan uses them. The cost is None if nothing had a price."""
        runs = self.runs or 1
        return Basis(
            seconds=round(self.spent.millis / runs / 1000, 3),
            tokens=round(self.spent.tokens / runs, 1),
            cost=round(self.spent.money / runs / MILLIONTHS_PER_DOLLAR, 6) if self.spent.money else None,
            runs=self.runs,
        )

    def plus(self, other: ProfileMetrics) -> ProfileMetrics:
        """Return the metrics of both."""
        return ProfileMetrics(
            completed=self.completed + other.completed,
            failed=self.failed + other.failed,
            spent=self.spent.plus(other.spent),
        )


@record
class _RunMetrics:
    """The metrics of one run by profile, up to this version of its log."""

    version: int
    is_team: bool = False
    profiles: Mapping[str, ProfileMetrics] = {}


async def measure_past_runs(app: AppContext, home: Path) -> Mapping[str, Basis]:
    """Return what subtasks of each profile took in past runs; nothing if the settings want no metrics."""
    metrics = await read_metrics(app.runtime.log, home) if app.settings.team.performance_metrics else {}
    return {name: found.basis for name, found in metrics.items()}


async def read_metrics(log: Log, home: Path) -> Mapping[str, ProfileMetrics]:
    """Return the metrics of each profile over all team runs of a home folder. A damaged log is left out."""
    known = _load_file(home / METRICS_FILE)
    runs = dict[str, _RunMetrics]()
    for info in await log.streams():
        run = known.get(info.stream)
        if run is None or (run.is_team and run.version != info.head.version):
            with suppress(StoreFault):
                runs[info.stream] = await _measure_run(log, info.stream, info.head.version)
        else:
            runs[info.stream] = run
    if runs != known:
        with suppress(OSError):  # the file only saves time: a home that cannot be written is read each time
            replace_file(home / METRICS_FILE, encode(runs).decode())
    return _sum_metrics(part for run in runs.values() for part in run.profiles.items())


def _load_file(path: Path) -> Mapping[str, _RunMetrics]:
    with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(path.read_bytes(), type=dict[str, _RunMetrics])
    return {}


def _sum_metrics(parts: Iterable[tuple[str, ProfileMetrics]]) -> Mapping[str, ProfileMetrics]:
    total = dict[str, ProfileMetrics]()
    for name, metrics in parts:
        total[name] = total.get(name, ProfileMetrics()).plus(metrics)
    return total


async def _measure_run(log: Log, stream: str, version: int) -> _RunMetrics:
    first = [decode_event(stored) for stored in await log.pick(stream, [1])]
    if not any(isinstance(event, TeamCreated) and event.kit == TEAM_RUN for event in first):
        return _RunMetrics(version=version)
    stored = [row async for page in log.read(stream, upto=version) for row in page if row.type in EVENTS_READ]
    return _RunMetrics(version=version, is_team=True, profiles=_measure_profiles(map(decode_event, stored)))


def _measure_profiles(events: Iterable[Event]) -> Mapping[str, ProfileMetrics]:
    """Return what the agents took that have ended a subtask, by profile."""
    profiles, assigned = dict[AgentId, str](), dict[SubtaskId, AgentId]()
    parts = list[tuple[AgentId, ProfileMetrics]]()
    for event in events:
        match event:
            case AgentAdded() if event.spec.kind == "llm":
                profiles[event.agent_id] = event.spec.name
            case SubtaskAssigned():
                assigned[event.subtask_id] = event.agent_id
            case SubtaskEnded(state="finished" | "failed") if event.subtask_id in assigned:
                is_done = event.state == "finished"
                ended = ProfileMetrics(completed=int(is_done), failed=int(not is_done))
                parts.append((assigned[event.subtask_id], ended))
            case StepEnded() | StepInterrupted():
                parts.append((agent_of(event.step_id), ProfileMetrics(spent=event.spent)))
            case TeamForked():
                parts.clear()  # the team that this one was forked from has counted them
            case _:
                pass
    measured = {agent for agent, metrics in parts if metrics.runs} & profiles.keys()
    return _sum_metrics((profiles[agent], metrics) for agent, metrics in parts if agent in measured)
