"""Creates an organisation, finds it again, and updates it from its charter.

One commit creates the team, its managers and people, and the base task of the first manager.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from itertools import count, takewhile
from pathlib import Path
from typing import Final

from greenroom.app.agents.discovery import read_packaged_agent
from greenroom.app.clock import derive_team_id
from greenroom.app.conversation.start import read_model_name, replace_model
from greenroom.app.lookup import resolve_id
from greenroom.app.messages import phrase, translate
from greenroom.app.organisation.charter import Charter, CharterPerson, explain_bad_tool, find_bad_managers
from greenroom.app.organisation.phrases import BASE_TASK, BUILTIN_ROLES, DEFAULT_MANAGER, ORGANISATION_KIT
from greenroom.app.runtime import ORPHAN_CHECK_S, Runtime
from greenroom.app.settings.schema import LimitSettings
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import RefusedError, RunsElsewhere, StoreFault, WorldFault, make_refusal
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TeamId, is_lookalike
from greenroom.core.base.records import evolve, record
from greenroom.core.rules.intents import AddAgent, AddParticipants, AddTask, ChangeAgent, Intent, SetLimits
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team_state import TeamState

BUILTIN_AGENTS_PACKAGE: Final = "greenroom.app.organisation.staff"
MAX_TASK_DEPTH: Final = 8


def load_builtin_agent(name: str, language: str) -> AgentSpec:
    """Load a built-in agent with instructions in this language."""
    return read_packaged_agent(BUILTIN_AGENTS_PACKAGE, name, language)


def load_builtin_agents(language: str) -> Mapping[str, AgentSpec]:
    """Load all built-in agents by name, including the manager."""
    return {name: load_builtin_agent(name, language) for name in (DEFAULT_MANAGER, *BUILTIN_ROLES)}


def merge_agents(language: str, workspace_specs: Mapping[str, AgentSpec]) -> Mapping[str, AgentSpec]:
    """Merge built-in agents with those of the workspace, which win over built-in ones of the same name."""
    workspace_agents = {
        name: evolve(spec, language=spec.language or language) for name, spec in workspace_specs.items()
    }
    return {**load_builtin_agents(language), **workspace_agents}


@record
class OrganisationSpec:
    """The first members of an organisation, with its limits, workspace and language."""

    name: str
    managers: tuple[AgentSpec, ...]
    people: tuple[AgentSpec, ...]
    limits: Limits
    language: str
    workspace: str

    @property
    def members(self) -> tuple[tuple[AgentId, AgentSpec], ...]:
        """The managers, then the people. The first manager manages the base task."""
        return tuple((AgentId(spec.name), spec) for spec in (*self.managers, *self.people))


def build_organisation_spec(
    charter: Charter,
    agents: Mapping[str, AgentSpec],
    tools: Toolbox,
    *,
    resolve_model: Callable[[str], str],
    caps: LimitSettings,
) -> OrganisationSpec:
    """Build the organisation of a charter. `resolve_model` resolves model names; `caps` are the person's limits."""
    faults = find_bad_managers(charter, agents, charter.language)
    if faults:
        raise WorldFault("\n".join(faults))
    managers = tuple(
        prepare_agent(agents[name], tools, resolve_model=resolve_model, model=charter.model)
        for name in charter.managers
    )
    language = charter.language or managers[0].language
    return OrganisationSpec(
        name=charter.name,
        managers=managers,
        people=tuple(build_person(member, tools, language) for member in charter.people),
        limits=evolve(lower_limits(charter.caps, caps).limits, depth=MAX_TASK_DEPTH),
        language=language,
        workspace=str(charter.path.parent.parent.parent),
    )


def prepare_agent(spec: AgentSpec, tools: Toolbox, *, resolve_model: Callable[[str], str], model: str) -> AgentSpec:
    """Return an agent with its tools and its resolved model."""
    return replace_model(tools.equip(spec), resolve_model(read_model_name(spec) or model))


def build_person(member: CharterPerson, tools: Toolbox, language: str) -> AgentSpec:
    """Build a person as an agent without a model. Unknown tools are left out."""
    tool_names = (
        None if member.tools is None else tuple(name for name in member.tools if not explain_bad_tool(tools, name))
    )
    return AgentSpec(
        name=member.name,
        role=member.role or phrase("founding", "person", language),
        profile=member.profile,
        kind="human",
        tools=tools.default_names if tool_names is None else tool_names,
        language=language,
    )


def lower_limits(wanted: LimitSettings, allowed: LimitSettings) -> LimitSettings:
    """Return the lower of the wanted and the allowed limits."""
    both = {name: (getattr(wanted, name), getattr(allowed, name)) for name in ("cost", "tokens", "time")}
    lowest = {name: min((cap for cap in caps if cap is not None), default=None) for name, caps in both.items()}
    return evolve(allowed, **lowest)


async def create_organisation(runtime: Runtime, organisation: OrganisationSpec) -> TeamId:
    """Create the organisation, or return the one that another process creates at the same time. It does not start yet.

    Its id depends on its name and workspace, so concurrent callers create the same team. After an organisation is over,
    the next one gets another number.
    """
    number = 0
    while True:
        number += 1
        team = derive_team_id(ORGANISATION_KIT, organisation.workspace, organisation.name, str(number))
        if _is_open(await _create_or_read(runtime, organisation, team), organisation.workspace, organisation.name):
            return team


def _is_open(state: TeamState, workspace: str, name: str) -> bool:
    identity = (state.team.kit, state.team.name, state.team.workspace)
    return identity == (ORGANISATION_KIT, name, workspace) and BASE_TASK in state.tasks


async def _create_or_read(runtime: Runtime, organisation: OrganisationSpec, team: TeamId) -> TeamState:
    """Create the team with this id, or wait for the process that creates it, and return its state."""
    while True:
        try:
            await _create_team(runtime, organisation, team)
            await runtime.stop(team)
        except RunsElsewhere:
            await _wait_for_first_commit(runtime, team)
        except RefusedError as refused:
            if refused.rejection.code != "team_exists":
                raise
        if (await runtime.log.head(team)).version:
            return await runtime.state(team)


async def _wait_for_first_commit(runtime: Runtime, team: TeamId) -> None:
    """Wait briefly for another process's first commit. If that process dies, the caller creates the team."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ORPHAN_CHECK_S):
            async for _ in runtime.log.tail(team):
                return


async def _create_team(runtime: Runtime, organisation: OrganisationSpec, team: TeamId) -> None:
    group = tuple(name for name, _ in organisation.members)
    base = AddTask(
        name=phrase("founding", "base_task", organisation.language),
        intention=phrase("founding", "base_goal", organisation.language),
        manager=group[0],
        group=group,
        driver="manager",
        standing=True,
    )
    await runtime.create(
        organisation.name,
        organisation.members,
        capabilities_name=ORGANISATION_KIT,
        workspace=organisation.workspace,
        limits=organisation.limits,
        first_intents=(base,),
        team_id=team,
    )


async def list_organisations(runtime: Runtime) -> AsyncIterator[tuple[TeamId, TeamState]]:
    """Yield all open organisations, newest first. Skip logs that cannot be read."""
    for info in reversed(await runtime.log.streams()):
        with suppress(StoreFault):
            state = await runtime.state(TeamId(info.stream)) if info.head.version else None
            if state is not None and state.team.kit == ORGANISATION_KIT and BASE_TASK in state.tasks:
                yield TeamId(info.stream), state


async def find_team(runtime: Runtime, root: Path, name: str) -> TeamId | None:
    """Return the open organisation of a charter, or None. Only the ids that follow from its name and workspace are
    read."""
    for team in await _list_team_ids(runtime, str(root), name):
        with suppress(StoreFault):
            if _is_open(await runtime.state(team), str(root), name):
                return team
    return None


async def is_over(runtime: Runtime, root: Path, name: str) -> bool:
    """Whether the charter's organisation is over and no new one exists."""
    return bool(await _list_team_ids(runtime, str(root), name)) and await find_team(runtime, root, name) is None


async def find_elsewhere(runtime: Runtime, root: Path, name: str) -> list[tuple[TeamId, Path]]:
    """Return the organisations of the same name in other workspaces, newest first."""
    open_teams = [(id_, state.team) async for id_, state in list_organisations(runtime)]
    return [
        (id_, Path(team.workspace)) for id_, team in open_teams if team.name == name and team.workspace != str(root)
    ]


async def _list_team_ids(runtime: Runtime, workspace: str, name: str) -> list[TeamId]:
    known_ids = {info.stream for info in await runtime.log.streams() if info.head.version}
    ids = (derive_team_id(ORGANISATION_KIT, workspace, name, str(number)) for number in count(1))
    return list(takewhile(known_ids.__contains__, ids))


async def find_team_by_id(runtime: Runtime, name: str) -> TeamId | None:
    """Return an organisation by its id, from any workspace, or None if the id is not an organisation's."""
    try:
        team = (await resolve_id(runtime, name)).team
    except RefusedError:
        return None
    state = await runtime.state(team)
    if state.team.kit != ORGANISATION_KIT:
        return None
    if BASE_TASK not in state.tasks:
        why = translate("organisation.team_over", name=state.team.name, team=team)
        raise make_refusal("team_over", why, translate("organisation.see_what_it_did", team=team))
    return team


async def update_organisation(
    runtime: Runtime, team: TeamId, organisation: OrganisationSpec, path: str
) -> tuple[str, ...]:
    """Update an organisation from its charter at `path`. Return a sentence for each refused member and each surprise.
    Several processes can update at the same time: a refused update is planned again."""
    state = before = await runtime.state(team)
    while intents := plan_update(state, organisation):
        try:
            await runtime.ask(team, *intents)
            break
        except RefusedError:
            state = await runtime.state(team)
            if plan_update(state, organisation) == intents:
                raise
    return (*find_taken_names(state, organisation, path), *_find_surprises(state, before, organisation, path))


def plan_update(state: TeamState, organisation: OrganisationSpec) -> tuple[Intent, ...]:
    """Return the intents of the update. Agents missing in the charter stay, because they may have work."""
    members = [(name, spec) for name, spec in organisation.members if _find_name_holder(state, name, spec) is None]
    missing = tuple(name for name, _ in members if name not in state.tasks[BASE_TASK].group)
    changed = [(name, spec) for name, spec in members if name in state.agents and spec != state.agents[name].spec]
    limits = state.budgets[TEAM_BUDGET].limits
    return (
        *(AddAgent(agent_id=name, spec=spec) for name, spec in members if name not in state.agents),
        *((AddParticipants(task_id=BASE_TASK, agents=missing),) if missing else ()),
        *(ChangeAgent(agent_id=name, spec=spec) for name, spec in changed),
        *((SetLimits(budget_id=TEAM_BUDGET, limits=organisation.limits),) if limits != organisation.limits else ()),
    )


def find_taken_names(state: TeamState, organisation: OrganisationSpec, path: str) -> list[str]:
    """Return who cannot join because an agent already has, or had, that name."""
    sentences = list[str]()
    for name, spec in organisation.members:
        other = _find_name_holder(state, name, spec)
        if other is not None:
            why = "name_taken" if other in state.agents else "name_left"
            variables = {"who": name, "other": other, "team": organisation.name, "path": path}
            sentences.append(phrase("founding", why, organisation.language, **variables))
    return sentences


def _find_surprises(state: TeamState, before: TeamState, organisation: OrganisationSpec, path: str) -> list[str]:
    """Report unexpected results: the first manager never changes, and a new folder may get an old organisation. The
    second case shows when none of the charter's people was a member."""
    sentences, new = list[str](), organisation.managers[0].name
    variables = {"team": organisation.name, "id": state.team.team_id, "path": path}
    if state.tasks[BASE_TASK].manager != new:
        old = state.tasks[BASE_TASK].manager
        sentences.append(phrase("founding", "other_manager", organisation.language, old=old, new=new, **variables))
    people = sorted(name for name, agent in before.agents.items() if agent.spec.kind == "human")
    if not any(spec.name in people for spec in organisation.people):
        sentences.append(
            phrase("founding", "other_people", organisation.language, people=", ".join(people), **variables)
        )
    return sentences


def _find_name_holder(state: TeamState, name: AgentId, spec: AgentSpec) -> AgentId | None:
    """Return another agent that has this name or one that looks like it."""
    agent = state.agents.get(name)
    if agent is not None:
        return None if (agent.spec.kind, agent.spec.style) == (spec.kind, spec.style) else name
    return next((other for other in (*state.agents, *state.retired) if is_lookalike(other, name)), None)
