"""Starts a team run: its members, its stage from a plan, and its task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path
from typing import Final

from greenroom.abilities.tools.run_checks import RunChecksTool
from greenroom.app.agents.coder import PACK, build_coder
from greenroom.app.clock import SystemClock
from greenroom.app.context import AppContext
from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.app.conversation.start import read_model_name, refuse_unpriced, replace_model, shorten_name
from greenroom.app.messages import translate
from greenroom.app.runs.capabilities import require_delivery
from greenroom.app.runs.checks import read_worktree_setup
from greenroom.app.runs.workspaces import begin_with_change, refuse_large_folder, remove_old_team_runs
from greenroom.app.runtime import Runtime
from greenroom.app.teams.analysis import TeamAnalyst
from greenroom.app.toolset.custom import find_tool_source
from greenroom.app.toolset.toolbox import Toolbox, ToolSource
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import Bug
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check, CheckObserver
from greenroom.core.rules.intents import AddTask, StagePlan, SubtaskPlan
from greenroom.core.state.spec import AgentSpec, TurnPolicy
from greenroom.core.state.step import Work
from greenroom.runs import checkout
from greenroom.runs.checker import ProjectChecks
from greenroom.runs.checkout import Checkout
from greenroom.runs.delivery import REQUEST_KEY
from greenroom.runs.verdict import BASELINE, CONFIRM_UNVERIFIED, DELIVER, HAND_IN, MERGE, MERGE_QUEUE, SETTLE_CONFLICT
from greenroom.runs.workspace import DEFAULT_RUN_FLAGS, RunFlags
from greenroom.teamwork.hand_in import PLANNER, SEND_BACK, build_report_schema
from greenroom.teamwork.ladder import ANSWER, PROPOSE
from greenroom.teamwork.plan import Plan, PlannedSubtask, Strategy
from greenroom.teamwork.plan_graph import BASELINE_SUBTASK, SPLIT_SUBTASK, VERIFY_SUBTASK, add_barriers

LEAD: Final = AgentId("lead")
"""Manages the task of a team run, verifies the whole and mends what fails."""

SPLITTER: Final = PLANNER
"""Splits the code when the design is there, and sends findings of reviews back."""

CHECKS: Final = AgentId("checks")
"""Runs the checks on the base commit, while the specialists work."""

OPEN_WORKSPACE: Final = "open_workspace"
SPLIT: Final = "split_code"
ARCHITECT: Final = "architect"
CODE_WRITER: Final = "code-writer"
SYSTEM_AGENTS: Final = (
    AgentSpec(name=CHECKS, role="runs the checks", kind="system"),
    AgentSpec(name=SPLITTER, role="changes the plan", kind="system", tools=(SPLIT, SEND_BACK)),
    AgentSpec(name=MERGE_QUEUE, role="merges the work", kind="system", tools=(MERGE, SETTLE_CONFLICT)),
)
"""Greenroom's own members of a team. Steps of others may ask one for its `tools`."""

MERGERS: Final = (AgentId("merger"), AgentId("merger-2"))
"""Propose merges of conflicts, side by side."""

MAX_MERGER_TURNS: Final = 4


def equip_specialists(
    app: AppContext, tools: Toolbox, profiles: Iterable[AgentSpec], *, model: str, language: str
) -> dict[str, AgentSpec]:
    """Return profiles as members of a team run, by name: with tools, a model, and the report that they end with."""
    specialists = dict[str, AgentSpec]()
    for spec in profiles:
        own_model = read_model_name(spec)
        protocol = spec.cooperation.protocol if spec.cooperation is not None else ""
        specialists[spec.name] = evolve(
            replace_model(tools.equip(spec), app.resolve_alias(own_model) if own_model else model),
            style="converse",
            skills=(),
            calls=(),
            manager=False,
            proof=HAND_IN,
            answer=build_report_schema(protocol),
            language=spec.language or language,
        )
    return specialists


def build_team_toolbox(app: AppContext, root: Path, checks: Sequence[Check], tool_source: ToolSource) -> Toolbox:
    """Return the tools that profiles can have, by name and group."""
    tools = app.toolset(root, tool_source=tool_source).toolbox
    return Toolbox((*tools, RunChecksTool(ProjectChecks(checks, _refuse_checkout))), tools.notes)


def _refuse_checkout(_: Sequence[str], __: CheckObserver) -> AbstractAsyncContextManager[Checkout]:
    raise Bug("Only the tools of a subtask run checks.")


def name_members(subtasks: Iterable[PlannedSubtask], taken: Iterable[str] = ()) -> Mapping[str, AgentId]:
    """Name the agent of each subtask after its profile and a number: `code-writer-1`, `code-writer-2`."""
    used, names = set(taken), dict[str, AgentId]()
    for subtask in subtasks:
        numbered = (AgentId(f"{subtask.agent}-{number}") for number in count(1))
        names[subtask.id] = next(name for name in numbered if name not in used)
        used.add(names[subtask.id])
    return names


def plan_subtask(
    subtask: PlannedSubtask,
    agent: AgentId,
    needs: Sequence[str],
    first_steps: tuple[Work, ...],
    own: Sequence[SubtaskPlan],
) -> SubtaskPlan:
    """Return a specialist's subtask, which begins in its worktree.

    With a split among Greenroom's `own` subtasks, a code writer waits for it. A baseline that ends with a question is
    waited for: nothing is paid before it.
    """
    *opening, converse = first_steps
    waits = [part.name for part in own if part.name == SPLIT_SUBTASK and subtask.agent == CODE_WRITER]
    waits += [part.name for part in own if part.work[-1].executor == CONFIRM_UNVERIFIED and not needs]
    return SubtaskPlan(
        name=subtask.id,
        title=subtask.name,
        duty=subtask.description,
        agent=agent,
        needs=(*needs, *waits),
        required=subtask.required,
        priority=subtask.priority,
        tries=subtask.tries,
        seconds=subtask.seconds,
        writes=subtask.writes,
        work=(*opening, evolve(converse, intention=subtask.name)),
    )


def build_merger(name: str, language: str) -> AgentSpec:
    """Return an agent that proposes merges. It has no tools, and code looks at its answer."""
    return AgentSpec(
        name=name,
        role="merges conflicts",
        prompt=PACK.render(language, "merger", {}),
        proof=PROPOSE,
        answer=ANSWER,
        turn=TurnPolicy(rounds=MAX_MERGER_TURNS),
        language=language,
    )


def _make_step(executor: str, intention: str, **arguments: str) -> Work:
    return Work(type="tool", executor=executor, intention=intention, instruction_content=dict(arguments))


def build_stage(
    plan: Plan,
    agents: Mapping[str, AgentId],
    *,
    splits: bool,
    setup: bool,
    strategy: Strategy = "priority-based",
    confirms: bool = False,
    wanted: RunFlags = DEFAULT_RUN_FLAGS,
) -> StagePlan:
    """Return the only stage of a team run: the plan's subtasks, and Greenroom's own.

    The checks run on the base commit beside the work. With `confirms` they run before it, and if nothing can verify the
    change, a person is asked or the run ends. With `splits`, the code is split when the design is there. At the
    end the whole is verified, also if a subtask failed and the others continue.
    """
    needs, names = add_barriers(plan, strategy), (OPEN_WORKSPACE, *((checkout.NAME,) if setup else ()))
    opening = tuple(_make_step(name, "Open the worktree.") for name in names)
    checks = (*opening, _make_step(BASELINE, "Run the checks."))
    confirm = (_make_step(CONFIRM_UNVERIFIED, "See whether anything can verify the change."),) if confirms else ()
    own = [_plan_own(BASELINE_SUBTASK, CHECKS, (*checks, *confirm))]
    if splits:
        designs = tuple(subtask.id for subtask in plan.subtasks if subtask.agent == ARCHITECT)
        own.append(_plan_own(SPLIT_SUBTASK, SPLITTER, (_make_step(SPLIT, "Split the code."),), designs))
    first_steps = (*opening, Work(type="skill", executor="converse", instruction_content=wanted.data))
    work = [plan_subtask(subtask, agents[subtask.id], needs[subtask.id], first_steps, own) for subtask in plan.subtasks]
    judge = {"said": translate("teams.integrated"), REQUEST_KEY: translate("teams.mend", request=plan.request)}
    verify = (*opening, _make_step(DELIVER, "Judge the whole.", **judge))
    everything = tuple(subtask.name for subtask in (*own, *work))
    return StagePlan(
        intention=plan.request,
        subtasks=(*own, *work, evolve(_plan_own(VERIFY_SUBTASK, LEAD, verify, everything), anyway=True)),
        on_failure=plan.on_failure,
        concurrency=plan.max_concurrent,
    )


def _plan_own(name: str, agent: AgentId, work: tuple[Work, ...], needs: tuple[str, ...] = ()) -> SubtaskPlan:
    title = translate(f"plan.name_{name}")
    return SubtaskPlan(name=name, title=title, duty=title, agent=agent, needs=needs, work=work)


async def create_team_run(
    runtime: Runtime,
    plan: Plan,
    profiles: Mapping[str, AgentSpec],
    *,
    model: str,
    language: str,
    workspace: str,
    limits: Limits,
    splits: bool = True,
    strategy: Strategy = "priority-based",
    setup: bool = False,
    confirms: bool = False,
    wanted: RunFlags = DEFAULT_RUN_FLAGS,
    team_id: TeamId | None = None,
) -> TeamId:
    """Create a team run from a checked plan; it does not start yet. `profiles` are equipped, by name.

    With `splits`, the design of an architect can split the code if that is one subtask. `team_id` sets its id.
    """
    agents = name_members(plan.subtasks)
    lead = evolve(require_delivery(replace_model(build_coder(language), model)), name=LEAD)
    members = [(LEAD, lead), *((AgentId(spec.name), spec) for spec in SYSTEM_AGENTS)]
    members += [(agents[subtask.id], profiles[subtask.agent]) for subtask in plan.subtasks]
    members += [(name, replace_model(build_merger(name, language), model)) for name in MERGERS]
    by_profile = Counter(subtask.agent for subtask in plan.subtasks)
    splits = splits and by_profile[ARCHITECT] > 0 and by_profile[CODE_WRITER] == 1
    stage = build_stage(plan, agents, splits=splits, setup=setup, strategy=strategy, confirms=confirms, wanted=wanted)
    services = tuple(AgentId(spec.name) for spec in SYSTEM_AGENTS if spec.tools)
    task = AddTask(
        name=shorten_name(plan.request),
        intention=plan.request,
        manager=LEAD,
        group=(*services, *MERGERS),
        stages=(stage,),
    )
    return await runtime.create(
        TEAM_RUN,
        members,
        capabilities_name=TEAM_RUN,
        workspace=workspace,
        limits=limits,
        first_intents=(task,),
        team_id=team_id,
    )


async def create_planned_run(
    app: AppContext,
    analyst: TeamAnalyst,
    plan: Plan,
    limits: Limits,
    wanted: RunFlags = DEFAULT_RUN_FLAGS,
    *,
    follows: TeamId | None = None,
) -> TeamId:
    """Create the team run of a checked plan in the current workspace, with its settings; it does not start yet.

    If it `follows` another run, it begins with the change of that run, and its own change contains it.
    Raise `WorldFault` if no model is configured, or one has no price and `limits` cap the money.
    """
    settings, root = analyst.settings, app.root
    await refuse_large_folder(root)
    tools, model = build_team_toolbox(app, root, (), find_tool_source(root)), analyst.require_model()
    specialists = equip_specialists(app, tools, analyst.profiles.list(), model=model, language=app.language)
    for name in {analyst.model, *(read_model_name(specialists[subtask.agent]) for subtask in plan.subtasks)}:
        refuse_unpriced(app.get_model(name), limits)
    await remove_old_team_runs(app.runtime, settings.keep_days, SystemClock().now())
    former = (await app.runtime.state(follows)).team if follows is not None else None
    return await create_team_run(
        app.runtime,
        evolve(plan, max_concurrent=min(plan.max_concurrent, settings.max_concurrent_agents)),
        specialists,
        model=analyst.model,
        language=app.language,
        workspace=str(root),
        limits=limits.minus(analyst.spent),
        splits=settings.auto_decompose,
        strategy=settings.strategy,
        setup=bool(read_worktree_setup(root, sandboxed=app.is_sandboxed).line),
        confirms=not (wanted.allow_unverified or (app.is_auto_approved and app.is_attended)),
        wanted=wanted,
        team_id=await begin_with_change(former, app.steps) if former is not None else None,
    )
