"""The tools of a read-only worktree: commands run in a sandbox in which they change nothing, or they are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from greenroom.adapters.sandbox.choice import SandboxChoice
from greenroom.adapters.sandbox.landlock import MIN_VERSION, read_landlock_version
from greenroom.app.context import AppContext
from greenroom.app.runs.workspaces import open_run_workspace
from greenroom.app.toolset import sandbox as sandboxes
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.sandbox import Tier
from greenroom.core.state.step import Step
from greenroom.core.state.team import Team
from greenroom.runs.workspace import WorktreeTools
from tests.abilities.tools.calling import Caller, caller
from tests.adapters.git.person import Person
from tests.tiers import has_bubblewrap, keep_known


@pytest.fixture(name="person")
def _person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GREENROOM_SANDBOX", "auto")
    keep_known(tmp_path / "cache")
    person = Person(tmp_path / "repo")
    person.write("src/code.py", "TEXT = 'read'\n")
    person.write(".gitignore", "node_modules/\n")
    person.git("init", "--quiet", "--initial-branch=main")
    person.commit_all("first")
    person.write("node_modules/x.js", "1\n")
    return person


async def nothing(_: TeamId) -> Sequence[Step]:
    """A run that has done nothing yet."""
    return ()


@asynccontextmanager
async def read_only_tools(person: Person, within: str = "") -> AsyncIterator[tuple[Caller, Path]]:
    """Open the tools of a run whose worktree is read-only, and yield them with the worktree."""
    root = person.root / within
    place = await open_run_workspace(Team(team_id=TeamId("r1"), workspace=str(root)), nothing)
    tools = AppContext().toolset(
        root,
        WorktreeTools(folder=place.folder, mount_point=place.mount_point, mounts=place.mounts, read_only=True),
    )
    try:
        async with caller(tools.executors) as team:
            yield team, place.folder
    finally:
        await tools.close()


def use_tier(tier: Tier, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use this sandbox, or skip the test with the reason."""
    if tier == "bubblewrap" and not has_bubblewrap():
        pytest.skip("bubblewrap is not installed")
    if tier == "landlock" and read_landlock_version() < MIN_VERSION:
        pytest.skip("the kernel has no Landlock, or an old one")
    if tier != "bubblewrap":
        monkeypatch.setattr(sandboxes, "find_strongest_sandbox", lambda _: SandboxChoice(tier=tier))


async def exit_code(team: Caller, script: str) -> object:
    return ((await team.call("execute_script", script=script)).result or {})["exit_code"]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("within", ["", "src"])
@pytest.mark.parametrize("tier", ["bubblewrap", "landlock"])
async def test_commands_read_the_workspace_and_change_nothing(
    tier: Tier, within: str, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_tier(tier, monkeypatch)
    async with read_only_tools(person, within) as (team, folder):
        script = "grep -rhn TEXT . --include=*.py; python3 -c 'print(2)'; echo x > $TMPDIR/x; cat $TMPDIR/x"
        assert await team.output("execute_script", script=script) == "exit code 0\n1:TEXT = 'read'\n2\nx\n"
        before = files_of(folder)
        for change in ("touch new", "rm -r *", "mv code.py src/code.py x", "echo x > node_modules/x.js", "rm -rf ."):
            assert await exit_code(team, change) != 0, change
        assert files_of(folder) == before
    assert (person.root / "node_modules/x.js").read_text() == "1\n"


@pytest.mark.parametrize("within", ["", "src"])
async def test_git_shows_history_and_does_not_commit(
    within: str, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_tier("bubblewrap", monkeypatch)
    async with read_only_tools(person, within) as (team, _):
        look = "git status --short && git log --format=%s && git diff HEAD~1 --stat && git grep -h TEXT"
        lines = (await team.output("execute_script", script=look)).splitlines()
        assert lines == ["exit code 0", "The workspace as it was", "first", "TEXT = 'read'"]
        for change in ("git commit --allow-empty -m mine", "git branch mine", "git stash", "git checkout HEAD~1"):
            assert await exit_code(team, change) != 0, change
        assert (await team.output("execute_script", script=look)).splitlines() == lines


async def test_no_tool_edits_files(person: Person) -> None:
    tools = AppContext().toolset(
        person.root, WorktreeTools(folder=person.root, mount_point=person.root, mounts=(), read_only=True)
    )
    groups = {tool.card.group for tool in tools.executors}
    assert "edit" not in groups
    assert {"read", "command"} <= groups
    await tools.close()


@pytest.mark.parametrize("tier", ["none", "seatbelt"])
async def test_without_a_sandbox_that_confines_commands_are_refused_and_no_person_is_asked(
    tier: Tier, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_tier(tier, monkeypatch)
    async with read_only_tools(person) as (team, folder):
        for script in ("touch new", "ls", "rm -rf src"):
            error = await team.error("execute_script", script=script)
            assert "This agent only reads the workspace, so its commands need a sandbox" in error
        assert "need a sandbox" in await team.error("execute_script", script="touch new", background=True)
        assert not (folder / "new").exists()
        assert "TEXT" in await team.output("read_code", file="src/code.py")
