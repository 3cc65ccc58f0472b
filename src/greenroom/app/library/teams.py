"""`greenroom.teams`: plan and run teams of specialists that change a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, TypeAlias

from greenroom.app.context import AppContext
from greenroom.app.conversation.chat import make_resume_intents
from greenroom.app.conversation.start import FIRST_TASK_ID
from greenroom.app.library.agent_definition import require_kind
from greenroom.app.messages import translate
from greenroom.app.settings.schema import Settings
from greenroom.app.task_status import TaskState, TaskStatus
from greenroom.app.teams.analysis import TeamAnalyst, TeamProposal
from greenroom.app.teams.capabilities import build_team_capabilities
from greenroom.app.teams.integration import describe_result, integrate_results
from greenroom.app.teams.metrics import measure_past_merges, measure_past_runs
from greenroom.app.teams.start import create_planned_run
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import make_refusal
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.model import Model, Models
from greenroom.core.rules.intents import CancelTask, PauseTeam
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team import Team
from greenroom.runs.verdict import find_verdict
from greenroom.runs.workspace import RunFlags
from greenroom.teamwork.plan import Plan, PlannerKind, TaskAnalysis

TeamRunStatus: TypeAlias = Literal["scheduled", "running", "paused", "completed", "unverified", "failed", "cancelled"]
_STATUS: Final[dict[TaskState, TeamRunStatus]] = {
    "working": "running",
    "failed": "failed",
    "idle": "failed",
    "cancelled": "cancelled",
}
"""The status of a run by that of its task; all others are a pause."""


class TeamContext(AppContext):
    """The app context of a program's teams: its workspace with its settings, and its models if it gives any."""

    def __init__(self, app: AppContext, workspace: Path, models: Models | None) -> None:
        super().__init__()
        self._model_session = app.model_session
        self._workspace = workspace
        self.given_models = models

    @property
    def folder(self) -> Path:
        """The workspace."""
        return self._workspace

    @property
    def settings(self) -> Settings:
        return self.model_session.load_settings_of(self._workspace)

    def get_model(self, name: str) -> Model:
        return super().get_model(name) if self.given_models is None else self.given_models.get_model(name)

    def resolve_alias(self, name: str) -> str:
        """Return the model of a role. A program's own models have their own names."""
        return super().resolve_alias(name) if self.given_models is None else self.given_models.get_model(name).name


class Teams:
    """Teams of specialists in the workspace of a `Greenroom`.

    Runs are those of `greenroom run --team`: `greenroom show`, `diff` and `apply` work with their ids.
    """

    def __init__(self, context: TeamContext, limits: Limits | None, home: Path | None) -> None:
        self._app = context
        self._limits = limits or context.settings.limits.limits
        self._home = home
        self._own: dict[str, AgentSpec] = {}

    async def analyze(self, text: str, *, planner: PlannerKind | None = None) -> TaskAnalysis:
        """Return what a request asks for: task types, specialists and the estimate."""
        return (await self.propose(text, planner=planner)).analysis

    async def plan(self, text: str, *, planner: PlannerKind | None = None) -> Plan:
        """Return the plan of a request. A model is asked only if the rules are not sure, or as the `planner`."""
        return (await self.propose(text, planner=planner)).plan

    async def propose(self, text: str, *, planner: PlannerKind | None = None) -> TeamProposal:
        """Return the analysis and the plan of a request, and whether a team is worth it."""
        require_kind(isinstance(text, str), text, "request")
        return await (await self._open_analyst()).propose(text, planner)

    async def execute(self, plan: Plan | str, *, model: str = "", allow_unverified: bool = False) -> str:
        """Start the team of a plan, or of a request. Return the id of its run; `wait` returns its end.
        Without `allow_unverified`, no model is called if nothing can verify the change.
        Raise `RefusedError` if a request is not worth a team: give it to one agent, or pass its plan."""
        require_kind(isinstance(plan, Plan | str), plan, "plan")
        analyst, app = await self._open_analyst(model), self._app
        proposal = await analyst.propose(plan) if isinstance(plan, str) else analyst.assess(plan)
        if not proposal.plan.subtasks:
            raise make_refusal("no_subtasks", translate("plan.no_subtasks"))
        if isinstance(plan, str) and not proposal.decision.is_team:
            raise make_refusal("single_agent", proposal.decision.reason)
        wanted = RunFlags(allow_unverified=allow_unverified)
        team = await create_planned_run(app, analyst, proposal.plan, self._limits, wanted)
        await app.runtime.start(team)
        return team

    async def wait(self, run_id: str) -> TeamRunStatus:
        """Wait until a run is over, or cannot continue by itself. `completed` means that its change is verified."""
        return await self._name_status(run_id, await self._app.runtime.wait(TeamId(run_id), FIRST_TASK_ID))

    async def status(self, run_id: str) -> TeamRunStatus:
        """Return the status of a run. `completed` means that its change is verified."""
        state = await self._app.runtime.state(TeamId(run_id))
        if state.team.paused is not None and FIRST_TASK_ID in state.tasks:
            return "paused"
        status = await self._app.runtime.status(TeamId(run_id), FIRST_TASK_ID)
        has_begun = FIRST_TASK_ID not in state.tasks or any(stage.started_at for stage in state.stages.values())
        return await self._name_status(run_id, status) if has_begun else "scheduled"

    async def _name_status(self, run_id: str, status: TaskStatus) -> TeamRunStatus:
        if status.state != "finished":
            return _STATUS.get(status.state, "paused")
        verdict = find_verdict(await self._app.steps(TeamId(run_id))).state
        return "completed" if verdict == "verified" else verdict

    async def report(self, run_id: str) -> Data:
        """Return the integration report of a run, with the fields of `greenroom report --output-format json`."""
        return describe_result(await integrate_results(self._app, TeamId(run_id)))

    async def pause(self, run_id: str) -> None:
        """Pause a run: running steps end, and no new one starts."""
        await self._app.runtime.ask(TeamId(run_id), PauseTeam())

    async def resume(self, run_id: str) -> None:
        """Continue a paused run where it stopped."""
        runtime, team = self._app.runtime, TeamId(run_id)
        if intents := make_resume_intents(await runtime.state(team)):
            await runtime.ask(team, *intents)
        await runtime.start(team)

    async def cancel(self, run_id: str) -> None:
        """Cancel a run. Its finished work stays in its worktrees."""
        await self._app.runtime.ask(TeamId(run_id), CancelTask(task_id=FIRST_TASK_ID))

    async def make_capabilities(self, team: Team) -> Capabilities:
        """Build the capabilities of a team run, for the runtime."""
        return await build_team_capabilities(self._app, team, self._own.values())

    async def agents(self) -> tuple[AgentSpec, ...]:
        """Return the profiles of all specialists."""
        return (await self._open_analyst()).profiles.list()

    async def register_agent(self, spec: AgentSpec) -> None:
        """Add a profile, or replace the one of the same name, for the runs of this program."""
        self._own[spec.name] = spec

    async def _open_analyst(self, model: str = "") -> TeamAnalyst:
        if self._app.given_models is None:
            await self._app.model_session.find_local_servers()
        measured = await measure_past_runs(self._app, self._home) if self._home is not None else {}
        past = await measure_past_merges(self._app, self._home) if self._home is not None else None
        analyst = TeamAnalyst(
            self._app, model=model, measured=measured, past=past, notify=lambda _: None, limits=self._limits
        )
        for spec in self._own.values():
            analyst.profiles.register(spec)
        return analyst
