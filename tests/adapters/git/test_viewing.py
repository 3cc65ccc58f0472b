"""What commands in a worktree see of git is a repository of their own; what a commit holds can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.adapters.processes.plain import PlainCommands
from greenroom.app.settings.schema import SandboxSettings
from greenroom.app.toolset.sandbox import Walls
from greenroom.core.ports.commands import Command, Ended, Printed
from tests.adapters.git.person import Person
from tests.tiers import has_bubblewrap

LOOKS = (
    "pwd && git status --short && git log --oneline | cat && echo new > b.txt && git add b.txt && git commit -qm mine"
)
LOOKS += " && git show --stat --format=%s | cat && git branch --list | cat"


@pytest.fixture(name="person")
def _person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "repo")
    person.write("a.py", "A = 1\n")
    person.write("link", "")
    (person.root / "link").unlink()
    (person.root / "link").symlink_to("a.py")
    person.git("init", "--quiet", "--initial-branch=main")
    person.commit_all("first")
    return person


@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
async def test_commands_use_git_at_the_repository_s_own_place_and_nothing_of_it_is_the_person_s(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "known"))
    theirs = await GitWorkspace.find(person.root, tmp_path / "cache", env=person.env)
    worktree = await theirs.open("run", "main", (await theirs.snapshot("run")).commit)
    shown = await worktree.view()
    before = person.git("for-each-ref"), (person.root / ".git" / "config").read_bytes()
    walls = Walls(Path(worktree.folder), SandboxSettings(), at=person.root, lent=shown)
    commands = PlainCommands(Path(worktree.folder), wall=walls.opened)
    try:
        said, code = await ran(commands, LOOKS)
    finally:
        commands.close()
        await walls.close()
    assert code == 0, said
    assert said.startswith(f"{person.root}\n"), "so an editable install finds the right tree"
    assert "first" in said
    assert "b.txt | 1 +" in said
    assert "main" in said
    assert (person.git("for-each-ref"), (person.root / ".git" / "config").read_bytes()) == before
    assert not (person.root / "b.txt").exists()
    assert await worktree.view() == shown, "it is made once"


def write(folder: str, name: str, content: bytes) -> None:
    Path(folder, name).write_bytes(content)


async def ran(commands: PlainCommands, line: str) -> tuple[str, int | None]:
    said, code = "", None
    async for event in commands.run(Command(words=("sh", "-c", line))):
        if isinstance(event, Printed):
            said += event.text
        elif isinstance(event, Ended):
            code = event.code
    return said, code
