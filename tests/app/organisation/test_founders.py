"""Founding: the managers and people of a charter, the task that never ends, and finding it again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from greenroom.abilities.skills.planned.skills import PLANNED_SKILLS
from greenroom.adapters.storage.memory import MemoryLog, MemoryStore
from greenroom.app.clock import derive_team_id
from greenroom.app.messages import LANGUAGES
from greenroom.app.organisation.charter import Charter, CharterPerson
from greenroom.app.organisation.creation import (
    OrganisationSpec,
    build_organisation_spec,
    create_organisation,
    find_team,
    find_team_by_id,
    list_organisations,
    load_builtin_agent,
    load_builtin_agents,
    lower_limits,
    merge_agents,
)
from greenroom.app.organisation.phrases import BASE_TASK, BUILTIN_ROLES, ORGANISATION_KIT
from greenroom.app.runtime import ORPHAN_CHECK_S, Runtime
from greenroom.app.settings.schema import LimitSettings
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.app.toolset.toolset import build_toolbox
from greenroom.core.base.errors import RefusedError, WorldFault
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve
from greenroom.core.ports.log import Lease, LeaseHolder
from greenroom.core.rules.intents import CancelTask, FinishTask
from greenroom.core.rules.steps import list_skills
from greenroom.core.state.agent import AgentAdded
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.task import TaskCreated, TaskStarted
from greenroom.core.state.team import TeamCreated
from tests.app.organisation.office import ANN, MANAGER, T2, founders, office

CHARTER = Charter(
    name="tea", path=Path("/w/.greenroom/teams/tea.toml"), people=(CharterPerson(name="ann"),), language="en"
)


def meant(
    charter: Charter, others: dict[str, AgentSpec] | None = None, caps: LimitSettings | None = None
) -> OrganisationSpec:
    staff = merge_agents(charter.language, others or {})
    return build_organisation_spec(
        charter, staff, Toolbox(), resolve_model=lambda name: name or "fake:one", caps=caps or LimitSettings()
    )


@pytest_asyncio.fixture
async def runtime() -> AsyncIterator[Runtime]:
    """Return a runtime with an empty log."""
    made = Runtime(MemoryLog())
    yield made
    await made.close()


@pytest.mark.req("MAS-8", "MAS-9", "MAS-35", "MAS-36", "MAS-12")
async def test_first_the_manager_lives_and_then_the_first_task_begins_with_it() -> None:
    async with office() as house:
        events = [told.event async for told in house.runtime.events(house.team)]
        kinds = [type(one) for one in events]
        order = [kinds.index(one) for one in (TeamCreated, AgentAdded, TaskCreated, TaskStarted)]
        assert order == sorted(order)
        first = next(one for one in events if isinstance(one, AgentAdded))
        assert first.agent_id == MANAGER
        base = (await house.state()).tasks[BASE_TASK]
        assert (base.manager, base.standing, base.state) == (MANAGER, True, "running")
        assert set(base.group) >= {MANAGER, ANN}
        assert await house.runtime.log.holder(house.team) is None, "nobody owns it before it is started"


@pytest.mark.req("MAS-8")
@pytest.mark.parametrize(("language", "name"), [("zh", "MAS基础任务进程"), ("en", "MAS base task")])
async def test_the_base_task_is_called_in_the_language_of_its_people_and_only_they_end_it(
    language: str, name: str
) -> None:
    async with office(language) as house:
        assert (await house.state()).tasks[BASE_TASK].name == name
        host = await house.runtime.start(house.team)
        (refused,) = await host.submit(FinishTask(task_id=BASE_TASK), by=MANAGER)
        assert refused is not None
        assert refused.code == "standing"
        await house.runtime.ask(house.team, CancelTask(task_id=BASE_TASK))
        assert BASE_TASK not in (await house.state()).tasks


@pytest.mark.req("MAS-4", "MAS-5")
async def test_the_team_holds_all_agents_and_each_task_has_its_own_group() -> None:
    async with office() as house:
        await house.allot(ANN)
        state = await house.state()
        assert set(state.agents) == {"manager", "wu", "ann", "ben"}
        assert (state.tasks[BASE_TASK].group, state.tasks[T2].group) == (("manager", "ann", "ben"), ("manager", "ann"))


def test_what_a_charter_means() -> None:
    one = meant(evolve(CHARTER, model="strong", caps=LimitSettings(cost=2.0)))
    assert [(name, spec.kind, spec.style) for name, spec in one.members] == [
        ("manager", "llm", "plan"),
        ("ann", "human", "converse"),
    ]
    assert (one.managers[0].llm_config, one.workspace) == ({"model": "strong"}, "/w")
    assert (one.limits.money, one.people[0].role) == (2_000_000, "a person")


def test_all_who_cannot_manage_are_named_and_a_tool_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(WorldFault, match=r"no agent 'a' to manage it[^\n]*\n.*'writer' is not a manager"):
        meant(evolve(CHARTER, managers=("a", "manager", "writer")))
    ann = CharterPerson(name="ann", tools=("read_cod", "read_code"))
    staff, charter = merge_agents("en", {}), evolve(CHARTER, people=(ann,))
    (person,) = build_organisation_spec(
        charter, staff, build_toolbox(tmp_path), resolve_model=str, caps=LimitSettings()
    ).people
    assert person.tools == ("read_code",)


def test_a_charter_spends_no_more_than_the_person_allows() -> None:
    assert lower_limits(LimitSettings(cost=None), LimitSettings(cost=5.0)) == LimitSettings(cost=5.0)
    assert lower_limits(
        LimitSettings(cost=9.0, tokens=10), LimitSettings(cost=5.0, tokens=20, time=3.0)
    ) == LimitSettings(cost=5.0, tokens=10, time=3.0)


def test_the_houses_own_staff_is_the_same_in_every_language_and_can_do_what_it_names(tmp_path: Path) -> None:
    known = {one.name for one in PLANNED_SKILLS}
    tools = {tool.name for tool in build_toolbox(tmp_path)}
    for language in LANGUAGES:
        staff = load_builtin_agents(language)
        assert tuple(staff) == ("manager", *BUILTIN_ROLES)
        for name, spec in staff.items():
            assert (spec.name, spec.style, spec.language, spec.manager) == (name, "plan", language, name == "manager")
            assert all((spec.role, spec.profile, spec.prompt))
            assert set(spec.skills) <= known
            assert set(spec.tools) <= tools
        english = load_builtin_agents("en")
        assert {name: (one.tools, one.skills) for name, one in staff.items()} == {
            name: (one.tools, one.skills) for name, one in english.items()
        }
    assert load_builtin_agent("writer", "xx").language == "en"
    assert {"task_manager", "agent_manager", "ask_info"} <= list_skills(load_builtin_agent("manager", "en"))


async def test_one_that_is_there_is_not_founded_twice_and_one_that_is_over_is_followed_by_another(
    runtime: Runtime,
) -> None:
    first = await create_organisation(runtime, founders())
    assert await create_organisation(runtime, founders()) == first
    assert await create_organisation(runtime, evolve(founders(), workspace="/elsewhere")) != first
    assert await create_organisation(runtime, evolve(founders(), name="coffee")) != first
    await runtime.ask(first, CancelTask(task_id=BASE_TASK))
    second = await create_organisation(runtime, founders())
    assert second != first
    assert await create_organisation(runtime, founders()) == second
    head = await runtime.log.head(second)
    assert await create_organisation(runtime, founders()) == second
    assert await runtime.log.head(second) == head, "who only finds it writes nothing"


async def test_a_team_of_another_kind_with_that_id_is_left_alone(runtime: Runtime) -> None:
    taken = derive_team_id(ORGANISATION_KIT, "", "tea", "1")
    await runtime.create("tea", [(AgentId("a"), AgentSpec(name="a", manager=True))], team_id=taken)
    await runtime.stop(taken)
    team = await create_organisation(runtime, founders())
    assert team != taken
    assert (await runtime.state(taken)).team.kit == ""


async def test_what_cannot_be_founded_is_not_there_and_the_next_one_founds_it(runtime: Runtime) -> None:
    twice = evolve(founders(), people=(founders().people[0], founders().people[0]))
    with pytest.raises(RefusedError, match="taken"):
        await create_organisation(runtime, twice)
    assert [name async for name, _ in list_organisations(runtime)] == []
    team = await create_organisation(runtime, founders())
    assert [name async for name, _ in list_organisations(runtime)] == [team]


async def test_who_comes_while_another_process_founds_it_waits_for_that_and_takes_over_when_it_dies() -> None:
    shared = MemoryStore()
    one, other = Runtime(MemoryLog(shared)), Runtime(MemoryLog(shared))
    try:
        team = derive_team_id(ORGANISATION_KIT, "", "tea", "1")
        await one.log.create(team, 0)
        lease = await one.log.acquire(team, "one")
        assert isinstance(lease, Lease)
        waiting = asyncio.create_task(create_organisation(other, founders()))
        done, _ = await asyncio.wait([waiting], timeout=2 * ORPHAN_CHECK_S)
        assert not done, "the other one may still be about to"
        await one.log.release(lease)
        assert await asyncio.wait_for(waiting, 10) == team
        assert await create_organisation(one, founders()) == team
    finally:
        await one.close()
        await other.close()


class Between(MemoryLog):
    """A log in which something happens just before somebody becomes an owner."""

    work: Callable[[], Awaitable[object]] | None = None

    async def acquire(
        self, stream: str, owner: str, *, force: bool = False, made_at: int | None = None
    ) -> Lease | LeaseHolder:
        """Let it happen, once."""
        work, self.work = self.work, None
        if work is not None:
            await work()
        return await super().acquire(stream, owner, force=force, made_at=made_at)


async def test_what_another_process_has_founded_since_we_looked_is_left_as_it_is() -> None:
    shared = MemoryStore()
    log = Between(shared)
    one, other = Runtime(log), Runtime(MemoryLog(shared))
    log.work = lambda: create_organisation(other, founders())
    try:
        team = await create_organisation(one, founders())
        kinds = [type(told.event) async for told in one.events(team)]
        assert (kinds.count(TeamCreated), kinds.count(TaskCreated)) == (1, 1)
    finally:
        await one.close()
        await other.close()


async def test_an_organisation_is_found_by_name_and_workspace_or_by_its_id(runtime: Runtime) -> None:
    team = await create_organisation(runtime, evolve(founders(), workspace="/w"))
    other = await runtime.create("tea", [(AgentId("a"), AgentSpec(name="a", manager=True))], workspace="/w")
    assert [name async for name, _ in list_organisations(runtime)] == [team]
    assert await find_team(runtime, Path("/w"), "tea") == team
    assert await find_team(runtime, Path("/elsewhere"), "tea") is None
    assert await find_team_by_id(runtime, team[:6]) == team
    assert await find_team_by_id(runtime, other) is None
    assert await find_team_by_id(runtime, "zzz") is None
    await runtime.ask(team, CancelTask(task_id=BASE_TASK))
    assert await find_team(runtime, Path("/w"), "tea") is None
    with pytest.raises(RefusedError, match=r"The organisation 'tea' .* is over"):
        await find_team_by_id(runtime, team)
