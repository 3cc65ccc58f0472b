"""What git ignores is in every worktree and in no commit; environments are never committed, secrets never shown."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from greenroom.adapters.git import ignored_files
from greenroom.adapters.git.files import remove_tree
from greenroom.core.ports.workspace import Conflicts, SharedFolder, SkippedPath
from tests.adapters.git.person import Person, opened, worked
from tests.adapters.git.shapes import plain
from tests.conformance.workspace_case import tree_of


def secret(path: str) -> bool:
    return path.endswith((".env", ".pem"))


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "tree")
    plain(person)
    person.write(".gitignore", "_version.py\n*.so\n.env\nbuild/\n.venv/\nother/\n")
    person.commit_all("ignores")
    person.write("keep/_version.py", "1\n")
    person.write("ext.so", b"\0so")
    person.write(".env", "KEY=1\n")
    person.write("build/out/x", "x\n")
    person.write("build/key.pem", "secret\n")
    person.write(".venv/pyvenv.cfg", "home = /usr/bin\n")
    person.write(".venv/lib/cacert.pem", "public\n")
    plain(Person(person.root / "other", person.home))
    return person


async def test_ignored_files_are_copied_and_ignored_folders_lent(person: Person) -> None:
    workspace = await person.workspace(secret=secret)
    worktree = await opened(workspace)
    folder = Path(worktree.folder)
    assert ((folder / "keep/_version.py").read_text(), (folder / "ext.so").read_bytes()) == ("1\n", b"\0so")
    assert not (folder / ".env").exists()
    assert (folder / "ext.so").stat().st_ino != (person.root / "ext.so").stat().st_ino
    assert await workspace.list_shared_folders() == (
        SharedFolder(path=".venv", source=str(person.root / ".venv"), kind="ignored"),
        SharedFolder(path="build", source=str(person.root / "build"), kind="ignored", hidden=("key.pem",)),
    )
    (folder / "ext.so").write_bytes(b"other")
    for name in (".venv", "build"):
        (folder / name).symlink_to(person.root / name)
    assert await worktree.tree() == (await workspace.snapshot("r1")).tree, "neither is in a commit"
    assert (person.root / "ext.so").read_bytes() == b"\0so"


async def test_an_environment_that_git_does_not_ignore_is_in_no_commit(person: Person) -> None:
    person.write("env/pyvenv.cfg", "home = /usr/bin\n")
    person.write("env/bin/python", "x\n")
    person.write("web/node_modules/x/index.js", "1\n")
    person.write("web/index.js", "1\n")
    workspace = await person.workspace(secret=secret)
    snapshot = await workspace.snapshot("r1")
    left = (SkippedPath(path="env", why="environment"), SkippedPath(path="web/node_modules", why="environment"))
    assert tuple(item for item in snapshot.left_out if item.why == "environment") == left
    assert {"env", "web/node_modules"} <= {item.path for item in await workspace.list_shared_folders()}
    worktree = await workspace.open("r1", "main", snapshot.commit)
    inside = Person(Path(worktree.folder), person.home)
    inside.write("made/pyvenv.cfg", "home = /usr/bin\n")
    inside.write("made/lib/x.py", "x\n")
    (Path(worktree.folder) / "env").symlink_to(person.root / "env")
    assert await worktree.tree() == snapshot.tree
    inside.write("a.txt", "work\n")
    done = await worked(worktree)
    assert person.git("diff", "--name-only", worktree.base, done.commit) == "a.txt\n"


async def test_a_node_modules_of_which_git_knows_something_is_work(person: Person) -> None:
    person.write("node_modules/own/index.js", "1\n")
    person.git("add", "--force", "node_modules")
    person.commit_all("vendored")
    worktree = await opened(await person.workspace())
    Person(Path(worktree.folder)).write("node_modules/own/more.js", "2\n")
    done = await worked(worktree)
    assert person.git("diff", "--name-only", worktree.base, done.commit) == "node_modules/own/more.js\n"


async def test_what_is_too_much_is_not_copied(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ignored_files, "MAX_COPIED_FILES", 1)
    worktree = await opened(await person.workspace(secret=secret))
    copied = [name for name in tree_of(Path(worktree.folder)) if name.endswith(("ext.so", "_version.py"))]
    assert copied == ["ext.so"]


async def test_secrets_of_another_repository_are_hidden(person: Person) -> None:
    inner = Person(person.root / "clone", person.home)
    plain(inner)
    inner.write(".env", "KEY=1\n")
    lent = {folder.path: folder for folder in await (await person.workspace(secret=secret)).list_shared_folders()}
    assert (lent["clone"].kind, lent["clone"].hidden) == ("repository", (".env", ".git/config"))


async def test_what_was_ignored_is_in_no_commit_when_the_change_ignores_it_no_more(person: Person) -> None:
    workspace = await person.workspace(secret=secret)
    worktree = await opened(workspace)
    folder = Path(worktree.folder)
    (folder / ".gitignore").write_text("build/\n.venv/\nother/\n")
    change = await workspace.diff(worktree.base, (await worked(worktree)).commit)
    assert [item.path for item in change.changes] == [".gitignore"]


async def test_a_folder_with_ignored_files_is_not_replaced_by_a_file(person: Person) -> None:
    person.write("conf/a.txt", "1\n")
    person.commit_all("conf")
    person.write("conf/mine.so", b"mine")
    workspace = await person.workspace(secret=secret)
    worktree = await opened(workspace)
    folder = Path(worktree.folder)
    shutil.rmtree(folder / "conf")
    (folder / "conf").write_text("now a file\n")
    applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(applied, Conflicts)
    assert [(clash.path, "untracked" in clash.why) for clash in applied.clashes] == [("conf", True)]
    assert (person.root / "conf/mine.so").read_bytes() == b"mine"


def test_a_folder_that_may_not_even_be_looked_into_is_removed(tmp_path: Path) -> None:
    inner = tmp_path / "layer" / "work" / "work"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    inner.chmod(0)
    child = os.fork()
    if child == 0:  # root may look into everything
        if os.geteuid() == 0:
            for place in (tmp_path, *tmp_path.rglob("*")):
                os.chown(place, 65534, 65534)
            os.chdir(tmp_path)
            os.setuid(65534)
        try:
            remove_tree(Path("layer") if Path.cwd() == tmp_path else tmp_path / "layer")
        finally:
            os._exit(int((Path("layer") if Path.cwd() == tmp_path else tmp_path / "layer").exists()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not (tmp_path / "layer").exists()
