"""The kit of runs: the coder, starting a run, and what judges it to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.app.agents.coder import CODER_TOOLS, build_coder
from greenroom.app.context import AppContext
from greenroom.app.conversation.capability_names import CHANGE_RUN
from greenroom.app.conversation.start import Participants
from greenroom.app.runs import capabilities
from greenroom.app.runs.capabilities import (
    build_run_capabilities,
    create_run,
    require_delivery,
)
from greenroom.app.runs.checks import CheckPlan, plan_project_checks
from greenroom.app.runs.workspaces import open_workspace
from greenroom.app.runtime import Runtime
from greenroom.app.toolset.toolset import Toolset
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check
from greenroom.core.ports.executor import Capabilities, StepContext
from greenroom.core.ports.workspace import SCRATCH_THREAD
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step
from greenroom.core.state.team import Team
from greenroom.runs.verdict import BASELINE, CONFIRM_UNVERIFIED, DELIVER
from greenroom.runs.workspace import RunFlags, WorktreeTools
from tests.adapters.git.person import Person
from tests.conformance.workspace_case import is_there
from tests.runs.deliveries import RUN, AtWork, nothing_runs
from tests.runs.log import Story
from tests.runs.projects import Shelf


class Tools:
    """Hands with the tools that a job has more than others, and no walls."""

    def __init__(self, copied: WorktreeTools) -> None:
        self.commands = LocalCommands(copied.folder)
        self.executors = tuple(map(copied.wrap, copied.extra_tools(self.commands, nothing_runs)))
        self.specs = ()

    async def close(self) -> None:
        """End what runs."""
        self.commands.close()


class Desk:
    """A person whose check is a recipe, a log, and the plans that were made."""

    def __init__(self, tmp_path: Path) -> None:
        self.person, self.story, self.plans = Person(tmp_path / "repo"), Story(), list[CheckPlan]()
        self.shelf = Shelf()
        self.person.root.mkdir()
        self.person.git("init", "--quiet", "--initial-branch=main")
        self.recipe("grep -q good app.txt")
        self.person.write("app.txt", "good\n")
        self.person.commit_all("first")

    def recipe(self, line: str) -> None:
        """What `make check` does."""
        self.person.write("Makefile", f"check:\n\t@{line}\n")

    @asynccontextmanager
    async def kit(self) -> AsyncIterator[Capabilities]:
        """Made as when the team is to run."""
        made = await build_run_capabilities(Attendant(self), Team(team_id=RUN, workspace=str(self.person.root)))
        try:
            yield made
        finally:
            assert made.on_close is not None
            await made.on_close()

    async def goes_on(self) -> None:
        """A life in which nothing is done."""
        async with self.kit():
            pass

    async def begins(self) -> None:
        """The first step of the job, in a life that ends with it."""
        async with self.kit() as capabilities:
            first = capabilities.get("tool", BASELINE)
            assert first is not None
            step = self.story.step(BASELINE).steps.pop()
            here = AtWork(step)
            here.blobs = self.shelf.blobs
            outcome = await first.run(cast("StepContext", here))
            self.story.steps.append(evolve(step, result=outcome.result))


class Attendant(AppContext):
    """An app context whose log is that of the desk, in a sandbox, with nobody to ask."""

    sandbox_tier = "bubblewrap"
    is_attended = False

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk

    def toolset(self, root: Path, worktree: WorktreeTools | None = None, **_: object) -> Toolset:
        assert worktree is not None
        return cast("Toolset", Tools(worktree))

    async def steps(self, team: TeamId) -> Sequence[Step]:
        return tuple(self._desk.story.steps)

    async def blob(self, digest: str) -> bytes:
        return await self._desk.shelf.fetch(digest)

    def notes(self) -> str:
        return ""


@pytest.fixture(name="desk")
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    made = Desk(tmp_path)

    def plan(root: Path, *, sandboxed: bool, earlier_checks: Sequence[Check] | None) -> CheckPlan:
        made.plans.append(plan_project_checks(root, sandboxed=sandboxed, earlier_checks=earlier_checks))
        return made.plans[-1]

    monkeypatch.setattr(capabilities, "plan_project_checks", plan)
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return made


async def test_what_a_check_was_when_the_job_began_judges_it_whatever_its_person_has_made_of_it_since(
    desk: Desk,
) -> None:
    await desk.begins()
    desk.recipe("true")
    await desk.goes_on()
    then, now = ([one.digest for one in plan.run] for plan in desk.plans)
    assert (len(then), then) == (1, now)
    desk.story.steps.clear()
    await desk.goes_on()
    assert [one.digest for one in desk.plans[-1].run] != then, "without a log nobody knows what it was"


async def test_a_fresh_copy_that_a_killed_life_has_left_is_taken_away(desk: Desk) -> None:
    theirs = await open_workspace(desk.person.root)
    left = await theirs.open(RUN, SCRATCH_THREAD, (await theirs.snapshot(RUN)).commit)
    assert is_there(left.folder)
    await desk.goes_on()
    assert not is_there(left.folder)


TOKENS = 1_000
"""What its prompt may cost in every request, by a rough count."""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_its_prompt_names_only_tools_that_it_has_and_is_worth_its_tokens(language: str) -> None:
    prompt = build_coder(language).prompt
    named = {word.strip("`") for word in prompt.split("`")[1::2]}
    assert named - {"rg", "head", "finish"} <= set(CODER_TOOLS)
    assert {"propose_plan", "run_checks", "ask_user", "patch", "rewrite"} <= named
    signs = sum(1 if ord(sign) > 0x2E80 else 0.25 for sign in prompt)
    assert signs < TOKENS


def test_the_house_has_the_last_word_on_whoever_is_proven() -> None:
    assert build_coder("en").proof == ""
    assert build_coder("en").turn.ends == "finish"
    assert require_delivery(build_coder("en")).proof == DELIVER


ANN, BOB = AgentId("ann"), AgentId("bob")
CAST = Participants(
    members=(
        (ANN, AgentSpec(name="ann", tools=("patch",), calls=("bob",))),
        (BOB, AgentSpec(name="bob", tools=("patch",))),
    ),
    workspace="/somewhere",
)


@pytest.mark.parametrize(
    ("setup", "question", "first"),
    [
        (False, False, [BASELINE, CONFIRM_UNVERIFIED, "converse"]),
        (True, False, ["prepare", BASELINE, CONFIRM_UNVERIFIED, "converse"]),
        (True, True, ["prepare", "converse"]),
    ],
)
async def test_a_worktree_is_prepared_then_checked_then_worked_in(
    tmp_path: Path, setup: bool, question: bool, first: list[str]
) -> None:
    runtime = await Runtime.open(tmp_path)
    wanted = RunFlags(question=question)
    team = await create_run(runtime, CAST, "log\n\nDo it.", typed="Do it.", limits=Limits(), setup=setup, wanted=wanted)
    state = await runtime.state(team)
    await runtime.close()
    assert [one.work.executor for one in state.steps_of(ANN)] == first
    assert (state.team.kit, state.team.workspace) == (CHANGE_RUN, "/somewhere")
    (task,) = state.tasks.values()
    assert (task.intention, task.manager) == ("Do it.", ANN)
