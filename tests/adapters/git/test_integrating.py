"""Threads of a run are merged whole or not at all: killed, with odd names, and in odd repositories."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from greenroom.adapters.git.files import write_json
from greenroom.adapters.git.refs import make_thread_ref
from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.adapters.git.worktree import MOVE_NAME
from greenroom.core.ports.workspace import CommitInfo, Conflicts, StepCommit, Worktree
from tests.adapters.git.killed import HAND_IN, acted, live
from tests.adapters.git.person import Person, put, worked
from tests.conformance.workspace_case import tree_of


async def team(person: Person) -> tuple[GitWorkspace, Worktree]:
    """A worktree of the target, and a thread with one commit that is not in it."""
    workspace = await person.workspace()
    base = (await workspace.snapshot("r1")).commit
    main, code = [await workspace.open("r1", thread, base) for thread in ("main", "code")]
    for name in ("new.txt", "other.txt"):
        put(code, name, "new\n")
    await worked(code, "k2")
    return workspace, main


def got(worktree: Worktree) -> dict[str, str]:
    """The contents of a worktree, by path."""
    return {name: content.decode(errors="replace") for name, (_, content) in tree_of(Path(worktree.folder)).items()}


def remove(worktree: Worktree, name: str) -> None:
    Path(worktree.folder, name).unlink()


def graph(person: Person, thread: str = "main") -> list[str]:
    """The subjects of a thread's own commits, newest first."""
    ref = make_thread_ref("r1", thread)
    return person.git("log", "--first-parent", "--format=%s %p", ref, "^refs/greenroom/r1/@base").splitlines()


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("has_worktree", [True, False])
async def test_a_kill_before_any_call_leaves_it_whole_or_undone(person: Person, has_worktree: bool) -> None:
    kills = 0
    while await killed_at(person, kills + 1, has_worktree=has_worktree):
        kills += 1
    assert kills >= (5 if has_worktree else 2)
    print(f"\nintegrate: killed before each of {kills} calls, merged once each time")


@pytest.mark.parametrize("at", [2, 4, 5])
async def test_a_killed_integration_is_finished_by_the_next_one(person: Person, at: int) -> None:
    assert await killed_at(person, at, has_worktree=True)


async def killed_at(person: Person, at: int, *, has_worktree: bool) -> bool:
    """Kill an integration there, open the target, and integrate again; False when it came to its end before."""
    shutil.rmtree(person.root.parent / "cache", ignore_errors=True)
    for ref in person.git("for-each-ref", "--format=%(refname)", "refs/greenroom").split():
        person.git("update-ref", "-d", ref)
    person.git("worktree", "prune")
    workspace, main = await team(person)
    if not has_worktree:
        await workspace.close("r1", "main")
    theirs = tree_of(person.root)
    killed = live(person, "integrate", ("", ""), at)
    workspace = await person.workspace()
    main = await workspace.open("r1", "main", main.base)
    assert await main.tree() == await workspace.tree(await main.tip()), "nothing is uncommitted, nothing is taken back"
    await acted(workspace, "integrate", "", "")
    tip = await main.tip()
    assert len(graph(person)) == 1
    assert (await main.tree(), got(main)["new.txt"]) == (await workspace.tree(tip), "new\n")
    assert tree_of(person.root) == theirs
    return killed


async def test_files_that_a_kill_left_half_written_are_all_written(person: Person) -> None:
    workspace, main = await team(person)
    done = await workspace.integrate("r1", "code", "main", HAND_IN)
    assert isinstance(done, StepCommit)
    place = Path(main.folder).parent
    write_json(place / MOVE_NAME, {"commit": done.commit})
    remove(main, "new.txt")
    put(main, "other.txt", "to")
    again = await (await person.workspace()).open("r1", "main", main.base)
    assert (got(again)["new.txt"], got(again)["other.txt"]) == ("new\n", "new\n")
    assert await again.tree() == done.tree
    assert not (place / MOVE_NAME).exists()


async def test_a_move_that_never_began_is_forgotten(person: Person) -> None:
    workspace, main = await team(person)
    write_json(Path(main.folder).parent / MOVE_NAME, {"commit": await workspace.tip("r1", "code")})
    put(main, "mine.txt", "mine\n")
    assert (await worked(main, "k9")).commit == await main.tip()
    assert got(main)["mine.txt"] == "mine\n"
    assert "new.txt" not in got(main)


async def test_the_commit_has_both_parents_and_names_its_step(person: Person) -> None:
    workspace, main = await team(person)
    await workspace.close("r1", "main")
    done = await workspace.integrate("r1", "code", "main", HAND_IN)
    assert isinstance(done, StepCommit)
    code = await workspace.tip("r1", "code")
    assert person.git("log", "-1", "--format=%P", done.commit).split() == [main.base, code]
    message = person.git("log", "-1", "--format=%B", done.commit)
    assert message.startswith("Do the code\n")
    assert [line for line in message.splitlines() if line.startswith("Greenroom-")] == [
        "Greenroom-Run: r1",
        "Greenroom-Task: t1",
        "Greenroom-Agent: ann",
        "Greenroom-Step: ann#9",
        "Greenroom-Key: hand in",
        "Greenroom-Thread: code",
    ]


async def test_a_file_that_one_deleted_and_the_other_changed_names_both(person: Person) -> None:
    person.write("dir/gone.txt", "1\n")
    person.commit_all("more")
    workspace, _ = await team(person)
    base = (await workspace.snapshot("r1")).commit
    for thread, text in (("doc", ""), ("refactor", "2\n")):
        worktree = await workspace.open("r1", thread, base)
        put(worktree, "dir/gone.txt", text)
        if not text:
            remove(worktree, "dir/gone.txt")
        await worktree.commit(CommitInfo(run="r1", key=thread, summary="x"))
    for thread in ("code", "doc"):
        made = CommitInfo(run="r1", key=f"in {thread}", agent=thread, summary=thread)
        assert isinstance(await workspace.integrate("r1", thread, "main", made), StepCommit)
    made = CommitInfo(run="r1", key="in refactor", agent="pat", summary="refactor")
    clash = await workspace.integrate("r1", "refactor", "main", made)
    assert isinstance(clash, Conflicts)
    assert [(item.path, item.why) for item in clash.clashes] == [("dir/gone.txt", "doc, refactor (pat)")]
    assert len(graph(person)) == 2


async def test_opening_one_thread_does_not_wait_for_another(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, main = await team(person)
    slow, has_begun = asyncio.Event(), asyncio.Event()
    copy_files = workspace._ignored.copy_files

    async def wait(tree: Path) -> None:
        if "slow" in str(tree):
            has_begun.set()
            await slow.wait()
        await copy_files(tree)

    monkeypatch.setattr(workspace._ignored, "copy_files", wait)
    opening = asyncio.create_task(workspace.open("r1", "slow", main.base))
    await has_begun.wait()
    quick = await workspace.open("r1", "quick", main.base)
    put(quick, "quick.txt", "1\n")
    await worked(quick, "k3")
    assert isinstance(await workspace.integrate("r1", "quick", "main", HAND_IN), StepCommit)
    await workspace.close("r1", "quick")
    assert not opening.done()
    slow.set()
    assert got(await opening)
