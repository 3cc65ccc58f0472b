"""Founding: the managers and people of a charter, the task that never ends, and finding it again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from greenroom.abilities.skills.planned.skills import TWELVE
from greenroom.adapters.storage.memory import Memory, MemoryLog
from greenroom.app.clock import team_id_for
from greenroom.app.messages import LANGUAGES
from greenroom.app.organisation.charter import Charter, Someone
from greenroom.app.organisation.founders import (
    Founders,
    all_staff,
    found,
    found_by_id,
    founded,
    founders_of,
    house_agent,
    house_staff,
    lower,
    organisations,
)
from greenroom.app.organisation.words import BASE, KIT, ROLES
from greenroom.app.runtime import ORPHANED_AFTER, Runtime
from greenroom.app.settings.schema import Caps
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.app.toolset.toolset import toolbox_of
from greenroom.core.base.errors import Refused, WorldFault
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve
from greenroom.core.ports.log import Held, Lease, Snapshot
from greenroom.core.rules.intents import CancelTask, FinishTask
from greenroom.core.rules.steps import skills_of
from greenroom.core.state.agent import AgentAdded
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.task import TaskCreated, TaskStarted
from greenroom.core.state.team import TeamCreated
from tests.app.organisation.office import ANN, MANAGER, T2, founders, office

CHARTER = Charter(name="tea", path=Path("/w/.greenroom/teams/tea.toml"), people=(Someone(name="ann"),), language="en")


def meant(charter: Charter, others: dict[str, AgentSpec] | None = None, caps: Caps | None = None) -> Founders:
    staff = all_staff(charter.language, others or {})
    return founders_of(charter, staff, Toolbox(), settled=lambda name: name or "fake:one", caps=caps or Caps())


@pytest.mark.req("MAS-8", "MAS-9", "MAS-35", "MAS-36", "MAS-12")
async def test_first_the_manager_lives_and_then_the_first_task_begins_with_it() -> None:
    async with office() as house:
        events = [told.event async for told in house.runtime.events(house.team)]
        kinds = [type(one) for one in events]
        order = [kinds.index(one) for one in (TeamCreated, AgentAdded, TaskCreated, TaskStarted)]
        assert order == sorted(order)
        first = next(one for one in events if isinstance(one, AgentAdded))
        assert first.agent_id == MANAGER
        base = (await house.world()).tasks[BASE]
        assert (base.manager, base.standing, base.state) == (MANAGER, True, "running")
        assert set(base.group) >= {MANAGER, ANN}
        assert await house.runtime.log.holder(house.team) is None, "nobody owns it before it is started"


@pytest.mark.req("MAS-8")
@pytest.mark.parametrize(("language", "name"), [("zh", "MAS基础任务进程"), ("en", "MAS base task")])
async def test_the_base_task_is_called_in_the_language_of_its_people_and_only_they_end_it(
    language: str, name: str
) -> None:
    async with office(language) as house:
        assert (await house.world()).tasks[BASE].name == name
        host = await house.runtime.start(house.team)
        (refused,) = await host.submit(FinishTask(task_id=BASE), by=MANAGER)
        assert refused is not None
        assert refused.code == "standing"
        await house.runtime.ask(house.team, CancelTask(task_id=BASE))
        assert BASE not in (await house.world()).tasks


@pytest.mark.req("MAS-4", "MAS-5")
async def test_the_team_holds_all_agents_and_each_task_has_its_own_group() -> None:
    async with office() as house:
        await house.allot(ANN)
        world = await house.world()
        assert set(world.agents) == {"manager", "wu", "ann", "ben"}
        assert (world.tasks[BASE].group, world.tasks[T2].group) == (("manager", "ann", "ben"), ("manager", "ann"))


def test_what_a_charter_means() -> None:
    one = meant(evolve(CHARTER, model="strong", caps=Caps(cost=2.0)))
    assert [(name, spec.kind, spec.style) for name, spec in one.members] == [
        ("manager", "llm", "plan"),
        ("ann", "human", "converse"),
    ]
    assert (one.managers[0].llm_config, one.workspace) == ({"model": "strong"}, "/w")
    assert (one.limits.money, one.people[0].role) == (2_000_000, "a person")


def test_all_who_cannot_manage_are_named_and_a_tool_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(WorldFault, match=r"'a', so it cannot manage[^\n]*\n.*'writer' is no manager"):
        meant(evolve(CHARTER, managers=("a", "manager", "writer")))
    ann = Someone(name="ann", tools=("read_cod", "read_code"))
    staff, charter = all_staff("en", {}), evolve(CHARTER, people=(ann,))
    (person,) = founders_of(charter, staff, toolbox_of(tmp_path), settled=str, caps=Caps()).people
    assert person.tools == ("read_code",)


def test_a_charter_spends_no_more_than_the_person_allows() -> None:
    assert lower(Caps(cost=None), Caps(cost=5.0)) == Caps(cost=5.0)
    assert lower(Caps(cost=9.0, tokens=10), Caps(cost=5.0, tokens=20, time=3.0)) == Caps(cost=5.0, tokens=10, time=3.0)


def test_the_houses_own_staff_is_the_same_in_every_language_and_can_do_what_it_names(tmp_path: Path) -> None:
    known = {one.name for one in TWELVE}
    tools = {tool.name for tool in toolbox_of(tmp_path)}
    for language in LANGUAGES:
        staff = house_staff(language)
        assert tuple(staff) == ("manager", *ROLES)
        for name, spec in staff.items():
            assert (spec.name, spec.style, spec.language, spec.manager) == (name, "plan", language, name == "manager")
            assert all((spec.role, spec.profile, spec.prompt))
            assert set(spec.skills) <= known
            assert set(spec.tools) <= tools
        english = house_staff("en")
        assert {name: (one.tools, one.skills) for name, one in staff.items()} == {
            name: (one.tools, one.skills) for name, one in english.items()
        }
    assert house_agent("writer", "xx").language == "en"
    assert {"task_manager", "agent_manager", "ask_info"} <= skills_of(house_agent("manager", "en"))


async def test_one_that_is_there_is_not_founded_twice_and_one_that_is_over_is_followed_by_another() -> None:
    runtime = Runtime(MemoryLog())
    try:
        first = await found(runtime, founders())
        assert await found(runtime, founders()) == first
        assert await found(runtime, evolve(founders(), workspace="/elsewhere")) != first
        assert await found(runtime, evolve(founders(), name="coffee")) != first
        await runtime.ask(first, CancelTask(task_id=BASE))
        second = await found(runtime, founders())
        assert second != first
        assert await found(runtime, founders()) == second
        head = await runtime.log.head(second)
        assert await found(runtime, founders()) == second
        assert await runtime.log.head(second) == head, "who only finds it writes nothing"
    finally:
        await runtime.close()


async def test_a_team_of_another_kind_with_that_id_is_left_alone() -> None:
    runtime = Runtime(MemoryLog())
    try:
        taken = team_id_for(KIT, "", "tea", "1")
        await runtime.create("tea", [(AgentId("a"), AgentSpec(name="a", manager=True))], named=taken)
        await runtime.stop(taken)
        team = await found(runtime, founders())
        assert team != taken
        assert (await runtime.world(taken)).team.kit == ""
    finally:
        await runtime.close()


async def test_what_cannot_be_founded_is_not_there_and_the_next_one_founds_it() -> None:
    runtime = Runtime(MemoryLog())
    try:
        twice = evolve(founders(), people=(founders().people[0], founders().people[0]))
        with pytest.raises(Refused, match="taken"):
            await found(runtime, twice)
        assert [name async for name, _ in organisations(runtime)] == []
        team = await found(runtime, founders())
        assert [name async for name, _ in organisations(runtime)] == [team]
    finally:
        await runtime.close()


async def test_who_comes_while_another_process_founds_it_waits_for_that_and_takes_over_when_it_dies() -> None:
    shared = Memory()
    one, other = Runtime(MemoryLog(shared)), Runtime(MemoryLog(shared))
    try:
        team = team_id_for(KIT, "", "tea", "1")
        await one.log.create(team, 0)
        lease = await one.log.acquire(team, "one")
        assert isinstance(lease, Lease)
        waiting = asyncio.create_task(found(other, founders()))
        done, _ = await asyncio.wait([waiting], timeout=2 * ORPHANED_AFTER)
        assert not done, "the other one may still be about to"
        await one.log.release(lease)
        assert await asyncio.wait_for(waiting, 10) == team
        assert await found(one, founders()) == team
    finally:
        await one.close()
        await other.close()


class Between(MemoryLog):
    """A log in which something happens just before somebody becomes an owner."""

    work: Callable[[], Awaitable[object]] | None = None

    async def acquire(
        self, stream: str, owner: str, *, force: bool = False, made_at: int | None = None
    ) -> Lease | Held:
        """Let it happen, once."""
        work, self.work = self.work, None
        if work is not None:
            await work()
        return await super().acquire(stream, owner, force=force, made_at=made_at)


async def test_what_another_process_has_founded_since_we_looked_is_left_as_it_is() -> None:
    shared = Memory()
    log = Between(shared)
    one, other = Runtime(log), Runtime(MemoryLog(shared))
    log.work = lambda: found(other, founders())
    try:
        team = await found(one, founders())
        kinds = [type(told.event) async for told in one.events(team)]
        assert (kinds.count(TeamCreated), kinds.count(TaskCreated)) == (1, 1)
    finally:
        await one.close()
        await other.close()


async def test_an_organisation_is_found_by_name_and_workspace_or_by_its_id() -> None:
    runtime = Runtime(MemoryLog())
    try:
        team = await found(runtime, evolve(founders(), workspace="/w"))
        other = await runtime.create("tea", [(AgentId("a"), AgentSpec(name="a", manager=True))], workspace="/w")
        assert [name async for name, _ in organisations(runtime)] == [team]
        assert await founded(runtime, Path("/w"), "tea") == team
        assert await founded(runtime, Path("/elsewhere"), "tea") is None
        assert await found_by_id(runtime, team[:6]) == team
        assert await found_by_id(runtime, other) is None
        assert await found_by_id(runtime, "zzz") is None
        await runtime.ask(team, CancelTask(task_id=BASE))
        assert await founded(runtime, Path("/w"), "tea") is None
        with pytest.raises(Refused, match=r"The organisation 'tea' .* is over"):
            await found_by_id(runtime, team)
    finally:
        await runtime.close()


class Counting(MemoryLog):
    """A log that knows how many streams were read."""

    opened: int = 0

    async def load_snapshot(self, stream: str, fingerprint: str, upto: int | None = None) -> Snapshot | None:
        """Count it."""
        self.opened += 1
        return await super().load_snapshot(stream, fingerprint, upto)
