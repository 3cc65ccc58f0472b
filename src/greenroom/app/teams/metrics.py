"""What specialists took in past team runs: running averages per profile, measured from the log.

A small file beside the store keeps the sums of each run with its log's version, so only runs that went on are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.app.context import AppContext
from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR
from greenroom.app.settings.home import replace_file
from greenroom.app.teams.report import FileChanges
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import StoreFault
from greenroom.core.base.ids import AgentId, SubtaskId, ThreadId, agent_of
from greenroom.core.base.records import encode, record
from greenroom.core.ports.codec import decode_event
from greenroom.core.ports.log import Log
from greenroom.core.state.agent import AgentAdded
from greenroom.core.state.events import Event
from greenroom.core.state.stage import SubtaskAssigned, SubtaskEnded
from greenroom.core.state.step import StepEnded, StepInterrupted
from greenroom.core.state.team import TeamCreated, TeamForked
from greenroom.runs.verdict import CHANGES_KEY, INTEGRATED_KEY
from greenroom.teamwork.estimate import Basis, PastMerges

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
    workspace: str = ""
    merges: PastMerges | None = None


async def measure_past_runs(app: AppContext, home: Path) -> Mapping[str, Basis]:
    """Return what subtasks of each profile took in past runs; nothing if the settings want no metrics."""
    metrics = await read_metrics(app.runtime.log, home) if app.settings.team.performance_metrics else {}
    return {name: found.basis for name, found in metrics.items()}


async def measure_past_merges(app: AppContext, home: Path) -> PastMerges:
    """Return what merging took in past runs of this workspace; nothing if the settings want no metrics."""
    total = PastMerges()
    for run in (await _read_runs(app.runtime.log, home)).values() if app.settings.team.performance_metrics else ():
        if run.merges is not None and run.workspace == str(app.root):
            total = total.plus(run.merges)
    return total


async def read_metrics(log: Log, home: Path) -> Mapping[str, ProfileMetrics]:
    """Return the metrics of each profile over all team runs of a home folder. A damaged log is left out."""
    runs = await _read_runs(log, home)
    return _sum_metrics(part for run in runs.values() for part in run.profiles.items())


async def _read_runs(log: Log, home: Path) -> Mapping[str, _RunMetrics]:
    """Return the metrics of each run. What an older version kept of a team run is measured again."""
    known = _load_file(home / METRICS_FILE)
    runs = dict[str, _RunMetrics]()
    for info in await log.streams():
        run = known.get(info.stream)
        if run is None or (run.is_team and (run.version != info.head.version or run.merges is None)):
            with suppress(StoreFault):
                runs[info.stream] = await _measure_run(log, info.stream, info.head.version)
        else:
            runs[info.stream] = run
    if runs != known:
        with suppress(OSError):  # the file only saves time: a home that cannot be written is read each time
            replace_file(home / METRICS_FILE, encode(runs).decode())
    return runs


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
    created = next((event for event in first if isinstance(event, TeamCreated) and event.kit == TEAM_RUN), None)
    if created is None:
        return _RunMetrics(version=version)
    stored = [row async for page in log.read(stream, upto=version) for row in page if row.type in EVENTS_READ]
    events = [decode_event(row) for row in stored]
    return _RunMetrics(
        version=version,
        is_team=True,
        profiles=_measure_profiles(events),
        workspace=created.workspace,
        merges=_measure_merges(events),
    )


def _measure_merges(events: Iterable[Event]) -> PastMerges:
    """Return what the merges took, and how the last hand-in of each subtask kept to its write set."""
    total, handed_in = PastMerges(), dict[ThreadId, FileChanges]()
    for event in events:
        result = (event.result or {}) if isinstance(event, StepEnded) else {}
        seconds, conflicts, changes = (result.get(key) for key in ("seconds", "conflicts", CHANGES_KEY))
        if isinstance(event, StepEnded) and isinstance(changes, Mapping):
            handed_in[event.thread_id] = msgspec.convert(changes, FileChanges)
        if INTEGRATED_KEY in result and isinstance(seconds, int | float):
            total = total.plus(PastMerges(merges=1, seconds=float(seconds)))
        if isinstance(conflicts, Sequence):
            total = total.plus(PastMerges(conflicts=len(conflicts)))
        if isinstance(event, TeamForked):
            total, handed_in = PastMerges(), {}
    for work in handed_in.values():
        if work.planned and work.file_count:
            outside = dict.fromkeys(work.outside, 1)
            total = total.plus(PastMerges(planned=1, held=int(not outside), unplanned=outside))
    return total


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
