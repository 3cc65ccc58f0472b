"""Founding an organisation, finding it again, and keeping it as its charter says.

It is founded in one commit: the team, its managers and people, then the base task with the first manager.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from importlib.resources import as_file, files
from itertools import count, takewhile
from pathlib import Path
from typing import Final

from greenroom.app.agents.front_matter import read_sheet
from greenroom.app.agents.specs import spec_of
from greenroom.app.clock import team_id_for
from greenroom.app.conversation.start import model_of, voiced
from greenroom.app.lookup import find
from greenroom.app.messages import LANGUAGES, phrase
from greenroom.app.organisation.charter import Charter, Someone, bad_managers, bad_tool
from greenroom.app.organisation.words import BASE, KIT, MANAGER, ROLES
from greenroom.app.runtime import ORPHANED_AFTER, Runtime
from greenroom.app.settings.schema import Caps
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import Refused, Rejected, RunsElsewhere, StoreFault, WorldFault
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TeamId, looks_like
from greenroom.core.base.records import evolve, record
from greenroom.core.rules.intents import AddAgent, AddParticipants, AddTask, ChangeAgent, Intent, SetLimits
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.world import World

STAFF: Final = "greenroom.app.organisation.staff"
DEPTH: Final = 8
"""How deep tasks may be nested."""


def house_agent(name: str, language: str) -> AgentSpec:
    """A built-in agent, told of its work in this language."""
    spoken = language if language in LANGUAGES else LANGUAGES[0]
    with as_file(files(STAFF) / spoken / f"{name}.md") as path:
        sheet = read_sheet(path)
    return evolve(spec_of(sheet.keys().values, prompt=sheet.text, default_name=name), language=spoken)


def house_staff(language: str) -> Mapping[str, AgentSpec]:
    """All built-in agents by name, with the manager."""
    return {name: house_agent(name, language) for name in (MANAGER, *ROLES)}


def all_staff(language: str, others: Mapping[str, AgentSpec]) -> Mapping[str, AgentSpec]:
    """With those of the workspace, which go before built-in ones of the same name."""
    own = {name: evolve(spec, language=spec.language or language) for name, spec in others.items()}
    return {**house_staff(language), **own}


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
        """The managers first, of whom the first manages the base task."""
        return tuple((AgentId(spec.name), spec) for spec in (*self.managers, *self.people))


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
        people=tuple(person(someone, tools, language) for someone in charter.people),
        limits=evolve(lower(charter.caps, caps).limits, depth=DEPTH),
        language=language,
        workspace=str(charter.path.parent.parent.parent),
    )


def ready(spec: AgentSpec, tools: Toolbox, *, settled: Callable[[str], str], model: str) -> AgentSpec:
    """An agent with its tools by name and with the model that it asks from now on."""
    return voiced(tools.equipped(spec), settled(model_of(spec) or model))


def person(someone: Someone, tools: Toolbox, language: str) -> AgentSpec:
    """A person as an agent without a model. Tools that are not there are left out."""
    named = None if someone.tools is None else tuple(name for name in someone.tools if not bad_tool(tools, name))
    return AgentSpec(
        name=someone.name,
        role=someone.role or phrase("founding", "person", language),
        profile=someone.profile,
        kind="human",
        tools=tools.usual if named is None else named,
        language=language,
    )


def lower(asked: Caps, allowed: Caps) -> Caps:
    """What is asked for, as far as it is allowed."""
    both = {name: (getattr(asked, name), getattr(allowed, name)) for name in ("cost", "tokens", "time")}
    least = {name: min((cap for cap in caps if cap is not None), default=None) for name, caps in both.items()}
    return evolve(allowed, **least)


async def found(runtime: Runtime, founders: Founders) -> TeamId:
    """Make it, or find it made by another process at the same time. It does not work yet, and is not owned here.

    Its id follows from its name and workspace, and the log has an id once: so all who come make the same one. One that
    is over stays so, and the next has another number.
    """
    number = 0
    while True:
        number += 1
        team = team_id_for(KIT, founders.workspace, founders.name, str(number))
        if _is_open(await _made(runtime, founders, team), founders.workspace, founders.name):
            return team


def _is_open(world: World, workspace: str, name: str) -> bool:
    """Whether this team is that organisation, and not over."""
    its = (world.team.kit, world.team.name, world.team.workspace)
    return its == (KIT, name, workspace) and BASE in world.tasks


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
    with suppress(TimeoutError):
        async with asyncio.timeout(ORPHANED_AFTER):
            async for _ in runtime.log.tail(team):
                return


async def _create(runtime: Runtime, founders: Founders, team: TeamId) -> None:
    group = tuple(name for name, _ in founders.members)
    base = AddTask(
        name=phrase("founding", "base_task", founders.language),
        intention=phrase("founding", "base_goal", founders.language),
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


async def organisations(runtime: Runtime) -> AsyncIterator[tuple[TeamId, World]]:
    """All that are not over, the newest first. A log that cannot be read hides no other."""
    for info in reversed(await runtime.log.streams()):
        with suppress(StoreFault):
            world = await runtime.world(TeamId(info.stream)) if info.head.version else None
            if world is not None and world.team.kit == KIT and BASE in world.tasks:
                yield TeamId(info.stream), world


async def founded(runtime: Runtime, root: Path, name: str) -> TeamId | None:
    """The organisation that the charter of this name in this workspace has become; None before it was founded.

    It is the first that is not over of the ids that its name and place give it: no other log is read.
    """
    for team in await _ids(runtime, str(root), name):
        with suppress(StoreFault):
            if _is_open(await runtime.world(team), str(root), name):
                return team
    return None


async def over(runtime: Runtime, root: Path, name: str) -> bool:
    """Whether the charter of this name in this workspace has become one that is over, and no other since then."""
    return bool(await _ids(runtime, str(root), name)) and await founded(runtime, root, name) is None


async def elsewhere(runtime: Runtime, root: Path, name: str) -> list[tuple[TeamId, Path]]:
    """Those of the same name that were founded in other workspaces, the newest first."""
    each = [(id_, world.team) async for id_, world in organisations(runtime)]
    return [(id_, Path(team.workspace)) for id_, team in each if team.name == name and team.workspace != str(root)]


async def _ids(runtime: Runtime, workspace: str, name: str) -> list[TeamId]:
    """Those of the ids that its name and place give it that are there."""
    known = {info.stream for info in await runtime.log.streams() if info.head.version}
    ids = (team_id_for(KIT, workspace, name, str(number)) for number in count(1))
    return list(takewhile(known.__contains__, ids))


async def found_by_id(runtime: Runtime, name: str) -> TeamId | None:
    """An organisation by its id, from any workspace; None when it is not such an id."""
    try:
        team = (await find(runtime, name)).team
    except Refused:
        return None
    world = await runtime.world(team)
    if world.team.kit != KIT:
        return None
    if BASE not in world.tasks:
        why = f"The organisation {world.team.name!r} ({team}) is over."
        raise Refused(Rejected(code="team_over", why=why, hint=f"`greenroom show {team}` has what it did."))
    return team


async def renew(runtime: Runtime, team: TeamId, founders: Founders, path: str) -> tuple[str, ...]:
    """Make it what its charter, which lies in `path`, says by now; returns a sentence for each who cannot join, and for
    what may be a surprise.

    Several may do so at once: what is refused because another was quicker is looked at again.
    """
    world = before = await runtime.world(team)
    while wanted := renewed(world, founders):
        try:
            await runtime.ask(team, *wanted)
            break
        except Refused:
            world = await runtime.world(team)
            if renewed(world, founders) == wanted:
                raise
    return (*barred(world, founders, path), *_surprises(world, before, founders, path))


def renewed(world: World, founders: Founders) -> tuple[Intent, ...]:
    """What is to be changed. An agent is not sent away for being missing in a file: it may have work."""
    members = [(name, spec) for name, spec in founders.members if _in_the_way(world, name, spec) is None]
    missing = tuple(name for name, _ in members if name not in world.tasks[BASE].group)
    changed = [(name, spec) for name, spec in members if name in world.agents and spec != world.agents[name].spec]
    limits = world.budgets[TEAM_BUDGET].limits
    return (
        *(AddAgent(agent_id=name, spec=spec) for name, spec in members if name not in world.agents),
        *((AddParticipants(task_id=BASE, agents=missing),) if missing else ()),
        *(ChangeAgent(agent_id=name, spec=spec) for name, spec in changed),
        *((SetLimits(budget_id=TEAM_BUDGET, limits=founders.limits),) if limits != founders.limits else ()),
    )


def barred(world: World, founders: Founders, path: str) -> list[str]:
    """Who of the charter cannot be in it, because a manager made an agent of that name, and a name is used once."""
    found = list[str]()
    for name, spec in founders.members:
        other = _in_the_way(world, name, spec)
        if other is not None:
            why = "name_taken" if other in world.agents else "name_left"
            known = {"who": name, "other": other, "team": founders.name, "path": path}
            found.append(phrase("founding", why, founders.language, **known))
    return found


def _surprises(world: World, before: World, founders: Founders, path: str) -> list[str]:
    """The first manager stays for good; and a folder made anew has what was founded in the old one, which shows where
    none of its people is the same."""
    found, new = list[str](), founders.managers[0].name
    known = {"team": founders.name, "id": world.team.team_id, "path": path}
    if world.tasks[BASE].manager != new:
        old = world.tasks[BASE].manager
        found.append(phrase("founding", "other_manager", founders.language, old=old, new=new, **known))
    people = sorted(name for name, agent in before.agents.items() if agent.spec.kind == "human")
    if not any(spec.name in people for spec in founders.people):
        found.append(phrase("founding", "other_people", founders.language, people=", ".join(people), **known))
    return found


def _in_the_way(world: World, name: AgentId, spec: AgentSpec) -> AgentId | None:
    """Another agent that has the name, or one that is taken for it."""
    agent = world.agents.get(name)
    if agent is not None:
        return None if (agent.spec.kind, agent.spec.style) == (spec.kind, spec.style) else name
    return next((other for other in (*world.agents, *world.retired) if looks_like(other, name)), None)
