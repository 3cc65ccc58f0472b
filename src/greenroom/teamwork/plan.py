"""The plan of a team: subtasks with their specialists, dependencies and write sets, and what it is expected to cost.

Planners by rules, by a model and by a manager all make the same `Plan`.
"""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.records import record
from greenroom.core.state.stage import OnFailure

TaskType = Literal["feature-development", "refactoring", "bug-fix", "testing", "documentation"]
Need = Literal["required", "recommended", "optional"]
PlanSource = Literal["rules", "model", "manager", "guess", "file"]


@record
class Recommendation:
    """A specialist for a task: how much it is needed, and why."""

    agent: str
    priority: Need
    reason: str


@record
class Range:
    """An estimate between two values."""

    low: float
    high: float


@record
class Estimate:
    """What a plan takes. Times are in seconds; `cost` is in dollars, None if no price is known.

    `basis` says where the numbers come from: measured past runs, or the defaults of the profiles. `gain` is the time of
    one agent divided by the critical path and the merges.
    """

    seconds: Range
    tokens: Range
    cost: Range | None
    agents: int
    parallelizable_ratio: float
    serial_seconds: float
    critical_seconds: float
    merge_seconds: float
    gain: float
    basis: Literal["past_runs", "profiles", "mixed"] = "profiles"


@record
class PlannedSubtask:
    """One specialist's part. `agent` names its profile. `writes` is its write set: paths or patterns of files.

    `symbols` are functions and classes that it changes, as `path:name`. A subtask with a lower `priority` starts first.
    `tries` is how often it may be attempted.
    """

    id: str
    name: str
    agent: str
    description: str
    dependencies: tuple[str, ...] = ()
    priority: int = 1
    seconds: int = 0
    writes: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    required: bool = True
    tries: int = 2


@record
class Plan:
    """The subtasks of a request. With `phases`, all subtasks of a phase end before the next phase starts."""

    request: str
    task_types: tuple[TaskType, ...]
    subtasks: tuple[PlannedSubtask, ...]
    source: PlanSource = "rules"
    on_failure: OnFailure = "stop"
    phases: bool = False
    max_concurrent: int = 8


@record
class TaskAnalysis:
    """What a request asks for: its types, the recommended specialists and the estimate.

    `is_sure` says that the types can be relied on without asking a model or a person.
    """

    task_types: tuple[TaskType, ...]
    recommended: tuple[Recommendation, ...]
    estimate: Estimate
    can_parallelize: bool
    dependencies: tuple[tuple[str, str], ...] = ()
    source: PlanSource = "rules"
    is_sure: bool = True
