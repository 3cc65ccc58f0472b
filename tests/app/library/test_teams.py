"""`greenroom.teams`: the verbs that plan, start, pause, resume and cancel a team of specialists."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from greenroom import AgentSpec, Greenroom, Plan, PlannedSubtask, RefusedError, WorldFault
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import TeamId
from greenroom.core.state.stage import Stage
from greenroom.testing.scripted import ScriptedModel
from tests.cli.commands.shop import REQUEST, build_shop, team_cues, write
from tests.tiers import has_bubblewrap, keep_known

needs_sandbox = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with one test, of a person without settings."""
    for name, folder in (("XDG_CACHE_HOME", "cache"), ("XDG_CONFIG_HOME", "config"), ("HOME", "person")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("GREENROOM_SANDBOX", "auto")
    keep_known(tmp_path / "cache")
    return build_shop(tmp_path / "shop")


def open_greenroom(shop: Path, model: ScriptedModel) -> Greenroom:
    return Greenroom(shop.parent / "home", workspace=shop, models=model, non_interactive=True)


@needs_sandbox
@pytest.mark.req("RC-58", "RC-163", "RC-164", "RC-165", "RC-166", "RC-170")
async def test_a_request_is_analysed_planned_and_executed(shop: Path) -> None:
    async with open_greenroom(shop, ScriptedModel(team_cues())) as greenroom:
        analysis = await greenroom.teams.analyze(REQUEST)
        assert analysis.task_types == ("feature-development", "testing", "documentation")
        plan = await greenroom.teams.plan(REQUEST)
        run = await greenroom.teams.execute(plan)
        assert await greenroom.teams.wait(run) == "completed"
        assert await greenroom.teams.status(run) == "completed"
        assert (analysis.estimate.basis, plan.source) == ("profiles", "rules")
        assert (await greenroom.teams.analyze(REQUEST)).estimate.basis == "past_runs"
        (shop / ".greenroom").mkdir()
        (shop / ".greenroom" / "config.toml").write_text("[team]\nperformance_metrics = false\n")
        assert (await greenroom.teams.analyze(REQUEST)).estimate.basis == "profiles"
    assert not (shop / "shop" / "tax.py").exists()


@needs_sandbox
async def test_a_program_must_allow_unverified_work(shop: Path) -> None:
    (shop / "tests" / "test_cart.py").unlink()
    (shop / "conftest.py").unlink()
    plan = Plan(request="add tax", subtasks=(PlannedSubtask(id="tax", agent="code-writer", writes=("shop/tax.py",)),))
    model = ScriptedModel(write("code-writer-1", "shop/tax.py", "ONE = 1\n", "tax"))
    async with open_greenroom(shop, model) as greenroom:
        teams = greenroom.teams
        assert await teams.wait(await teams.execute(plan)) == "unverified"
        assert model.requests == []
        run = await teams.execute(plan, allow_unverified=True)
        assert (await teams.wait(run), await teams.status(run)) == ("unverified", "unverified")
        assert model.requests


async def test_arguments_of_a_wrong_kind_are_refused_in_one_line(shop: Path) -> None:
    async with open_greenroom(shop, ScriptedModel([])) as greenroom:
        for verb in (greenroom.teams.analyze, greenroom.teams.plan, greenroom.teams.execute):
            with pytest.raises(WorldFault, match=r"^None is not a valid .*\.$"):
                await verb(cast("str", None))


@needs_sandbox
@pytest.mark.req("RC-58", "RC-166", "RC-167", "RC-168", "RC-169")
async def test_a_run_is_paused_resumed_and_cancelled(shop: Path) -> None:
    part = PlannedSubtask(id="tax", agent="code-writer", writes=("shop/tax.py",))
    model = ScriptedModel(write("code-writer-1", "shop/tax.py", "ONE = 1\n", "tax"), pace=0.2)
    async with open_greenroom(shop, model) as greenroom:
        teams = greenroom.teams
        run = await teams.execute(Plan(request="add tax", subtasks=(part,)))
        await teams.pause(run)
        assert await teams.status(run) == "paused"
        assert await teams.wait(run) == "paused"
        await teams.resume(run)
        assert await teams.wait(run) == "completed"
        other = await teams.execute(Plan(request="add tax", subtasks=(part,)))
        assert await teams.status(other) in ("scheduled", "running")
        await teams.cancel(other)
        assert await teams.wait(other) == "cancelled"


@pytest.mark.req("RC-171", "RC-172")
async def test_profiles_are_listed_and_registered(shop: Path) -> None:
    async with open_greenroom(shop, ScriptedModel([])) as greenroom:
        assert len(await greenroom.teams.agents()) == 10
        await greenroom.teams.register_agent(AgentSpec(name="poet", role="a poet", groups=("read", "edit")))
        assert (await greenroom.teams.agents())[-1].name == "poet"
        poem = PlannedSubtask(id="poem", agent="poet", writes=("poem.md",))
        with pytest.raises(WorldFault, match="There is no specialist `bard`"):
            await greenroom.teams.execute(Plan(request="x", subtasks=(PlannedSubtask(id="a", agent="bard"), poem)))


async def test_a_request_without_work_and_a_program_without_a_workspace_are_refused(shop: Path) -> None:
    async with open_greenroom(shop, ScriptedModel([])) as greenroom:
        with pytest.raises(RefusedError, match="no subtasks"):
            await greenroom.teams.execute("what does the cart do?")
        with pytest.raises(WorldFault, match="The request is empty"):
            await greenroom.teams.analyze(" ")
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(WorldFault, match="workspace"):
            _ = greenroom.teams


class Unpriced(ScriptedModel):
    """A model whose price is not known."""

    def price(self, _: int, __: int) -> int | None:
        return None


async def test_execute_is_what_run_with_a_team_is(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop / ".greenroom").mkdir()
    text = '[workspace]\nsetup = "true"\n\n[team]\nmax_concurrent_agents = 1\n'
    (shop / ".greenroom" / "config.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    parts = (PlannedSubtask(id="poem", agent="poet"), PlannedSubtask(id="tax", agent="code-writer"))
    plan = Plan(request="add tax", subtasks=parts)
    async with open_greenroom(shop, ScriptedModel([])) as greenroom:
        teams = greenroom.teams
        await teams.register_agent(AgentSpec(name="poet", role="a poet", groups=("read", "edit")))
        run = TeamId(await teams.execute(plan))
        await teams.cancel(run)
        stages = [stage async for stage in greenroom.runtime.archive(run, "stage") if isinstance(stage, Stage)]
        stages += (await greenroom.runtime.state(run)).stages.values()
        assert stages[0].concurrency == 1
        works = [[work.executor for work in subtask.work] for subtask in stages[0].subtasks]
        assert all(names[:2] == ["open_workspace", "prepare"] for names in works), works
        assert "poet" in (await greenroom.runtime.state(run)).blueprints
        with pytest.raises(RefusedError, match="One agent: "):
            await teams.execute("fix the crash in the parser")
    home = shop.parent / "home"
    async with Greenroom(
        home, workspace=shop, models=Unpriced([]), limits=Limits(money=1_000_000), non_interactive=True
    ) as greenroom:
        with pytest.raises(WorldFault, match=r"The price of .* is unknown"):
            await greenroom.teams.execute(Plan(request="add tax", subtasks=parts[1:]))
