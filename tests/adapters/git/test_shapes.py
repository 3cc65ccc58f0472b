"""Snapshot, worktree, edits, apply and undo in repositories of every shape: a person's tree comes back to the byte."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from greenroom.core.ports.workspace import AppliedChange, SkippedPath, UndoResult, WorkspaceFault
from tests.adapters.git.person import Person, opened, worked
from tests.adapters.git.shapes import LIES, SHAPES, SITS, edit, is_copied, plain
from tests.conformance.workspace_case import tree_of


@pytest.mark.req("G-8")
@pytest.mark.parametrize("shape", SHAPES)
async def test_work_comes_and_goes_and_a_persons_tree_is_what_it_was(tmp_path: Path, shape: str) -> None:
    person = Person(tmp_path / "tree")
    SHAPES[shape](person)
    theirs = person.theirs() if shape != "no git" else {"tree": tree_of(person.root)}
    workspace = await person.workspace(person.root / SITS.get(shape, ""))
    worktree = await opened(workspace)
    folder = Path(worktree.folder)
    copied = {name: one for name, one in tree_of(person.root).items() if is_copied(shape, name)}
    assert _runs_only(tree_of(folder)) == _runs_only(copied)
    if shape != "no git":
        assert person.theirs() == theirs, "neither files nor index, HEAD, refs and logs were touched"
    edit(folder / LIES.get(shape, ""))
    done = await worked(worktree)
    if shape == "merging":
        with pytest.raises(WorkspaceFault, match="A merge is in progress"):
            await workspace.apply("r1", worktree.base, done.commit)
        return
    applied = await workspace.apply("r1", worktree.base, done.commit)
    assert isinstance(applied, AppliedChange)
    if shape == "crlf":  # what git writes has the line ends that are set
        assert isinstance(await workspace.undo(applied.id), UndoResult)
        assert _unix(tree_of(person.root)) == _unix(theirs["tree"])
        return
    after = tree_of(folder)
    assert {one: after.get(one) for one in applied.paths} == {
        one: tree_of(person.root).get(one) for one in applied.paths
    }
    assert len(applied.paths) == 7
    assert all(one.startswith(LIES.get(shape, "")) for one in applied.paths)
    assert isinstance(await workspace.undo(applied.id), UndoResult)
    assert tree_of(person.root) == theirs["tree"]
    if shape != "no git":
        now = person.theirs()
        assert {**now, "dates": None} == {**theirs, "dates": None}


def _unix(tree: object) -> dict[str, tuple[str, bytes]]:
    assert isinstance(tree, dict)
    return {name: (mode, content.replace(b"\r\n", b"\n")) for name, (mode, content) in tree.items()}


def _runs_only(tree: dict[str, tuple[str, bytes]]) -> dict[str, tuple[str, bytes]]:
    """Of permissions git knows only whether a file can be run."""
    return {name: (mode[0] + mode[3], content) for name, (mode, content) in tree.items()}


async def test_a_workspace_may_be_a_part_of_a_repository(person: Person) -> None:
    workspace = await person.workspace(person.root / "keep")
    snapshot = await workspace.snapshot("r1")
    worktree = await workspace.open("r1", "ann@t1", snapshot.commit)
    assert (workspace.root, workspace.within, snapshot.within) == (str(person.root), "keep", "keep")
    assert tree_of(Path(worktree.folder)) == tree_of(person.root)


async def test_files_of_a_merge_are_taken_as_they_lie_there_and_named(tmp_path: Path) -> None:
    person = Person(tmp_path / "tree")
    SHAPES["merging"](person)
    workspace = await person.workspace()
    snapshot = await workspace.snapshot("r1")
    assert snapshot.conflicted == ("fight",)
    assert await workspace.snapshot("r1") == snapshot, "who comes later knows it too"
    assert "<<<<<<<" in person.git("show", f"{snapshot.commit}:fight")


async def test_what_is_left_out_is_said(person: Person) -> None:
    person.write("large", b"x" * 2000)
    person.write("a.txt", b"y" * 2000)
    plain(Person(person.root / "nested", person.home))
    workspace = await person.workspace(largest=1000)
    snapshot = await workspace.snapshot("r1")
    assert sorted(snapshot.left_out, key=lambda one: one.path) == [
        SkippedPath(path="large", why="too_large", size=2000),
        SkippedPath(path="nested", why="repository"),
    ]
    assert person.git("ls-tree", "-r", "--name-only", snapshot.commit).split() == [
        "a.txt",
        "go/old.txt",
        "keep/b.py",
        "run.sh",
    ]
    assert person.git("show", f"{snapshot.commit}:a.txt") == "y" * 2000, "what git knows is never too large"


async def test_a_secret_that_git_does_not_know_stays_where_it_is_and_whoever_looks_later_hears_of_it(
    person: Person,
) -> None:
    person.write(".env", "KEY=tracked")
    person.commit_all("with a secret")
    person.write("sub dir/.env", "KEY=not in git")
    workspace = await person.workspace(secret=lambda path: path.endswith(".env"))
    snapshot = await workspace.snapshot("r1")
    assert snapshot.left_out == (SkippedPath(path="sub dir/.env", why="secret"),)
    assert (await workspace.snapshot("r1")).left_out == snapshot.left_out
    names = person.git("ls-tree", "-r", "--name-only", "-z", snapshot.commit).split("\0")
    assert ".env" in names
    assert "sub dir/.env" not in names
    worktree = await workspace.open("r1", "main", snapshot.commit)
    assert await worktree.tree() == snapshot.tree
    assert not tree_of(Path(worktree.folder)).keys() & {"sub dir/.env"}


async def test_what_a_copy_lacks_is_lent(tmp_path: Path) -> None:
    person = Person(tmp_path / "tree")
    SHAPES["submodule"](person)
    person.write(".gitignore", "node_modules/\nenv/\nempty/\n")
    person.write("web/node_modules/x/index.js", "1")
    person.write("env/pyvenv.cfg", "home = /usr/bin")
    person.write(".venv/.gitignore", "*\n")
    person.write(".venv/pyvenv.cfg", "home = /usr/bin")
    person.write("cargo/target/x", "1")
    workspace = await person.workspace()
    lent = await workspace.list_shared_folders()
    assert {(one.path, one.kind) for one in lent} == {
        ("web/node_modules", "ignored"),
        ("env", "ignored"),
        (".venv", "ignored"),
        ("sub", "submodule"),
        ("nested", "repository"),
    }
    assert all(Path(one.source) == person.root / one.path for one in lent)
    person.write(".gitignore", "target/\n")
    assert ("cargo/target", "ignored") in {
        (one.path, one.kind) for one in await (await person.workspace()).list_shared_folders()
    }


async def test_what_a_large_file_is_to_git_stays_a_pointer(person: Person) -> None:
    person.write(".gitattributes", "*.model filter=lfs\n")
    person.git("config", "--global", "filter.lfs.clean", "cut -c1-7")
    person.write("big.model", "pointer and much more than that\n" * 100)
    person.commit_all("large")
    workspace = await person.workspace(largest=1000)
    snapshot = await workspace.snapshot("r1")
    assert [(one.path, one.why) for one in snapshot.left_out] == [("big.model", "too_large")]
    assert person.git("show", f"{snapshot.commit}:big.model").startswith("pointer\n")


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_fifty_thousand_files(tmp_path: Path) -> None:
    person = Person(tmp_path / "tree")
    plain(person)
    for number in range(50_000):
        person.write(f"many/{number % 100}/{number}.txt", f"{number}\n" * 50)
    person.commit_all("many")
    person.git("repack", "-adq")
    begun = time.monotonic()
    person.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "floor"))
    floor = time.monotonic() - begun
    person.git("worktree", "remove", "--force", str(tmp_path / "floor"))
    person.write("many/1/1.txt", "dirty\n")
    theirs = person.theirs()
    workspace = await person.workspace()
    began = time.monotonic()
    snapshot = await workspace.snapshot("r1")
    looked = time.monotonic()
    worktree = await workspace.open("r1", "ann@t1", snapshot.commit)
    made = time.monotonic()
    assert person.theirs() == theirs
    told = f"snapshot {looked - began:.2f} s, worktree {made - looked:.2f} s, git's own {floor:.2f} s"
    print(f"\n50,000 files: {told}")
    assert made - looked <= max(2.0, 1.5 * floor), told
    edit(Path(worktree.folder))
    applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(applied, AppliedChange)
    assert isinstance(await workspace.undo(applied.id), UndoResult)
    assert tree_of(person.root) == theirs["tree"]
    assert "missing" not in person.git("fsck", "--connectivity-only")
