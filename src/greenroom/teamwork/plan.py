"""The plan of a team: subtasks with their specialists, dependencies and write sets, and what it is expected to cost.

Planners by rules, by a model and by a manager all make the same `Plan`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from msgspec import Meta

from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import record
from greenroom.core.state.stage import OnFailure

TaskType = Literal["feature-development", "refactoring", "bug-fix", "testing", "documentation"]
Need = Literal["required", "recommended", "optional"]
PlanSource = Literal["rules", "model", "manager", "guess", "file"]
Strategy = Literal["priority-based", "dependency-only"]
PlannerKind = Literal["auto", "rules", "model", "manager"]

MAX_REQUEST: Final = 20_000
"""The longest request, in characters."""


@record
class TeamSettings:
    """`[team]`: teams of specialists.

    - `enabled`: Whether teams can be planned and run. Default: true.
    - `max_concurrent_agents`: How many specialists work at the same time. Default: 8.
    - `default_agents`: Specialists for every feature and refactoring.
    - `auto_decompose`: Whether the code is split by the architect's design. Default: true.
    - `min_subtasks`: A plan with fewer subtasks is left to one agent. Default: 2.
    - `max_subtasks`: The most subtasks that a plan can have. Default: 10.
    - `parallelization_threshold`: The least share of parallel work that makes a team worth it. Default: 0.3.
    - `strategy`: What a phase has: `priority-based` the ready subtasks with the lowest number, `dependency-only` all
      that are ready.
    - `consider_dependencies`: Whether subtasks wait for those whose work they need. If not, priorities alone decide.
      Default: true.
    - `optimize_for_speed`: Whether a subtask starts when its dependencies end. If not, they run phase by phase.
      Default: true.
    - `on_failure`: What happens after a required subtask failed. Default: `stop`.
    - `tries`: How often a subtask is attempted. Default: 2.
    - `planner`: Who plans. `auto` asks a model only if the rules are not sure. Default: `auto`.
    - `manager`: The agent that plans with `planner = "manager"`. Default: none.
    - `keep_days`: Days after which the worktrees and logs of finished runs are removed; 0 keeps them. Default: 30.
    - `real_time_progress`: Whether a table shows the work of each specialist. Default: true.
    - `detailed_logs`: Whether each step of a specialist is shown. Default: true.
    - `performance_metrics`: Whether estimates use what past runs took. Default: true.
    - `conflict_strategy`: How a conflict is resolved: `merge`, `timestamp` (the later subtask wins), `priority` (the
      subtask with the lower number wins); `human` and any other value ask a person. Default: `merge`.
    - `fallback_to_human`: Whether a person is asked about a conflict that stays. If not, the subtask fails.
      Default: true.
    - `auto_resolve_threshold`: The least confidence of a resolution that is taken without a person. Default: 0.8.
    - `accept_model_merges`: Whether a model's resolution is taken without a person if it drops no line. Default: false.
    - `max_rounds`: How often work goes back to its author, after a merge that fails or a review. Default: 2.
    - `validate_syntax`: Whether the syntax of changed files is checked before the project's checks. Default: true.
    - `validate_types`: Whether checks of types run in team runs. Default: true.
    - `min_coverage`: The test coverage in percent below which the report warns. Default: 80.
    - `require_documentation`: Whether the report warns about a change without documentation. Default: false.
    """

    enabled: bool = True
    max_concurrent_agents: Annotated[int, Meta(ge=1, le=64)] = 8
    default_agents: tuple[str, ...] = ("architect", "code-writer", "test-writer", "review")
    auto_decompose: bool = True
    min_subtasks: Annotated[int, Meta(ge=1, le=200)] = 2
    max_subtasks: Annotated[int, Meta(ge=1, le=200)] = 10
    parallelization_threshold: Annotated[float, Meta(ge=0, le=1)] = 0.3
    strategy: Strategy = "priority-based"
    consider_dependencies: bool = True
    optimize_for_speed: bool = True
    on_failure: OnFailure = "stop"
    tries: Annotated[int, Meta(ge=1, le=10)] = 2
    planner: PlannerKind = "auto"
    manager: str = ""
    keep_days: Annotated[int, Meta(ge=0, le=36_500)] = 30
    real_time_progress: bool = True
    detailed_logs: bool = True
    performance_metrics: bool = True
    conflict_strategy: str = "merge"
    fallback_to_human: bool = True
    auto_resolve_threshold: Annotated[float, Meta(ge=0, le=1)] = 0.8
    accept_model_merges: bool = False
    max_rounds: Annotated[int, Meta(ge=0, le=10)] = 2
    validate_syntax: bool = True
    validate_types: bool = True
    min_coverage: Annotated[int, Meta(ge=0, le=100)] = 80
    require_documentation: bool = False


class PlanFault(WorldFault):
    """What is wrong with a plan, as a value or raised. `line` is that of the text, 0 if there is none.

    `nearest` is the right word that is nearest to a wrong one. `place` is the subtask's position and the key.
    """

    line: int = 0
    nearest: str = ""
    place: tuple[int | None, str] = (None, "")

    def at(self, subtask: int | None = None, key: str = "", *, nearest: str = "", line: int = 0) -> Self:
        """Add where the fault is, and the nearest right word."""
        self.place = (subtask, key)
        self.nearest, self.line = nearest, line
        return self

    def __str__(self) -> str:
        text = super().__str__()
        text = translate("plan.at_line", line=self.line, text=text) if self.line else text
        return translate("plan.did_you_mean", text=text, nearest=self.nearest) if self.nearest else text


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
    agent: str
    name: str = ""
    description: str = ""
    dependencies: tuple[str, ...] = ()
    priority: Annotated[int, Meta(ge=0, le=1000)] = 1
    seconds: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    writes: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    required: bool = True
    tries: Annotated[int, Meta(ge=1, le=10)] = 2


@record
class Plan:
    """The subtasks of a request. With `phases`, all subtasks of a phase end before the next phase starts."""

    request: str
    task_types: tuple[TaskType, ...] = ()
    subtasks: tuple[PlannedSubtask, ...] = ()
    source: PlanSource = "rules"
    on_failure: OnFailure = "stop"
    phases: bool = False
    max_concurrent: Annotated[int, Meta(ge=1, le=64)] = 8


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


@record
class Phase:
    """Subtasks that may run at the same time: their ids. `seconds` is the longest of them."""

    number: int
    subtasks: tuple[str, ...]
    can_parallelize: bool
    seconds: int


@record
class TeamDecision:
    """Whether a team is worth it for a plan. `reason` is a sentence, `code` the name of its message."""

    is_team: bool
    code: str
    reason: str
