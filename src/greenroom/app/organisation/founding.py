"""Founding an organisation: its managers, its people and the task that never ends.

All of it is one commit: the team, its first agents, then the base task with the first manager, whose stages may run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from greenroom.app.clock import team_id_for
from greenroom.app.hands.toolbox import Toolbox
from greenroom.app.organisation.charter import Charter, Someone
from greenroom.app.organisation.misfits import bad_managers, bad_tool
from greenroom.app.organisation.names import BASE, BASE_GOALS, BASE_NAMES, KIT, in_language
from greenroom.app.runtime import ORPHANED_AFTER, Runtime
from greenroom.app.settings.schema import Caps
from greenroom.app.talks.founding import model_of, voiced
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import Refused, RunsElsewhere, WorldFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import evolve, record
from greenroom.core.rules.intents import AddTask
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.world import World

PERSON: Final = {"en": "a person", "zh": "人类操作员"}
DEPTH: Final = 8
"""How deep tasks may be nested."""


@record
class Founders:
    """Who an organisation begins with, what it may spend, where it works and in which language."""

    name: str
    managers: tuple[AgentSpec, ...]
    people: tuple[AgentSpec, ...]
    limits: Limits
    language: str
    workspace: str

    @property
    def members(self) -> tuple[tuple[AgentId, AgentSpec], ...]:
        """The managers first, of whom the first one manages the base task."""
        return tuple((AgentId(one.name), one) for one in (*self.managers, *self.people))


def founders_of(
    charter: Charter, staff: Mapping[str, AgentSpec], tools: Toolbox, *, settled: Callable[[str], str], caps: Caps
) -> Founders:
    """What a charter means here. `settled` says which model a name means, `caps` what the person allows."""
    bad = bad_managers(charter, staff, charter.language)
    if bad:
        raise WorldFault("\n".join(bad))
    managers = tuple(ready(staff[name], tools, settled=settled, model=charter.model) for name in charter.managers)
    language = charter.language or managers[0].language
    return Founders(
        name=charter.name,
        managers=managers,
        people=tuple(person(one, tools, language) for one in charter.people),
        limits=evolve(lower(charter.caps, caps).limits, depth=DEPTH),
        language=language,
        workspace=str(charter.path.parent.parent.parent),
    )


def ready(spec: AgentSpec, tools: Toolbox, *, settled: Callable[[str], str], model: str) -> AgentSpec:
    """An agent with its tools by name and with the model that it asks from now on."""
    return voiced(tools.equipped(spec), settled(model_of(spec) or model))


def person(one: Someone, tools: Toolbox, language: str) -> AgentSpec:
    """Somebody who is no model. What they do by hand is limited like anybody's; what is not there is left out."""
    named = None if one.tools is None else tuple(name for name in one.tools if not bad_tool(tools, name))
    return AgentSpec(
        name=one.name,
        role=one.role or in_language(PERSON, language),
        profile=one.profile,
        kind="human",
        tools=tools.usual if named is None else named,
        language=language,
    )


def lower(asked: Caps, allowed: Caps) -> Caps:
    """What is asked for, as far as it is allowed."""
    return Caps(
        cost=_least(asked.cost, allowed.cost),
        tokens=_whole(_least(asked.tokens, allowed.tokens)),
        time=_least(asked.time, allowed.time),
    )


def _least(*each: float | None) -> float | None:
    return min((one for one in each if one is not None), default=None)


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


async def found(runtime: Runtime, founders: Founders) -> TeamId:
    """Make it, or find it made by somebody who came at the same time. It does not work yet, and nobody owns it here.

    Its id follows from its name and workspace, and the log has an id once: so whoever comes makes the same one. One
    that is over stays so, and the next has another number.
    """
    number = 0
    while True:
        number += 1
        team = team_id_for(KIT, founders.workspace, founders.name, str(number))
        world = await _made(runtime, founders, team)
        its = (world.team.kit, world.team.name, world.team.workspace)
        if its == (KIT, founders.name, founders.workspace) and BASE in world.tasks:
            return team


async def _made(runtime: Runtime, founders: Founders, team: TeamId) -> World:
    """What the team of this id is, made here or by another process, as soon as it is."""
    while True:
        try:
            await _create(runtime, founders, team)
            await runtime.stop(team)
        except RunsElsewhere:
            await _first_commit(runtime, team)
        except Refused as refused:
            if refused.rejected.code != "team_exists":
                raise
        if (await runtime.log.head(team)).version:
            return await runtime.world(team)


async def _first_commit(runtime: Runtime, team: TeamId) -> None:
    """Wait for what another process commits, for a while: one that dies before it leaves the making to us."""

    async def heard() -> None:
        async for _ in runtime.log.tail(team):
            return

    with suppress(TimeoutError):
        await asyncio.wait_for(heard(), ORPHANED_AFTER)


async def _create(runtime: Runtime, founders: Founders, team: TeamId) -> None:
    group = tuple(name for name, _ in founders.members)
    base = AddTask(
        name=in_language(BASE_NAMES, founders.language),
        intention=in_language(BASE_GOALS, founders.language),
        manager=group[0],
        group=group,
        driver="manager",
        standing=True,
    )
    await runtime.create(
        founders.name,
        founders.members,
        kit=KIT,
        workspace=founders.workspace,
        limits=founders.limits,
        begin=(base,),
        named=team,
    )
