"""What each agent of a team run contributed: its subtask, files, time and cost. For views and programs alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter

import msgspec

from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR
from greenroom.app.messages import shorten_names, translate
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.ids import AgentId, SubtaskId
from greenroom.core.base.records import Data, record, to_full_dict
from greenroom.core.ports.codec import decode_archived
from greenroom.core.state.stage import Stage, Subtask
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from greenroom.runs.verdict import CHANGES_KEY, COMMIT_KEY, HAND_IN
from greenroom.teamwork.handoffs import Review, read_review
from greenroom.teamwork.plan_graph import BASELINE_SUBTASK, OWN_SUBTASKS, SPLIT_SUBTASK


@record
class FileChanges:
    """What a subtask changed. `files` are the first paths, `file_count` is how many there are. `outside` are those that
    are not in its write set, `planned`."""

    files: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()
    file_count: int = 0
    added: int = 0
    removed: int = 0


@record
class Contribution:
    """One subtask of a team run: its state and plan, what it changed, and what it cost.

    `millis` is the time from its start to its end, or to `now`, without stops of the run. `waits_for` names what must
    end first. `has_work`: its own worktree has commits.
    """

    subtask: Subtask
    waits_for: tuple[str, ...] = ()
    spent: Amounts = NOTHING
    millis: int = 0
    changes: FileChanges = FileChanges()
    has_work: bool = False

    @property
    def review(self) -> Review | None:
        """Its hand-off as a review; None if it is another one."""
        return read_review(self.subtask.output)

    @property
    def protocol(self) -> str:
        """The protocol of its hand-off; empty if it has none."""
        return str((self.subtask.output or {}).get("protocol", ""))

    @property
    def fields(self) -> Data:
        """The contribution as data for programs."""
        subtask = self.subtask
        return {
            "subtask": subtask.name,
            **{key: getattr(subtask, key) for key in ("title", "agent", "state", "attempt", "summary")},
            "waits_for": list(self.waits_for),
            "seconds": self.millis / 1000,
            "estimated_seconds": subtask.seconds,
            "tokens": self.spent.tokens,
            "cost": self.spent.money / MILLIONTHS_PER_DOLLAR,
            **to_full_dict(self.changes),
            "files": list(self.changes.files),
            "outside": list(self.changes.outside),
            "planned": list(self.changes.planned),
            "protocol": self.protocol,
            **({"review_score": review.overall_score} if (review := self.review) is not None else {}),
        }


def list_contributions(
    stage: Stage,
    steps: Iterable[Step],
    spent: Mapping[tuple[AgentId, SubtaskId | None], Amounts],
    now: int,
    stops: Sequence[tuple[int, int]] = (),
) -> tuple[Contribution, ...]:
    """Return the contributions of a stage in the order of its plan. Between `stops` nothing ran: from, until. They and
    `now` are in milliseconds. What an agent `spent` on no subtask counts with its first one."""
    steps = tuple(steps)
    changes = find_changes(steps)
    first = {subtask.agent: subtask.subtask_id for subtask in reversed(stage.subtasks)}
    committed = {step.subtask_id for step in steps if COMMIT_KEY in (step.result or {})}
    waiting = {subtask.subtask_id: subtask.name for subtask in stage.subtasks if subtask.state in ("init", "running")}
    return tuple(
        Contribution(
            subtask=subtask,
            waits_for=tuple(waiting[need] for need in subtask.needs if subtask.state == "init" and need in waiting),
            spent=spent.get((subtask.agent, subtask.subtask_id), NOTHING).plus(
                spent.get((subtask.agent, None), NOTHING) if first[subtask.agent] == subtask.subtask_id else NOTHING
            ),
            millis=_measure(subtask.started_at, subtask.ended_at or now, stops) if subtask.started_at else 0,
            changes=changes.get(subtask.subtask_id, FileChanges()),
            has_work=subtask.subtask_id in committed,
        )
        for subtask in stage.subtasks
    )


def _measure(start: int, end: int, stops: Iterable[tuple[int, int]]) -> int:
    """Return the milliseconds from `start` to `end` without the `stops` in between."""
    return max(end - start - sum(max(min(end, until) - max(start, since), 0) for since, until in stops), 0)


def find_changes(steps: Iterable[Step]) -> Mapping[SubtaskId, FileChanges]:
    """Return the changed files by subtask, as its last hand-in has counted them."""
    found = dict[SubtaskId, FileChanges]()
    for step in steps:
        changes = (step.result or {}).get(CHANGES_KEY)
        if step.work.executor == HAND_IN and step.subtask_id is not None and isinstance(changes, Mapping):
            found[step.subtask_id] = msgspec.convert(changes, FileChanges)
    return found


async def find_stage(runtime: Runtime, state: TeamState) -> Stage | None:
    """Return the stage of a team run, open or ended; None for other teams."""
    if state.team.kit != TEAM_RUN:
        return None
    rows = await runtime.log.read_archive(state.team.team_id, "stage")
    ended = [decode_archived(row) for row in rows if row.version <= state.version]
    return next((stage for stage in (*state.stages.values(), *ended) if isinstance(stage, Stage)), None)


def describe_missing(stage: Stage | None) -> str:
    """Return a sentence about the planned subtasks whose work is not in the change; empty if all are finished."""
    missing = [
        f"{subtask.name} ({translate(f'states.{subtask.state}')})"
        for subtask in (stage.subtasks if stage is not None else ())
        if subtask.name not in OWN_SUBTASKS and subtask.state != "finished"
    ]
    return translate("teams.missing", names=shorten_names(missing)) if missing else ""


def count_subtasks(stage: Stage) -> tuple[int, int]:
    """Return how many subtasks of the plan are finished, and how many there are, without Greenroom's own."""
    planned = [subtask for subtask in stage.subtasks if subtask.name not in OWN_SUBTASKS]
    return sum(subtask.state == "finished" for subtask in planned), len(planned)


def find_phase(stage: Stage) -> tuple[int, int]:
    """Return the current phase and the number of phases.

    A phase is the subtasks with equally many others before them; the verification is the last. The current one is the
    first with a subtask that has not ended.
    """
    known = {subtask.subtask_id: subtask for subtask in stage.subtasks}
    depths = dict[SubtaskId, int]()
    for name in TopologicalSorter({name: subtask.needs for name, subtask in known.items()}).static_order():
        before = max((depths[need] for need in known[name].needs), default=0)
        depths[name] = before + (known[name].name not in (BASELINE_SUBTASK, SPLIT_SUBTASK))
    last = max(depths.values(), default=0)
    ends = [depths[name] for name, subtask in known.items() if subtask.state in ("init", "running") and depths[name]]
    return min(ends, default=last), last
