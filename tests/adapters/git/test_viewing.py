"""What commands see of git in a worktree, and submodules in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.adapters.git.worktree import GitWorktrees
from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.app.settings.schema import SandboxSettings
from greenroom.app.toolset.sandbox import WorkspaceSandbox
from greenroom.core.ports.commands import Command, CommandEnded, CommandPrinted
from greenroom.core.ports.workspace import SkippedPath, TreeSnapshot, Worktree
from tests.adapters.git.person import Person, opened, put, worked
from tests.adapters.git.shapes import SHAPES
from tests.tiers import has_bubblewrap

LOOKS = (
    "pwd && git status --short && git log --oneline | cat && echo new > b.txt && git add b.txt && git commit -qm mine"
)
LOOKS += " && git show --stat --format=%s | cat && git branch --list | cat"


@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
async def test_commands_use_git_at_the_repository_s_own_place_and_nothing_of_it_is_the_person_s(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "known"))
    theirs = await GitWorkspace.find(person.root, tmp_path / "cache", env=person.env)
    worktree = await theirs.open("run", "main", (await theirs.snapshot("run")).commit)
    shown = await worktree.make_view()
    before = person.git("for-each-ref"), (person.root / ".git" / "config").read_bytes()
    walls = WorkspaceSandbox(Path(worktree.folder), SandboxSettings(), at=person.root, mounts=shown)
    commands = LocalCommands(Path(worktree.folder), sandbox=walls.open_sandbox)
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
    assert await worktree.make_view() == shown, "it is made once"


async def ran(commands: LocalCommands, line: str) -> tuple[str, int | None]:
    said, code = "", None
    async for event in commands.run(Command(words=("sh", "-c", line))):
        if isinstance(event, CommandPrinted):
            said += event.text
        elif isinstance(event, CommandEnded):
            code = event.code
    return said, code


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "tree")
    SHAPES["submodule"](person)
    return person


async def left_out(worktree: Worktree) -> list[tuple[str, str]]:
    return [(one.path, one.why) for one in (await worktree.inspect()).left_out]


def fill(worktree: Worktree) -> None:
    """Files in the submodule, one of them in a folder of its own."""
    Path(worktree.folder, "sub/deep").mkdir()
    put(worktree, "sub/deep/b.txt", "b\n")
    put(worktree, "sub/a.txt", "a\n")


@pytest.mark.req("G-1")
async def test_what_is_written_into_a_submodule_is_said_to_be_in_no_commit(person: Person) -> None:
    worktree = await opened(await person.workspace())
    assert await left_out(worktree) == []
    fill(worktree)
    put(worktree, "a.txt", "other\n")
    made = await worked(worktree)
    assert person.git("diff", "--name-only", worktree.base, made.commit) == "a.txt\n"
    expected = [("sub/a.txt", "submodule"), ("sub/deep/b.txt", "submodule")]
    assert await left_out(worktree) == expected
    again = await (await person.workspace()).open("r1", "ann@t1", worktree.base)
    assert await left_out(again) == expected, "also whoever comes later knows"
    (standing,) = await GitWorktrees(person.root.parent / "cache", person.env).list()
    assert [(one.path, one.why) for one in standing.left_out] == expected


async def test_a_submodule_that_the_person_has_is_told_of_as_a_whole(person: Person) -> None:
    workspace = await person.workspace()
    first = await workspace.snapshot("r1")
    assert [one for one in first.left_out if one.path.startswith("sub")] == [SkippedPath(path="sub", why="submodule")]
    assert (await workspace.snapshot("r1")).left_out == first.left_out
    person.git("submodule", "--quiet", "deinit", "--force", "sub")
    empty: TreeSnapshot = await workspace.snapshot("r2")
    assert "sub" not in [one.path for one in empty.left_out], "there is nothing in it that the copy lacks"


async def test_a_submodule_is_known_though_no_file_speaks_of_it(person: Person) -> None:
    person.git("rm", "--quiet", "--force", ".gitmodules")
    worktree = await opened(await person.workspace())
    fill(worktree)
    assert len(await left_out(worktree)) == 2


async def test_a_submodule_that_the_person_has_given_up_since_is_one_in_a_copy_that_is_made_anew(
    person: Person,
) -> None:
    workspace = await person.workspace()
    snapshot = await workspace.snapshot("r1")
    person.git("rm", "--quiet", "--force", "sub")
    worktree = await workspace.open("r1", "ann@t1", snapshot.commit)
    fill(worktree)
    assert len(await left_out(worktree)) == 2


def replace(folder: Path, what: str, elsewhere: Path) -> None:
    """Put something else in the place of a submodule."""
    (folder / "sub").rmdir()
    if what == "link":
        (folder / "sub").symlink_to(elsewhere / "sub")
    elif what == "pipe":
        os.mkfifo(folder / "sub")


@pytest.mark.parametrize("what", ["link", "pipe", "gone"])
async def test_what_stands_in_the_place_of_a_submodule_is_not_looked_into(person: Person, what: str) -> None:
    person.write("below/x", "x\n")
    person.git("mv", "sub", "below/sub")
    worktree = await opened(await person.workspace())
    replace(Path(worktree.folder, "below"), what, person.root / "below")
    assert await left_out(worktree) == []
