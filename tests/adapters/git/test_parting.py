"""A commit of work has the work alone: what a person has not committed in the same files stays theirs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from greenroom.adapters.git.workspaces import GitWorkspace
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import Applied, Buried, Undone, WorkspaceFault
from tests.adapters.git.person import Person, opened, put, worked
from tests.adapters.git.shapes import TEXT, plain
from tests.adapters.git.test_committing import hook

MINE = TEXT.replace("line 2\n", "mine\n")
STAGED = TEXT.replace("line 9\n", "staged\n")


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "tree")
    plain(person)
    return person


def with_work(text: str) -> str:
    return text.replace("line 20\n", "work\n")


async def applied_to(person: Person, *more: str) -> tuple[GitWorkspace, Applied]:
    """One line is changed in a copy, and brought to their tree."""
    workspace = await person.workspace()
    worktree = await opened(workspace)
    for name in ("a.txt", *more):
        put(worktree, name, with_work((person.root / name).read_text()))
    done = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(done, Applied)
    return workspace, done


def texts(person: Person) -> tuple[str, str, str]:
    """The file as it is committed, as it is staged, and as it lies there."""
    return person.git("show", "HEAD:a.txt"), person.git("show", ":a.txt"), (person.root / "a.txt").read_text()


async def test_lines_of_their_own_stay_in_no_commit(person: Person) -> None:
    person.write("a.txt", MINE)
    before = person.theirs()["tree"], person.git("status", "--porcelain"), texts(person)
    workspace, applied = await applied_to(person)
    made = await workspace.commit(applied.id, "Do it")
    assert texts(person) == (with_work(TEXT), with_work(TEXT), with_work(MINE))
    assert made.mixed == ("a.txt",)
    assert await workspace.commit(applied.id, "Again") == evolve(made, fresh=False)
    assert isinstance(await workspace.undo(applied.id), Undone)
    assert (person.theirs()["tree"], person.git("status", "--porcelain"), texts(person)) == before


async def test_what_they_have_staged_is_staged_afterwards(person: Person) -> None:
    both = STAGED.replace("line 28\n", "unstaged\n")
    person.write("a.txt", STAGED)
    person.git("add", "a.txt")
    person.write("a.txt", both)
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    assert texts(person) == (with_work(TEXT), with_work(STAGED), with_work(both))
    assert isinstance(await workspace.undo(applied.id), Undone)
    assert texts(person) == (TEXT, STAGED, both)


async def test_a_staged_change_that_the_tree_has_not_any_more_is_no_part_of_the_commit(person: Person) -> None:
    person.write("a.txt", STAGED)
    person.git("add", "a.txt")
    person.write("a.txt", TEXT)
    workspace, applied = await applied_to(person)
    assert (await workspace.commit(applied.id, "Do it")).mixed == ("a.txt",)
    assert texts(person) == (with_work(TEXT), with_work(STAGED), with_work(TEXT))


async def test_what_cannot_be_told_apart_is_applied_and_not_committed(person: Person) -> None:
    person.write("a.txt", TEXT.replace("line 19\n", "mine\n"))
    person.write("new.txt", "line 20\n")
    head = person.git("rev-parse", "HEAD")
    before = texts(person)
    workspace, applied = await applied_to(person, "new.txt")
    with pytest.raises(WorkspaceFault, match=r"'a.txt', 'new.txt' cannot be told apart.*are applied") as caught:
        await workspace.commit(applied.id, "Do it")
    assert (caught.value.reason, person.git("rev-parse", "HEAD")) == ("mixed", head)
    assert (person.root / "new.txt").read_text() == "work\n"
    assert person.git("status", "--porcelain") == " M a.txt\n?? new.txt\n"
    assert isinstance(await workspace.undo(applied.id), Undone)
    assert texts(person) == before


async def test_hooks_see_what_is_committed_and_may_say_no(person: Person) -> None:
    hook(person, "pre-commit", "git show :a.txt >.git/seen; exit 1")
    person.write("a.txt", MINE)
    index = person.git("ls-files", "--stage")
    workspace, applied = await applied_to(person)
    with pytest.raises(WorkspaceFault) as caught:
        await workspace.commit(applied.id, "Do it")
    assert caught.value.reason == "hook"
    assert (person.root / ".git/seen").read_text() == with_work(TEXT)
    assert (person.git("ls-files", "--stage"), texts(person)[2]) == (index, with_work(MINE))


async def test_a_commit_on_top_takes_back_the_work_and_leaves_their_lines(person: Person) -> None:
    person.write("a.txt", MINE)
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    person.git("commit", "--quiet", "--allow-empty", "--message", "another")
    assert isinstance(await workspace.undo(applied.id), Buried)
    assert isinstance(await workspace.undo(applied.id, revert=True), Undone)
    assert texts(person) == (TEXT, TEXT, MINE)
    assert person.git("log", "--format=%s").splitlines() == ['Revert "Do it"', "another", "Do it", "first"]


async def test_a_commit_on_top_that_a_hook_refuses_leaves_all_as_it_was(person: Person) -> None:
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    person.git("commit", "--quiet", "--allow-empty", "--message", "another")
    refusing = hook(person, "pre-commit", "exit 1")
    before = texts(person)
    with pytest.raises(WorkspaceFault) as caught:
        await workspace.undo(applied.id, revert=True)
    assert (caught.value.reason, texts(person)) == ("hook", before)
    refusing.unlink()
    assert isinstance(await (await person.workspace()).undo(applied.id, revert=True), Undone)


async def test_an_index_that_a_kill_left_as_it_was_is_set_by_who_asks_again(person: Person) -> None:
    person.write("a.txt", MINE)
    old = person.git("rev-parse", ":a.txt").strip()
    workspace, applied = await applied_to(person)
    made = await workspace.commit(applied.id, "Do it")
    person.git("update-index", "--cacheinfo", f"100644,{old},a.txt")
    assert await workspace.commit(applied.id, "Again") == evolve(made, fresh=False)
    assert texts(person) == (with_work(TEXT), with_work(TEXT), with_work(MINE))


@pytest.mark.parametrize("counts", [True, False])
async def test_permissions_that_are_theirs_stay_so_where_git_looks_at_them(person: Person, counts: bool) -> None:
    person.git("config", "core.fileMode", str(counts).lower())
    (person.root / "a.txt").chmod(0o755)
    workspace, applied = await applied_to(person)
    made = await workspace.commit(applied.id, "Do it")
    assert made.mixed == (("a.txt",) if counts else ())
    assert person.git("ls-tree", "HEAD", "a.txt").startswith("100644")
    assert person.git("show", "HEAD:a.txt") == with_work(TEXT)


@pytest.mark.parametrize("converts", ["true", "false"])
async def test_line_ends_are_theirs_unless_git_changes_them_itself(person: Person, converts: str) -> None:
    person.git("config", "core.autocrlf", converts)
    person.write("a.txt", TEXT.replace("\n", "\r\n"))
    workspace = await person.workspace()
    worktree = await opened(workspace)
    Person(Path(worktree.folder)).write("a.txt", with_work(TEXT).replace("\n", "\r\n"))
    applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(applied, Applied)
    if converts == "true":
        assert (await workspace.commit(applied.id, "Do it")).mixed == ()
        assert person.git("show", "HEAD:a.txt") == with_work(TEXT)
    else:
        with pytest.raises(WorkspaceFault, match="cannot be told apart"):
            await workspace.commit(applied.id, "Do it")


async def test_what_somebody_stages_while_hooks_run_stays_staged(person: Person) -> None:
    blob = person.git("hash-object", "-w", "run.sh").strip()
    line = f"env -u GIT_INDEX_FILE git update-index --cacheinfo 100644,{blob},a.txt"
    hook(person, "pre-commit", line)
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    assert person.git("rev-parse", ":a.txt").strip() == blob
    assert person.git("show", "HEAD:a.txt") == with_work(TEXT)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
async def test_a_file_that_git_is_told_to_look_away_from_is_committed_all_the_same(person: Person, flag: str) -> None:
    person.git("update-index", flag, "a.txt")
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    assert person.git("show", "HEAD:a.txt") == with_work(TEXT)


def turned_round(folder: Path) -> None:
    """A folder becomes a file, and a file a folder."""
    (folder / "go/old.txt").unlink()
    (folder / "go").rmdir()
    (folder / "go").write_text("a file\n")
    (folder / "run.sh").unlink()
    (folder / "run.sh").mkdir()
    (folder / "run.sh/main").write_text("a folder\n")


async def test_a_folder_that_becomes_a_file_is_committed_and_taken_back(person: Person) -> None:
    person.write("own.log", "ignored\n")
    workspace = await person.workspace()
    worktree = await opened(workspace)
    turned_round(Path(worktree.folder))
    applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(applied, Applied)
    made = await workspace.commit(applied.id, "Do it")
    assert made.mixed == ()
    assert person.git("ls-tree", "-r", "--name-only", "HEAD").split() == ["a.txt", "go", "keep/b.py", "run.sh/main"]
    assert person.git("status", "--porcelain") == "?? own.log\n"
    assert isinstance(await workspace.undo(applied.id), Undone)
    assert person.git("status", "--porcelain") == "?? own.log\n"


async def test_a_file_that_they_made_a_folder_is_not_committed_as_the_works(person: Person) -> None:
    (person.root / "run.sh").unlink()
    person.write("run.sh/main", "mine\n")
    workspace = await person.workspace()
    worktree = await opened(workspace)
    folded(Path(worktree.folder))
    applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(applied, Applied)
    with pytest.raises(WorkspaceFault, match=r"'run.sh'.*cannot be told apart"):
        await workspace.commit(applied.id, "Do it")
    assert isinstance(await workspace.undo(applied.id), Undone)
    assert (person.root / "run.sh/main").read_text() == "mine\n"


def folded(folder: Path) -> None:
    """Their folder becomes a file again, and another one."""
    (folder / "run.sh/main").unlink()
    (folder / "run.sh").rmdir()
    (folder / "run.sh").write_text("work\n")


async def test_files_that_nobody_touched_are_not_read_again(person: Person) -> None:
    person.git("config", "filter.slow.clean", "sh -c 'echo read >>.git/read; cat'")
    person.write(".gitattributes", "*.big filter=slow\n")
    os.utime(person.write("large.big", "large\n"), (1, 1))
    person.commit_all("second")
    person.git("status")
    person.write(".git/read", "")
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    assert (person.root / ".git/read").read_text() == ""


async def test_what_does_not_go_with_what_they_have_staged_is_not_committed(person: Person) -> None:
    person.write("a.txt", TEXT.replace("line 20\n", "staged\n"))
    person.git("add", "a.txt")
    person.write("a.txt", TEXT)
    before = texts(person)
    workspace, applied = await applied_to(person)
    with pytest.raises(WorkspaceFault, match=r"'a.txt' cannot be told apart") as caught:
        await workspace.commit(applied.id, "Do it")
    assert (caught.value.reason, texts(person)[:2]) == ("mixed", before[:2])


async def test_a_folder_that_becomes_a_file_fits_on_a_branch(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    turned_round(Path(worktree.folder))
    made = await workspace.branch("work", worktree.base, (await worked(worktree)).commit, "On a branch")
    assert not made.whole
    assert person.git("ls-tree", "-r", "--name-only", "work").split() == ["a.txt", "go", "keep/b.py", "run.sh/main"]
