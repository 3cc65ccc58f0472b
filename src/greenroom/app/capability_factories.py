"""All capability factories of this process. A team's log names the one it needs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.abilities.skills.planned.skill import Skill
from greenroom.abilities.skills.planned.skills import build_planned_skills
from greenroom.abilities.tools.tool import wrap_long_tail
from greenroom.app.agents.specs import list_own_skills
from greenroom.app.context import AppContext
from greenroom.app.conversation.capability_names import CHANGE_RUN, RESEARCH, TEAM_RUN
from greenroom.app.conversation.factories import make_conversation_factories
from greenroom.app.conversation.start import read_model_name
from greenroom.app.library.run_result import REFUSING_FACTORIES
from greenroom.app.organisation.charter import find_charter, list_charters
from greenroom.app.organisation.creation import merge_agents, prepare_agent
from greenroom.app.organisation.phrases import BASE_TASK, ORGANISATION_KIT
from greenroom.app.text_reader import TextReader
from greenroom.app.toolset.manual_call import MANUAL_CALL, make_manual_call_capabilities
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.core.base.errors import RefusedError, WorldFault
from greenroom.core.ports.executor import Capabilities, CapabilitiesFactory
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team import Team


def make_capability_factories(app: AppContext) -> Mapping[str, CapabilitiesFactory]:
    """Return the factories by name. The tools of runs are loaded when a run starts."""

    async def make_run_capabilities(team: Team) -> Capabilities:
        from greenroom.app.runs.capabilities import build_run_capabilities

        return await build_run_capabilities(app, team)

    async def make_research(team: Team) -> Capabilities:
        from greenroom.app.research.desk import make_research_capabilities

        return await make_research_capabilities(app, team)

    async def make_team_capabilities(team: Team) -> Capabilities:
        from greenroom.app.teams.capabilities import build_team_capabilities

        return await build_team_capabilities(app, team)

    conversation_factories = make_conversation_factories(
        app, app.notes, app.toolset, lambda: app.settings, lambda: app.skills
    )
    return {
        CHANGE_RUN: make_run_capabilities,
        TEAM_RUN: make_team_capabilities,
        RESEARCH: make_research,
        ORGANISATION_KIT: partial(make_organisation_capabilities, app),
        **conversation_factories,
        MANUAL_CALL: partial(make_manual_call_capabilities, app.toolset),
        **REFUSING_FACTORIES,
    }


async def make_organisation_capabilities(app: AppContext, team: Team) -> Capabilities:
    """Make the capabilities of an organisation when it starts. Raise `WorldFault` if it is over."""
    state = await app.runtime.state(team.team_id)
    if BASE_TASK not in state.tasks:
        raise WorldFault("organisation.organisation_over", name=team.name)
    founder_spec = state.agents[state.tasks[BASE_TASK].manager].spec  # all others start with its language and model
    toolset = app.toolset(Path(team.workspace))
    own_skills = [
        Skill(name=skill.name, use_guide=skill.description, skill_prompt=skill.body)
        for name in sorted({name for agent in state.agents.values() for name in list_own_skills(agent.spec)})
        if (skill := app.skills.get(name)) is not None
    ]
    planning_skills = build_planned_skills(
        app, toolset.specs, reader=TextReader(), project=app.notes(), extra=own_skills
    )
    conversation_skills = build_conversation_skills(
        app,
        toolset.specs,
        reader=TextReader(),
        project=app.notes(),
        filter_above=app.settings.agents.filter_tools_above,
        skills=app.skills,
    )
    # Of two skills with one name, the planning agents' skill wins: the other answers by tool calls.
    skills = {skill.name: skill for skill in (*conversation_skills, *planning_skills)}
    return Capabilities(
        (*skills.values(), *map(wrap_long_tail, toolset.executors)),
        agent_specs=tuple(_list_agent_specs(app, team, founder_spec, toolset.toolbox)),
        on_close=toolset.close,
        approvals_expire=app.get_approval_timeout(),
    )


def _list_agent_specs(app: AppContext, team: Team, founder_spec: AgentSpec, tools: Toolbox) -> Iterator[AgentSpec]:
    """Return the agents that managers can create: no managers, and none without an available model. If the charter
    exists and lists agents, return only those."""
    root = Path(team.workspace)
    allowed_names = find_charter(root, team.name).blueprints if team.name in list_charters(root) else ()
    for name, spec in merge_agents(founder_spec.language, app.agents().specs).items():
        if spec.manager or (allowed_names and name not in allowed_names):
            continue
        try:
            yield prepare_agent(spec, tools, resolve_model=app.resolve_alias, model=read_model_name(founder_spec))
        except (WorldFault, RefusedError) as fault:
            logging.getLogger(__name__).warning("The agent %r cannot be created: %s", name, fault)
