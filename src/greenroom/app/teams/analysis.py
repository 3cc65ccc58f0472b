"""Analyse a request and plan its team: by rules, by a model or by a manager. All plans are checked alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.adapters.files.local_files import LocalFiles
from greenroom.app.agents.discovery import read_packaged_agent
from greenroom.app.context import AppContext
from greenroom.app.conversation.capability_names import ASK
from greenroom.app.conversation.start import (
    FIRST_TASK_ID,
    Participants,
    create_single_task_team,
    read_model_name,
    refuse_unpriced,
    replace_model,
)
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR
from greenroom.app.messages import translate
from greenroom.app.teams.profiles import SPECIALISTS_PACKAGE, Profiles, load_profiles
from greenroom.app.text_reader import TextReader
from greenroom.core.base.amounts import NOTHING, Amounts, Limits
from greenroom.core.base.errors import ProviderFault, WorldFault, make_refusal
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TeamId
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.ports.executor import Capabilities
from greenroom.core.state.spec import AgentSpec, TurnPolicy
from greenroom.teamwork.classify import classify
from greenroom.teamwork.estimate import Basis, PastMerges, decide_team, estimate_plan, use_measured
from greenroom.teamwork.plan import (
    Phase,
    Plan,
    PlanFault,
    PlannerKind,
    PlanSource,
    Recommendation,
    TaskAnalysis,
    TeamDecision,
    TeamSettings,
)
from greenroom.teamwork.plan_graph import build_phases, check_plan, check_request, find_critical_path
from greenroom.teamwork.plan_text import PLAN_SCHEMA, parse_model_plan
from greenroom.teamwork.planner import plan_by_rules, read_rules, recommend

MAX_FILES_SHOWN: Final = 400
"""Files of the repository that a planner reads the names of."""

READ_SHARE: Final = 10 / 11
"""The share of an agent's tokens that its model reads, not writes."""


@record
class TeamProposal:
    """A request with its analysis and its plan, and whether a team is worth it.

    `notes` say why a plan is a guess. `runs` are the runs in which a model planned; their cost is in the log.
    `past` is what merging took in past runs.
    """

    request: str
    analysis: TaskAnalysis
    plan: Plan
    decision: TeamDecision
    phases: tuple[Phase, ...]
    critical_path: tuple[str, ...]
    model: str = ""
    notes: tuple[str, ...] = ()
    runs: tuple[TeamId, ...] = ()
    past: PastMerges = PastMerges()


class TeamAnalyst:
    """Plans teams in a workspace. `model` is the model of the specialists, empty if none is configured.

    `measured` has what subtasks of each profile took in past runs, `past` what their merges took. `limits` hold for the
    planning and the team run together; `spent` is what the planning took.
    """

    def __init__(
        self,
        app: AppContext,
        *,
        model: str = "",
        measured: Mapping[str, Basis] | None = None,
        past: PastMerges | None = None,
        notify: Callable[[str], None],
        limits: Limits | None = None,
    ) -> None:
        self._app = app
        self._measured = measured
        self._past = past or PastMerges()
        self._notify = notify
        self._limits = limits or app.settings.limits.limits
        self.spent: Amounts = NOTHING
        self.settings: TeamSettings = app.settings.team
        refuse_disabled(self.settings)
        agents = app.agents()
        self.profiles: Profiles = load_profiles(agents, app.language)
        self._broken = {file.name: file.text for file in agents.broken_files}
        self._fault: WorldFault | None = None
        try:
            self.model = app.resolve_alias(model)
        except WorldFault as fault:
            self.model, self._fault = "", fault

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the profiles."""
        return tuple(spec.name for spec in self.profiles.list())

    def require_model(self) -> str:
        """Return the model. Raise `WorldFault` if none is configured."""
        if self._fault is not None:
            raise self._fault
        return self.model

    async def propose(self, request: str, planner: PlannerKind | None = None) -> TeamProposal:
        """Analyse a request and plan it. A model is asked only if the rules are not sure, or as the planner.

        Raise `PlanFault` for an unusable request, and `ProviderFault` if the chosen planner does not answer.
        """
        if fault := check_request(request):
            raise fault
        kind, found = planner or self.settings.planner, classify(request)
        runs, notes = tuple[TeamId, ...](), tuple[str, ...]()
        if kind in ("model", "manager") or (kind == "auto" and not found.is_sure and self.model):
            plan, runs, note = await self._ask_planner(request, kind)
            if plan is not None:
                return evolve(self.assess(plan), runs=runs)
            notes = (note,)
        elif not found.is_sure:
            notes = (translate("teams.guess" if kind == "rules" else "teams.guess_no_model"),)
        source: PlanSource = "rules" if found.is_sure else "guess"
        advice = recommend(found.types, self.settings.default_agents)
        plan = plan_by_rules(request, found.types, advice, self.settings, source=source)
        return evolve(self.assess(plan, advice), notes=notes, runs=runs)

    def assess(self, plan: Plan, advice: tuple[Recommendation, ...] = ()) -> TeamProposal:
        """Estimate a plan and decide whether a team is worth it. Raise `PlanFault` if the plan has a fault.

        Raise `RefusedError` if the file of one of its profiles is broken.
        """
        for subtask in plan.subtasks:
            if subtask.agent in self._broken:
                raise make_refusal("broken_agent", self._broken[subtask.agent])
        if plan.subtasks and (fault := check_plan(plan, self.names, self.settings)):
            raise fault
        plan, strategy = use_measured(complete_plan(plan), self._measured or {}), self.settings.strategy
        estimate = estimate_plan(plan, self._measured, self._price, strategy, self._past)
        analysis = TaskAnalysis(
            task_types=plan.task_types,
            recommended=advice
            or tuple(
                Recommendation(
                    agent=subtask.agent, priority="required" if subtask.required else "optional", reason=subtask.name
                )
                for subtask in plan.subtasks
            ),
            estimate=estimate,
            can_parallelize=estimate.parallelizable_ratio >= self.settings.parallelization_threshold,
            dependencies=tuple((subtask.id, name) for subtask in plan.subtasks for name in subtask.dependencies),
            source=plan.source,
            is_sure=plan.source != "guess",
        )
        return TeamProposal(
            request=plan.request,
            analysis=analysis,
            plan=plan,
            decision=decide_team(plan, estimate, self.settings),
            phases=build_phases(plan, strategy),
            critical_path=find_critical_path(plan),
            model=self.model,
            past=self._past,
        )

    def _price(self, agent: str, tokens: float) -> float | None:
        """Return what these tokens of a profile cost in dollars, None if that is not known."""
        spec = self.profiles.get(agent)
        own = read_model_name(spec) if spec is not None else ""
        if not own and not self.model:
            return None
        try:
            model = self._app.get_model(self._app.resolve_alias(own) if own else self.model)
        except WorldFault:  # a profile names a model that is not configured here
            return None
        millionths = model.price(round(tokens * READ_SHARE), round(tokens * (1 - READ_SHARE)))
        return None if millionths is None else millionths / MILLIONTHS_PER_DOLLAR

    # ---------------------------------------------------------------------------------------- a model or the manager

    async def _ask_planner(self, request: str, kind: PlannerKind) -> tuple[Plan | None, tuple[TeamId, ...], str]:
        """Return the plan of a model or the manager, and its run; without a valid plan, why.

        An answer with a fault is asked for once more, with the fault.
        """
        source: PlanSource = "manager" if kind == "manager" else "model"
        spec, app, limits = self._build_planner(source), self._app, self._limits.minus(self.spent)
        try:
            refuse_unpriced(app.get_model(read_model_name(spec)), limits)
        except WorldFault as fault:
            if kind != "auto":
                raise
            return None, (), str(fault)
        self._notify(translate("teams.asking", model=read_model_name(spec)))
        reader = PlanReader(lambda data: self._read_answer(data, request, source))
        skills = build_conversation_skills(app, (), solo=True, reader=reader, project=app.notes())
        team = await create_single_task_team(
            app.runtime,
            ASK,
            Participants(members=((AgentId(spec.name), spec),)),
            await self._write_question(request),
            typed=request,
            limits=limits,
            capabilities=Capabilities(tuple(skills)),
        )
        try:
            status = await app.runtime.wait(team, FIRST_TASK_ID)
            self.spent = self.spent.plus((await app.runtime.state(team)).budgets[TEAM_BUDGET].spent)
        finally:
            await app.runtime.stop(team)
        if status.state == "finished" and reader.plan is not None:
            return reader.plan, (team,), ""
        if kind != "auto" and status.state != "failed":
            raise ProviderFault("teams.planner_failed", team=team, why=status.reason)
        return None, (team,), translate("teams.no_plan", why=status.reason)

    def _build_planner(self, source: PlanSource) -> AgentSpec:
        planner = read_packaged_agent(SPECIALISTS_PACKAGE, "planner", self._app.language)
        if source == "manager":
            if not self.settings.manager:
                raise make_refusal("no_manager", translate("teams.no_manager"))
            manager = self._app.agents().get(self.settings.manager).spec
            planner = evolve(planner, name=manager.name, prompt=f"{manager.prompt}\n\n{planner.prompt}")
            if own := read_model_name(manager):
                planner = replace_model(planner, self._app.resolve_alias(own))
        if not read_model_name(planner):
            planner = replace_model(planner, self.require_model())
        return evolve(planner, answer=PLAN_SCHEMA, turn=TurnPolicy(repairs=1), tools=(), groups=())

    def _read_answer(self, data: Data, request: str, source: PlanSource) -> Plan | PlanFault:
        plan = parse_model_plan(data, request, source)
        if isinstance(plan, PlanFault):
            return plan
        settings = self.settings
        plan = evolve(
            plan,
            subtasks=tuple(evolve(subtask, tries=settings.tries) for subtask in plan.subtasks),
            on_failure=settings.on_failure,
            phases=not settings.optimize_for_speed,
            max_concurrent=settings.max_concurrent_agents,
        )
        return (check_plan(plan, self.names, settings) if plan.subtasks else None) or plan

    async def _write_question(self, request: str) -> str:
        specialists = [f"- {spec.name}: {spec.profile or spec.role}" for spec in self.profiles.list()]
        walk = await LocalFiles(self._app.root).walk(limit=MAX_FILES_SHOWN)
        files = [entry.path for entry in walk.entries[:MAX_FILES_SHOWN]]
        more = [] if walk.whole else ["(There are more files.)"]
        parts = ("<request>", request, "</request>", "<specialists>", *specialists, "</specialists>")
        limit = f"At most {self.settings.max_subtasks} subtasks."
        return "\n".join((*parts, limit, "<files>", *files, *more, "</files>"))


class PlanReader(TextReader):
    """Reads the plan in the reply of a planner. One with a fault is not accepted, and the planner gets the fault."""

    def __init__(self, read: Callable[[Data], Plan | PlanFault]) -> None:
        super().__init__()
        self._read = read
        self.plan: Plan | None = None

    async def check_answer(self, spec: AgentSpec, value: object) -> tuple[object, str]:
        """Return the answer, and what is wrong with it."""
        plan = self._read(value) if isinstance(value, Mapping) else PlanFault("plan.no_subtasks")
        self.plan = plan if isinstance(plan, Plan) else None
        return value, "" if isinstance(plan, Plan) else str(plan)


def complete_plan(plan: Plan) -> Plan:
    """Return the plan with a name, a description and a time for each subtask."""
    defaults = read_rules().subtasks
    subtasks = [
        evolve(
            subtask,
            name=subtask.name or subtask.id,
            description=subtask.description or plan.request,
            seconds=subtask.seconds or defaults.get(subtask.agent, defaults["code-writer"]).seconds,
        )
        for subtask in plan.subtasks
    ]
    return evolve(plan, subtasks=tuple(subtasks))


def refuse_disabled(settings: TeamSettings) -> None:
    """Raise `RefusedError` if teams are off."""
    if not settings.enabled:
        raise make_refusal("teams_off", translate("teams.off"))
