"""Where a job is done: also in a part of a repository git works, and what is lent lies where it belongs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.app.runs.workspaces import open_run_workspace
from greenroom.app.settings.schema import SandboxSettings
from greenroom.app.toolset.sandbox import WorkspaceSandbox
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.commands import Command, CommandEnded, CommandPrinted
from greenroom.core.state.step import Step
from greenroom.core.state.team import Team
from greenroom.runs.workspace import RunWorkspace
from tests.adapters.git.person import Person
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")


@pytest.fixture(name="person")
def _person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    """With a repository in which they work in one part only."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    person = Person(tmp_path / "repo")
    person.write("other/secret.py", "S = 1\n")
    person.write("part/deep/a.py", "A = 1\n")
    person.write(".gitignore", "node_modules/\n")
    person.git("init", "--quiet", "--initial-branch=main")
    person.commit_all("first")
    person.write("part/deep/node_modules/x.js", "1\n")
    return person


async def nothing(_: TeamId) -> Sequence[Step]:
    """A run that has done nothing yet."""
    return ()


async def ran(place: RunWorkspace, line: str) -> tuple[str, int | None]:
    """What a command says there, behind walls."""
    walls = WorkspaceSandbox(place.folder, SandboxSettings(), at=place.mount_point, mounts=place.mounts)
    commands = LocalCommands(place.folder, sandbox=walls.open_sandbox)
    said, code = "", None
    try:
        async for event in commands.run(Command(words=("sh", "-c", line))):
            if isinstance(event, CommandPrinted):
                said += event.text
            elif isinstance(event, CommandEnded):
                code = event.code
    finally:
        commands.close()
        await walls.close()
    return said, code


async def test_commands_in_a_part_of_a_repository_use_git_and_miss_nothing(person: Person) -> None:
    place = await open_run_workspace(Team(team_id=TeamId("r1"), workspace=str(person.root / "part/deep")), nothing)
    look = "git status --short && git log --oneline && echo 'A = 2' > a.py && git diff && git status --short && ls"
    said, code = await ran(place, look)
    assert code == 0, said
    first, *rest = said.splitlines()
    assert first.endswith(" The workspace as it was"), f"nothing is missed, nothing unknown: {said}"
    assert rest[0].endswith(" first")
    assert "+A = 2" in rest
    assert "diff --git a/part/deep/a.py b/part/deep/a.py" in rest, "git knows where in the repository it is"
    assert " M a.py" in rest
    assert "node_modules" in rest
    assert (person.root / "part/deep/a.py").read_text() == "A = 1\n"
    again, _ = await ran(place, "git add -A && git commit -qm mine && git show --stat --format=%s && ls node_modules")
    assert "part/deep/a.py | 2 +-" in again
    assert "other/secret.py" not in again, "nothing outside was taken for deleted"
    assert again.splitlines()[-1] == "x.js", "what is lent lies where it is the person's"
