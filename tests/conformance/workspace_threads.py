"""The part of the `Workspace` suite about several threads of one run: integrated in an order, adopted one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from greenroom.core.ports.workspace import (
    AppliedChange,
    CommitInfo,
    Conflicts,
    StepCommit,
    UndoResult,
    Workspace,
    Worktree,
    scratch_thread,
)
from tests.conformance.workspace_case import FILES, WorkspaceCase, edit_everything, opened, tree_of
from tests.conformance.workspace_runs import reason

MAIN = "main"


def info(thread: str, key: str = "") -> CommitInfo:
    """Return the author of a commit of this thread."""
    agent = f"{thread}-writer"
    return CommitInfo(
        run="r1", key=key or f"hand in {thread}", agent=agent, task="t1", step=f"{agent}#1", summary=f"Do {thread}"
    )


def put(worktree: Worktree, name: str, text: str, *, mode: int = 0o644) -> None:
    """Write a file in a worktree."""
    place = Path(worktree.folder, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(mode)


def read(worktree: Worktree, name: str) -> str:
    """Read a file of a worktree."""
    return Path(worktree.folder, name).read_text()


async def worked_on(workspace: Workspace, thread: str, name: str, text: str) -> Worktree:
    """Write a file in a thread's own worktree, and commit it."""
    worktree = await workspace.open("r1", thread, await workspace.tip("r1", MAIN))
    put(worktree, name, text)
    assert (await worktree.commit(info(thread, f"write {name} {text}"))).commit
    return worktree


async def integrated(workspace: Workspace, thread: str, key: str = "") -> StepCommit:
    done = await workspace.integrate("r1", thread, MAIN, info(thread, key))
    assert isinstance(done, StepCommit)
    return done


async def merged(
    workspace: Workspace, thread: str, onto: str, key: str = "", contents: Mapping[str, bytes | None] | None = None
) -> StepCommit:
    done = await workspace.merge("r1", thread, onto, info(thread, key), contents or {})
    assert isinstance(done, StepCommit)
    return done


class ThreadsConformance(WorkspaceCase):
    """Several threads of one run."""

    async def test_threads_that_start_together_are_integrated_one_after_the_other(
        self, workspace: Workspace, root: Path
    ) -> None:
        base, before = (await workspace.snapshot("r1")).commit, tree_of(root)
        first, second = await asyncio.gather(
            worked_on(workspace, "code-1", "code/c.py", "1\n"), worked_on(workspace, "code-2", "new/d.py", "2\n")
        )
        assert first.base == second.base == base
        made = [await integrated(workspace, thread) for thread in ("code-2", "code-1")]
        assert await workspace.tip("r1", MAIN) == made[1].commit
        assert made[1].tree == await workspace.tree(made[1].commit)
        changed = {change.path for change in (await workspace.diff(base, made[1].commit)).changes}
        assert changed == {"code/c.py", "new/d.py"}
        assert {change.path for change in (await workspace.diff(made[0].commit, made[1].commit)).changes} == {
            "code/c.py"
        }
        assert tree_of(root) == before, "the person's files are theirs"

    async def test_the_next_thread_starts_with_what_is_integrated(self, workspace: Workspace) -> None:
        await workspace.snapshot("r1")
        await worked_on(workspace, "code", "code/c.py", "1\n")
        done = await integrated(workspace, "code")
        tests = await worked_on(workspace, "test", "code/test_c.py", "2\n")
        assert tests.base == done.commit
        assert read(tests, "code/c.py") == "1\n"
        await integrated(workspace, "test")
        assert await reason(workspace.integrate("r7", "test", MAIN, info("test"))) == "name"

    async def test_a_worktree_of_the_target_has_the_files_at_once(self, workspace: Workspace) -> None:
        main = await opened(workspace, thread=MAIN)
        worktree = await worked_on(workspace, "code", "new/d.py", "1\n")
        edit_everything(Path(worktree.folder))
        await worktree.commit(info("code", "edit"))
        done = await integrated(workspace, "code")
        assert (await main.tip(), await main.tree()) == (done.commit, done.tree)
        assert tree_of(Path(main.folder)) == tree_of(Path(worktree.folder))
        put(main, "a.txt", "mended\n")
        mended = await main.commit(info("lead", "mend"))
        changed = (await workspace.diff(done.commit, mended.commit)).changes
        assert [change.path for change in changed] == ["a.txt"], "what was integrated is not taken back"

    async def test_uncommitted_files_of_the_target_are_never_lost(self, workspace: Workspace) -> None:
        main = await opened(workspace, thread=MAIN)
        await worked_on(workspace, "code", "a.txt", "theirs\n")
        put(main, "mine.txt", "mine\n")
        assert await reason(workspace.integrate("r1", "code", MAIN, info("code"))) == "state"
        assert await main.tip() == main.base
        assert read(main, "mine.txt") == "mine\n"
        assert read(main, "a.txt") == FILES["a.txt"].decode()

    async def test_asked_again_it_is_the_same_commit(self, workspace: Workspace) -> None:
        await workspace.snapshot("r1")
        worktree = await worked_on(workspace, "code", "a.txt", "1\n")
        done = await integrated(workspace, "code")
        put(worktree, "a.txt", "2\n")
        await worktree.commit(info("code", "again"))
        assert await integrated(workspace, "code") == done, "the key decides"
        assert await workspace.tip("r1", MAIN) == done.commit
        assert (await integrated(workspace, "code", "another key")).commit not in ("", done.commit)

    async def test_without_commits_there_is_nothing_to_integrate(self, workspace: Workspace) -> None:
        base = (await workspace.snapshot("r1")).commit
        assert await integrated(workspace, "review") == StepCommit(commit="", tree=await workspace.tree(base))
        assert await workspace.tip("r1", MAIN) == base

    async def test_a_conflict_names_both_sides_and_changes_nothing(self, workspace: Workspace) -> None:
        main = await opened(workspace, thread=MAIN)
        await worked_on(workspace, "code-1", "a.txt", "1\n")
        await worked_on(workspace, "code-2", "a.txt", "2\n")
        done = await integrated(workspace, "code-1")
        clash = await workspace.integrate("r1", "code-2", MAIN, info("code-2"))
        assert isinstance(clash, Conflicts)
        ((path, why),) = [(item.path, item.why) for item in clash.clashes]
        assert path == "a.txt"
        assert why == "code-1 (code-1-writer), code-2 (code-2-writer)"
        assert (await main.tip(), await main.tree()) == (done.commit, done.tree)

    async def test_a_merge_moves_nothing_until_the_thread_advances(self, workspace: Workspace) -> None:
        main = await opened(workspace, thread=MAIN)
        await worked_on(workspace, "code-1", "b.txt", "1\n")
        await worked_on(workspace, "code-2", "c.txt", "2\n")
        first = await merged(workspace, "code-1", main.base)
        second = await merged(workspace, "code-2", first.commit)
        assert (await workspace.tip("r1", MAIN), await main.tip()) == (main.base, main.base)
        assert [await workspace.read(second.commit, name) for name in ("b.txt", "c.txt")] == [b"1\n", b"2\n"]
        for done in (first, first, second, first):
            await workspace.advance("r1", MAIN, done.commit)
        assert (await main.tip(), await main.tree()) == (second.commit, second.tree)
        assert read(main, "c.txt") == "2\n"
        assert await merged(workspace, "code-1", second.commit) == first, "the key decides"
        assert (await merged(workspace, "code-1", second.commit, "another key")).commit == "", "it is there"

    async def test_a_thread_that_moved_meanwhile_does_not_advance(self, workspace: Workspace) -> None:
        base = (await workspace.snapshot("r1")).commit
        await worked_on(workspace, "code-1", "b.txt", "1\n")
        await worked_on(workspace, "code-2", "c.txt", "2\n")
        late = await merged(workspace, "code-1", base)
        done = await integrated(workspace, "code-2")
        assert await reason(workspace.advance("r1", MAIN, late.commit)) == "state"
        assert await workspace.tip("r1", MAIN) == done.commit

    async def test_files_that_conflict_are_merged_as_they_are_resolved(self, workspace: Workspace) -> None:
        base = (await workspace.snapshot("r1")).commit
        one = await worked_on(workspace, "code-1", "a.txt", "1\n")
        put(one, "a.txt", "1\n", mode=0o755)
        put(one, "gone.txt", "1\n")
        await one.commit(info("code-1", "more"))
        two = await worked_on(workspace, "code-2", "a.txt", "2\n")
        put(two, "gone.txt", "2\n")
        put(two, "clean.txt", "2\n")
        await two.commit(info("code-2", "more"))
        done = await integrated(workspace, "code-1")
        clash = await workspace.merge("r1", "code-2", done.commit, info("code-2"), {"a.txt": b"both\n"})
        assert isinstance(clash, Conflicts), "one of two is resolved"
        assert {item.path for item in clash.clashes} == {"a.txt", "gone.txt"}
        versions = [await workspace.read(commit, "a.txt") for commit in (clash.base, clash.left, clash.right)]
        assert (clash.base, clash.left, versions) == (base, done.commit, [FILES["a.txt"], b"1\n", b"2\n"])
        assert await workspace.read(clash.base, "gone.txt") is None
        both = await merged(workspace, "code-2", done.commit, contents={"a.txt": b"both\n", "gone.txt": None})
        await workspace.advance("r1", MAIN, both.commit)
        main = await workspace.open("r1", MAIN, base)
        files = tree_of(Path(main.folder))
        assert files["a.txt"] == ("-rwxr-xr-x", b"both\n")
        assert (files["clean.txt"][1], "gone.txt" in files) == (b"2\n", False)

    async def test_what_two_threads_share_moves_with_an_integration(self, workspace: Workspace) -> None:
        base = (await workspace.snapshot("r1")).commit
        await worked_on(workspace, "code-1", "b.txt", "1\n")
        code = await worked_on(workspace, "code-2", "c.txt", "2\n")
        assert (
            await workspace.find_fork("r1", await workspace.tip("r1", "code-2"), await workspace.tip("r1", MAIN))
            == base
        )
        done = await integrated(workspace, "code-1")
        assert isinstance(await workspace.integrate("r1", MAIN, "code-2", info("code-2", "bring")), StepCommit)
        assert await workspace.find_fork("r1", await workspace.tip("r1", "code-2"), done.commit) == done.commit
        assert read(code, "b.txt") == "1\n"
        changed = (await workspace.diff(done.commit, await code.tip())).changes
        assert [change.path for change in changed] == ["c.txt"]
        assert await workspace.read(done.commit, "nothing.txt") is None
        assert {"b.txt", "a.txt"} <= set(await workspace.list_paths(done.commit))
        assert "c.txt" not in await workspace.list_paths(done.commit)

    async def test_many_threads_at_once_are_all_there(self, workspace: Workspace) -> None:
        base = (await opened(workspace, thread=MAIN)).base

        async def hand_in(thread: str) -> None:
            await worked_on(workspace, thread, f"{thread}.txt", thread)
            await integrated(workspace, thread)
            await workspace.close("r1", thread)

        threads = [f"code-{number}" for number in range(8)]
        await asyncio.gather(*map(hand_in, threads))
        tip = await workspace.tip("r1", MAIN)
        assert {change.path for change in (await workspace.diff(base, tip)).changes} == {
            f"{thread}.txt" for thread in threads
        }
        main = await opened(workspace, thread=MAIN)
        assert (await main.tip(), await main.tree()) == (tip, await workspace.tree(tip))

    async def test_scratch_worktrees_of_two_threads_are_apart(self, workspace: Workspace, cache: Path) -> None:
        await workspace.snapshot("r1")
        for thread in ("code-1", "code-2"):
            worktree = await worked_on(workspace, thread, "a.txt", thread)
            scratch = await workspace.open("r1", scratch_thread(thread), await worktree.tip())
            assert read(scratch, "a.txt") == thread
            put(scratch, "left by a check", "")
        statuses = {status.thread: status for status in await self.open_worktrees(cache).list()}
        assert len(statuses) == 4
        assert [statuses[scratch_thread(thread)].has_unsaved_work for thread in ("code-1", "code-2")] == [False, False]
        assert scratch_thread(MAIN) == "scratch"

    async def test_a_run_begins_with_each_thread_as_it_was(self, workspace: Workspace) -> None:
        base = (await workspace.snapshot("r1")).commit
        first = await worked_on(workspace, "code-1", "a.txt", "1\n")
        await worked_on(workspace, "code-2", "new.txt", "2\n")
        done = await integrated(workspace, "code-1")
        tips = {thread: await workspace.tip("r1", thread) for thread in (MAIN, "code-1", "code-2")}
        for _ in range(2):
            for thread, tip in tips.items():
                await workspace.adopt("r2", thread, "r1", tip)
        assert (await workspace.snapshot("r2")).commit == base
        assert {thread: await workspace.tip("r2", thread) for thread in tips} == tips
        assert tips[MAIN] == done.commit
        opened_there = await workspace.open("r2", "code-1", base)
        assert tree_of(Path(opened_there.folder)) == tree_of(Path(first.folder))
        more = CommitInfo(run="r2", key="hand in code-2", agent="ann", summary="Go on")
        went_on = await workspace.integrate("r2", "code-2", MAIN, more)
        assert isinstance(went_on, StepCommit)
        assert went_on.commit
        assert await workspace.tip("r1", MAIN) == done.commit, "the other one stays as it was"

    async def test_what_runs_take_is_measured_by_run(self, workspace: Workspace, cache: Path) -> None:
        worktrees = self.open_worktrees(cache)
        assert (await worktrees.measure(), await workspace.measure("r1")) == ({}, 0)
        await workspace.snapshot("r1")
        await worked_on(workspace, "code-1", "a.txt", "1\n")
        (run, size), kept = next(iter((await worktrees.measure()).items())), await workspace.measure("r1")
        assert (run, size > sum(map(len, FILES.values())) - len(FILES["a.txt"]), kept > 0) == ("r1", True, True)
        await worked_on(workspace, "code-2", "new.bin", str([*range(5000)]))
        assert (await worktrees.measure())["r1"] > 2 * size - len(FILES["a.txt"])
        assert await workspace.measure("r1") > kept

    async def test_what_was_applied_and_undone_is_known_to_be(self, workspace: Workspace) -> None:
        base = (await workspace.snapshot("r1")).commit
        await worked_on(workspace, "code", "a.txt", "1\n")
        done = await integrated(workspace, "code")
        applied = await workspace.apply("r1", base, done.commit)
        assert isinstance(applied, AppliedChange)
        (kept,) = await workspace.list_kept_runs()
        assert (kept.unapplied, kept.undone) == ((), False)
        assert isinstance(await workspace.undo(applied.id), UndoResult)
        (kept,) = await workspace.list_kept_runs()
        assert (len(kept.unapplied), kept.undone) == (2, True)
        await worked_on(workspace, "doc", "b.txt", "2\n")
        (kept,) = await workspace.list_kept_runs()
        assert (len(kept.unapplied), kept.undone) == (3, False)
