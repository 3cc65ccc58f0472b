"""A changed charter: what it changes, who cannot join and why, and several people who come at once."""

import pytest

from greenroom.app.organisation.creation import find_taken_names, plan_update, update_organisation
from greenroom.app.organisation.phrases import BASE_TASK
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import RefusedError
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import AddAgent, AddParticipants, ChangeAgent, Intent, RemoveAgent, SetLimits
from greenroom.core.state.agent import AgentAdded
from greenroom.core.state.spec import AgentSpec
from tests.app.organisation.office import MANAGER, Office, founders, office

EVE, GUS = AgentId("eve"), AgentId("gus")


async def test_a_changed_charter_brings_new_people_and_models_and_sends_nobody_away() -> None:
    async with office() as house:
        state = await house.state()
        assert plan_update(state, founders()) == ()
        more = founders(people=("ann", "eve"))
        boss = evolve(more.managers[0], llm_config={"model": "fake:two"})
        wanted = plan_update(state, evolve(more, managers=(boss,), limits=evolve(more.limits, money=1)))
        assert [type(one) for one in wanted] == [AddAgent, AddParticipants, ChangeAgent, SetLimits]
        await house.runtime.ask(house.team, *wanted)
        state = await house.state()
        assert set(state.tasks[BASE_TASK].group) == {"manager", "ann", "ben", "eve"}
        assert state.agents[MANAGER].spec.llm_config == {"model": "fake:two"}
        assert state.budgets[TEAM_BUDGET].limits.money == 1


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "/w/tea.toml names 'boss' first, but 'manager' was the first manager of tea and still receives all"),
        ("zh", "/w/tea.toml首先列出的是'boss'，但tea最初的管理者是'manager'"),
    ],
)
async def test_another_first_manager_joins_and_is_said_not_to_take_over(language: str, said: str) -> None:
    async with office(language) as house:
        now = founders(language)
        boss = evolve(now.managers[0], name="boss")
        assert (
            await update_organisation(
                house.runtime, house.team, evolve(now, managers=(*now.managers, boss)), "/w/tea.toml"
            )
            == ()
        )
        (told,) = await update_organisation(house.runtime, house.team, evolve(now, managers=(boss,)), "/w/tea.toml")
        assert told.startswith(said)
        assert f"`greenroom cancel {house.team}`" in told
        base = (await house.state()).tasks[BASE_TASK]
        assert (base.manager, "boss" in base.group) == (MANAGER, True)


async def made_by_the_manager(house: Office, name: AgentId) -> None:
    host = await house.runtime.start(house.team)
    refused = await host.submit(AddAgent(agent_id=name, spec=AgentSpec(name=name, style="plan")), by=MANAGER)
    assert list(refused) == [None]
    await house.runtime.stop(house.team)


@pytest.mark.parametrize("name", ["eve", "Eve"])
async def test_a_name_that_a_model_has_given_keeps_one_person_out_and_nobody_else(name: str) -> None:
    async with office() as house:
        await made_by_the_manager(house, EVE)
        (said,) = await update_organisation(
            house.runtime, house.team, founders(people=("ann", name, "kim")), "/w/tea.toml"
        )
        assert said == (f"{name!r} cannot join: an agent of tea is called 'eve'. Write another name into /w/tea.toml.")
        state = await house.state()
        assert (state.agents[EVE].spec.kind, state.agents[AgentId("kim")].spec.kind) == ("llm", "human")
        assert "kim" in state.tasks[BASE_TASK].group


async def test_the_name_of_somebody_who_has_left_is_said_to_be_used_in_both_languages() -> None:
    async with office() as house:
        await made_by_the_manager(house, GUS)
        await house.runtime.ask(house.team, RemoveAgent(agent_id=GUS, why="done"))
        (said,) = await update_organisation(house.runtime, house.team, founders(people=("ann", "gus")), "/w/tea.toml")
        assert said.startswith("'gus' cannot join: 'gus' has left tea, and a name is used only once.")
        (said,) = find_taken_names(await house.state(), founders("zh", people=("ann", "gus")), "/w/tea.toml")
        assert said.startswith("'gus'无法加入")


async def test_who_comes_second_after_a_charter_gained_a_person_finds_it_done(monkeypatch: pytest.MonkeyPatch) -> None:
    async with office() as house:
        more, ask = founders(people=("ann", "ben", "eve")), Runtime.ask

        async def late(runtime: Runtime, team: TeamId, *wanted: Intent, timeout: float = 30.0) -> None:
            """Somebody else is quicker."""
            monkeypatch.undo()
            await ask(runtime, team, *wanted)
            await ask(runtime, team, *wanted, timeout=timeout)

        monkeypatch.setattr(Runtime, "ask", late)
        assert await update_organisation(house.runtime, house.team, more, "") == ()
        events = [told.event async for told in house.runtime.events(house.team)]
        assert [one.agent_id for one in events if isinstance(one, AgentAdded)].count(EVE) == 1


async def test_what_is_refused_although_nobody_was_quicker_is_said() -> None:
    async with office() as house:
        with pytest.raises(RefusedError, match="cannot be an agent's id"):
            await update_organisation(house.runtime, house.team, founders(people=("ann", "system")), "")
