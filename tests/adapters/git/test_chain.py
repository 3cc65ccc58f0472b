"""A team's change is applied as one commit per integrated thread, and undone as one."""

from __future__ import annotations

import pytest

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.ports.workspace import (
    AppliedChange,
    BranchResult,
    CommitInfo,
    CommitResult,
    StepCommit,
    UndoBlocked,
    UndoResult,
)
from tests.adapters.git.person import Person, put, status
from tests.conformance.workspace_case import tree_of

TITLES = ("Write the code", "Test it", "Document it")


async def hand_in(workspace: GitWorkspace, thread: str, title: str, files: dict[str, str]) -> str:
    """Let one thread write these files, and integrate it."""
    worktree = await workspace.open("r1", thread, await workspace.tip("r1", "main"))
    for name, text in files.items():
        put(worktree, name, text)
    info = CommitInfo(run="r1", key=f"k {thread}", agent=f"{thread}-1", step=f"{thread}-1#3", summary=f"Edit {thread}")
    await worktree.commit(info)
    done = CommitInfo(run="r1", key=f"in {thread}", agent=f"{thread}-1", step=f"{thread}-1#4", summary=title)
    made = await workspace.integrate("r1", thread, "main", done)
    assert isinstance(made, StepCommit)
    await workspace.close("r1", thread)
    return made.commit


async def team(person: Person) -> tuple[GitWorkspace, str]:
    """A run of three threads; return its base too."""
    workspace = await person.workspace()
    base = (await workspace.snapshot("r1")).commit
    await hand_in(workspace, "code", TITLES[0], {"code.py": "a = 1\nb = 2\n"})
    await hand_in(workspace, "test", TITLES[1], {"test_code.py": "import code\n"})
    await hand_in(workspace, "doc", TITLES[2], {"doc.md": "# Doc\n", "code.py": "a = 1\n# said\nb = 2\n"})
    return workspace, base


async def applied(workspace: GitWorkspace, base: str) -> str:
    done = await workspace.apply("r1", base, await workspace.tip("r1", "main"))
    assert isinstance(done, AppliedChange)
    return done.id


async def committed(workspace: GitWorkspace, base: str, *, squash: bool = False) -> CommitResult:
    return await workspace.commit(await applied(workspace, base), "Add the thing\n\nAll of it.", squash=squash)


def subjects(person: Person, of: str = "HEAD") -> list[str]:
    return person.git("log", "--first-parent", "--format=%s", of).splitlines()


async def test_each_thread_is_a_commit_of_the_person_with_its_own_files(person: Person) -> None:
    workspace, base = await team(person)
    done = await committed(workspace, base)
    assert done == CommitResult(commit=person.git("rev-parse", "HEAD").strip(), commits=3, fresh=True)
    assert subjects(person) == [*reversed(TITLES), "first"]
    assert person.git("log", "-3", "--format=%an <%ae> %cn %p").splitlines()[0].startswith("Pat <pat@x> Pat ")
    files = person.git("log", "--reverse", "-3", "--format=format:>", "--name-only").split(">")[1:]
    assert [part.split() for part in files] == [["code.py"], ["test_code.py"], ["code.py", "doc.md"]]
    assert status(person) == ""
    assert person.git("log", "-1", "--format=%b", "HEAD~1").startswith("Add the thing\n\nGreenroom-Run: r1\n")
    assert await workspace.tree(done.commit) == await workspace.tree(await workspace.tip("r1", "main"))
    assert await committed(workspace, base) == CommitResult(commit=done.commit, commits=3)


async def test_squashed_it_is_one_commit_with_the_persons_message(person: Person) -> None:
    workspace, base = await team(person)
    assert (await committed(workspace, base, squash=True)).commits == 1
    assert subjects(person) == ["Add the thing", "first"]


async def test_one_thread_is_one_commit_as_ever(person: Person) -> None:
    workspace = await person.workspace()
    base = (await workspace.snapshot("r1")).commit
    await hand_in(workspace, "code", TITLES[0], {"code.py": "a = 1\n"})
    await hand_in(workspace, "review", "Review it", {})
    assert (await committed(workspace, base)).commits == 1
    assert subjects(person) == ["Add the thing", "first"]


async def test_undo_removes_all_of_it_byte_for_byte(person: Person) -> None:
    person.write("mine.txt", "mine\n")
    workspace, base = await team(person)
    before, head = tree_of(person.root), person.git("rev-parse", "HEAD")
    done = await committed(workspace, base)
    undone = await workspace.undo("r1/1")
    assert isinstance(undone, UndoResult)
    assert set(undone.paths) == {"code.py", "test_code.py", "doc.md"}
    assert undone.commit == done.commit
    assert (tree_of(person.root), person.git("rev-parse", "HEAD"), status(person)) == (before, head, "?? mine.txt\n")
    assert (await committed(workspace, base)).commits == 3, "and it can be applied again"


async def test_with_commits_on_top_it_is_reverted_as_one(person: Person) -> None:
    workspace, base = await team(person)
    before = tree_of(person.root)
    await committed(workspace, base)
    person.write("later.txt", "later\n")
    person.commit_all("later")
    assert isinstance(await workspace.undo("r1/1"), UndoBlocked)
    assert isinstance(await workspace.undo("r1/1", revert=True), UndoResult)
    assert subjects(person) == ['Revert "Add the thing"', "later", *reversed(TITLES), "first"]
    (person.root / "later.txt").unlink()
    assert tree_of(person.root) == before


async def test_what_a_remote_has_in_part_is_not_removed(person: Person) -> None:
    workspace, base = await team(person)
    await committed(workspace, base)
    person.git("update-ref", "refs/remotes/origin/main", "HEAD~2")
    blocked = await workspace.undo("r1/1")
    assert isinstance(blocked, UndoBlocked)
    assert "origin/main" in blocked.why


async def test_what_the_person_did_since_is_below_and_their_staged_files_stay_staged(person: Person) -> None:
    workspace, base = await team(person)
    person.write("since.txt", "since\n")
    head = person.commit_all("since")
    person.write("staged.txt", "staged\n")
    person.git("add", "staged.txt")
    await committed(workspace, base)
    assert person.git("rev-parse", "HEAD~3").strip() == head
    assert status(person) == "A  staged.txt\n"
    for number in range(3):
        assert "since.txt" in person.git("ls-tree", "--name-only", f"HEAD~{number}").split()


async def test_what_is_mended_after_the_last_thread_is_in_the_last_commit(person: Person) -> None:
    workspace, base = await team(person)
    main = await workspace.open("r1", "main", base)
    put(main, "mended.txt", "mended\n")
    await main.commit(CommitInfo(run="r1", key="mend", agent="lead", summary="Mend it"))
    done = await committed(workspace, base)
    assert (subjects(person)[0], done.commits) == (TITLES[2], 3)
    assert "mended.txt" in person.git("show", "--name-only", "--format=", "HEAD").split()


async def test_hooks_run_once_and_what_they_format_is_kept(person: Person) -> None:
    hook = person.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho ran >>../ran\nprintf '# formatted\\n' >>code.py\ngit add code.py\n")
    hook.chmod(0o755)
    workspace, base = await team(person)
    done = await committed(workspace, base)
    assert (person.root.parent / "ran").read_text() == "ran\n"
    assert done.commits == 3
    assert person.git("show", "HEAD:code.py").endswith("# formatted\n")
    assert status(person) == ""
    assert isinstance(await workspace.undo("r1/1"), UndoResult)
    assert (subjects(person), status(person)) == (["first"], "")


async def test_a_message_that_a_hook_replaces_stays_on_one_commit(person: Person) -> None:
    hook = person.root / ".git/hooks/commit-msg"
    hook.write_text('#!/bin/sh\necho "JIRA-1: all new" >"$1"\n')
    hook.chmod(0o755)
    workspace, base = await team(person)
    assert (await committed(workspace, base)).commits == 1
    assert subjects(person) == ["JIRA-1: all new", "first"]
    assert isinstance(await workspace.undo("r1/1"), UndoResult)


async def test_a_branch_has_the_same_commits(person: Person) -> None:
    workspace, base = await team(person)
    theirs = person.theirs()
    made = await workspace.branch("work", base, await workspace.tip("r1", "main"), "Add the thing")
    assert isinstance(made, BranchResult)
    assert subjects(person, "work") == [*reversed(TITLES), "first"]
    person.git("branch", "--quiet", "-D", "work")
    now = person.theirs()
    assert {name: now[name] for name in ("tree", "git", "dates", "refs")} == {
        name: theirs[name] for name in ("tree", "git", "dates", "refs")
    }


@pytest.mark.parametrize(("line", "thread"), [(1, "code"), (2, "doc"), (3, "code")])
@pytest.mark.parametrize("is_committed", [True, False])
async def test_blame_names_the_step_of_a_line_through_the_merges(
    person: Person, line: int, thread: str, is_committed: bool
) -> None:
    workspace, base = await team(person)
    await (committed(workspace, base) if is_committed else applied(workspace, base))
    found = await workspace.blame("code.py", line)
    assert found is not None
    assert found.step is not None
    assert (found.step.step, found.step.agent) == (f"{thread}-1#3", f"{thread}-1")
    assert bool(found.commit) == is_committed


async def test_a_run_that_began_with_uncommitted_edits_is_split_on_top_of_the_commit(person: Person) -> None:
    person.write("edited.txt", "not committed\n")
    workspace, base = await team(person)
    assert (await committed(workspace, base)).commits == 3
    assert "edited.txt" not in person.git("ls-tree", "--name-only", "HEAD")
    assert tree_of(person.root)["edited.txt"][1] == b"not committed\n"
