"""What checks change and make is nobody's work, and what an agent writes is work wherever it lies."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from greenroom.abilities.tools.carded import CardedTool
from greenroom.abilities.tools.checks.run_checks import RunChecks
from greenroom.app.checks.receipts import BASELINE
from greenroom.app.jobs.baseline import Baseline, litter_in
from greenroom.app.jobs.outcome import Outcome as Came
from greenroom.app.jobs.place import THREAD
from greenroom.app.jobs.recording import COMMIT, passed_over_in, recorded
from greenroom.app.jobs.report import report_of
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data, encode, evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard, ToolExecutor
from greenroom.core.ports.workspace import Mark
from greenroom.core.state.spec import Group
from tests.app.jobs.deliveries import AtWork, Job, job, verdict_of

MAKES = "mkdir -p out && touch out/1 out/2 out/3 out/4 report.json && echo 2 > stats.json && grep -q good app.py"
FILES = {"stats.json": "1\n"}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Writes(CardedTool):
    """Writes files below a folder, and says which if it is one that edits."""

    def __init__(self, group: Group, root: Path, *names: str) -> None:
        spec = ToolSpec(name="rewrite" if group == "edit" else "execute_script", description="", parameters={})
        self.card = ToolCard(spec=spec, group=group, effect="effectful")
        self._root, self._names = root, names

    def targets(self, _: Data) -> tuple[Target, ...]:
        """The files."""
        return tuple(Target(kind="path", value=one, writes=True) for one in self._names)

    async def run(self, _: Bench) -> Outcome:
        """Write."""
        for name in self._names:
            (self._root / name).write_text("work")
        return Outcome(result={"output": "Written."})


@asynccontextmanager
async def begun(tmp_path: Path, line: str = MAKES, files: Mapping[str, str] = FILES) -> AsyncIterator[Job]:
    """A job whose checks have run on the base, which the house does as a step."""
    async with job(tmp_path, line, files) as made:
        made.story.steps.clear()
        await does(made, Baseline(made.checks, made.place.worktree))
        yield made


async def does(made: Job, tool: ToolExecutor, **given: object) -> Data:
    """What a step of this tool has in its result."""
    step = made.story.step(tool.name).steps.pop()
    step = evolve(step, work=evolve(step.work, instruction_content=given))
    here = AtWork(step)
    here.blobs = made.shelf.blobs
    outcome = await recorded(tool, made.place.worktree, asyncio.Lock()).run(cast("Bench", here))
    assert encode(outcome.result), "the log can have it"
    made.story.steps.append(evolve(step, result=outcome.result, state=outcome.state))
    return outcome.result or {}


async def test_who_only_runs_the_checks_has_done_nothing(tmp_path: Path) -> None:
    async with begun(tmp_path, f"{MAKES} && echo $$ > log.$$") as made:
        result = await does(made, RunChecks(made.checks))
        assert (COMMIT in result, await made.place.changes()) == (False, [])
        assert "is put back or taken away: log." in str(result["output"])
        assert "stats.json. What should be part of it" in str(result["output"])
        assert (made.place.folder / "stats.json").read_text() == "1\n"
        assert verdict_of(await made.delivers()).state == "unproven"


async def test_what_lay_there_before_the_checks_ran_is_work(tmp_path: Path) -> None:
    async with begun(tmp_path) as made:
        made.writes("app.py", "good and better\n")
        made.writes("stats.json", "mine\n")
        result = await does(made, RunChecks(made.checks))
        assert result[COMMIT] == await made.place.worktree.tip()
        assert await made.place.changes() == ["app.py", "stats.json"]
        assert (made.place.folder / "stats.json").read_text() == "mine\n"


async def test_after_checks_that_could_not_be_run_what_is_written_is_work(tmp_path: Path) -> None:
    async with begun(tmp_path) as made:
        with pytest.raises(ModelFault, match="There is no check 'other'"):
            await does(made, RunChecks(made.checks), only=["other"])
        made.writes("new.txt", "work")
        again = await made.place.workspace.open(made.place.run, THREAD, made.place.snapshot.commit)
        await again.commit(Mark(run=made.place.run, key="k"))
        assert await made.place.changes() == ["new.txt"]


async def test_what_an_editing_tool_writes_is_work_wherever_it_lies(tmp_path: Path) -> None:
    async with begun(tmp_path) as made:
        result = await does(made, Writes("edit", made.place.folder, "out/mine.py", "report.json"))
        assert (result["output"], await made.place.changes()) == ("Written.", ["out/mine.py", "report.json"])


async def test_what_a_command_makes_where_the_checks_do_is_named(tmp_path: Path) -> None:
    async with begun(tmp_path) as made:
        place = made.place
        result = await does(made, Writes("command", place.folder, "out/mine.py", "new.txt", "out/1"))
        assert "Not delivered, because it lies where the checks make files: out/mine.py. " in str(result["output"])
        tip = await place.worktree.tip()
        came = Came(run=place.run, workspace=place.workspace, snapshot=place.snapshot, tip=tip)
        note = "Note: not delivered, made where the checks make files: out/mine.py"
        assert note in (await report_of(came, made.story.steps)).lines
        await does(made, Writes("edit", place.folder, "out/mine.py"))
        came = Came(run=place.run, workspace=place.workspace, snapshot=place.snapshot, tip=await place.worktree.tip())
        assert note not in (await report_of(came, made.story.steps)).lines, "it is, by now"
        assert await place.changes() == ["new.txt", "out/mine.py"]


class Runs(CardedTool):
    """Runs scripts in a folder."""

    def __init__(self, root: Path) -> None:
        spec = ToolSpec(name="execute_script", description="", parameters={})
        self.card = ToolCard(spec=spec, group="command", effect="effectful")
        self._root = root

    async def run(self, bench: Bench) -> Outcome:
        """Run one."""
        script = str((bench.step.work.instruction_content or {})["script"])
        done = await asyncio.create_subprocess_shell(script, cwd=self._root)
        return Outcome(result={"output": f"exit code {await done.wait()}"})


async def runs(made: Job, script: str) -> Data:
    """What a step has in its result in which the agent runs this."""
    return await does(made, Runs(made.place.folder), script=script)


FILLS = "mkdir -p out && touch out/1 out/2 out/3 out/4 && grep -q good app.py"
MOVES = "mv guide.md out/guide.md"
GUIDE = {"guide.md": "How to use it.\n"}


@pytest.mark.parametrize("lines", [(MOVES,), ("cp guide.md out/guide.md", "rm guide.md")])
async def test_a_file_that_a_command_moves_where_the_checks_make_files_is_no_deletion_that_is_proven(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    async with begun(tmp_path, FILLS, GUIDE) as made:
        for line in lines:
            await runs(made, line)
        told = verdict_of(await made.delivers("It lies in out now."))
        assert (told.state, told.claims, told.changed) == ("unproven", [], [])
        (missing,) = told.missing
        assert missing.startswith("'guide.md' was moved to 'out/guide.md', where the checks make files, and nothing ")
        await does(made, Writes("edit", made.place.folder, "out/guide.md"))
        assert verdict_of(await made.delivers()).state == "verified", "it is written there"


@pytest.mark.parametrize("how", ["run_checks", "execute_script"])
async def test_what_was_moved_there_is_not_forgotten_when_the_checks_take_it_away(tmp_path: Path, how: str) -> None:
    clears = f"rm -rf out && {FILLS}"
    async with begun(tmp_path, clears, GUIDE) as made:
        await runs(made, MOVES)
        await (runs(made, clears) if how == "execute_script" else does(made, RunChecks(made.checks)))
        assert not (made.place.folder / "out/guide.md").exists()
        (missing,) = verdict_of(await made.delivers("It lies in out now.")).missing
        assert missing.startswith("'guide.md' was moved to 'out/guide.md', ")
        await runs(made, "echo 'How to use it.' > manual.md")
        assert verdict_of(await made.delivers()).state == "verified", "it lies elsewhere"


async def test_a_file_that_is_deleted_is_deleted_whatever_the_checks_have_made_of_it(tmp_path: Path) -> None:
    async with begun(tmp_path, f"{FILLS} && cp *.py *.md out || true", GUIDE) as made:
        await runs(made, "rm guide.md && touch out/5")
        assert "out/5" in str(made.story.steps[-1].result)
        told = verdict_of(await made.delivers("It is gone."))
        assert (told.state, await made.place.changes()) == ("verified", ["guide.md"])


async def test_what_was_moved_there_and_then_deleted_there_too_was_to_go(tmp_path: Path) -> None:
    async with begun(tmp_path, FILLS, GUIDE) as made:
        await runs(made, MOVES)
        assert verdict_of(await made.delivers()).state == "unproven"
        assert passed_over_in(made.story.steps) == ("out/guide.md",)
        await runs(made, "rm out/guide.md")
        assert passed_over_in(made.story.steps) == ()
        assert verdict_of(await made.delivers()).state == "verified"


async def test_a_name_that_is_no_text_is_in_the_log_and_found_again(tmp_path: Path) -> None:
    async with begun(tmp_path, "touch \"$(printf 'caf\\351')\"") as made:
        (step,) = made.story.steps
        assert (step.work.executor, step.state, litter_in([step])) == (BASELINE, "finished", ('"caf\\351"',))
        assert '"caf\\351" by themselves' in str((step.result or {})["output"])
        assert (made.place.folder / os.fsdecode(b"caf\xe9")).exists()
