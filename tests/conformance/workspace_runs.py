"""The part of the `Workspace` suite about runs: what is kept, how a run starts from another, how runs are deleted."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path

import pytest

from greenroom.core.ports.workspace import AppliedChange, Conflicts, RetainedRun, Workspace, WorkspaceFault, Worktree
from tests.conformance.workspace_case import (
    WorkspaceCase,
    edit_everything,
    is_there,
    opened,
    tree_of,
    worked,
)

THREAD = "ann@t1"


async def reason(work: Awaitable[object]) -> str:
    """Return the reason of the refusal, or ""."""
    try:
        await work
    except WorkspaceFault as fault:
        return fault.reason
    return ""


class RunsConformance(WorkspaceCase):
    """Runs and what is kept of them."""

    async def test_a_closed_worktree_is_gone_and_its_commits_are_not(
        self, workspace: Workspace, worktree: Worktree
    ) -> None:
        edit_everything(Path(worktree.folder))
        done, tree = await worked(worktree), tree_of(Path(worktree.folder))
        assert await workspace.tip("r1", THREAD) == done.commit
        await workspace.close("r1", THREAD)
        assert not is_there(worktree.folder)
        await workspace.close("r1", THREAD)
        assert await workspace.tip("r1", THREAD) == done.commit, "nobody has to open it to know"
        assert not is_there(worktree.folder)
        assert tree_of(Path((await workspace.open("r1", THREAD, worktree.base)).folder)) == tree

    async def test_a_thread_without_commits_is_where_its_run_began(self, workspace: Workspace) -> None:
        assert await workspace.tip("r1", THREAD) == ""
        snapshot = await workspace.snapshot("r1")
        assert await workspace.tip("r1", THREAD) == snapshot.commit

    @pytest.mark.parametrize("at", ["its end", "its beginning"])
    async def test_a_run_begins_as_another_was(
        self, workspace: Workspace, worktree: Worktree, root: Path, at: str
    ) -> None:
        before = tree_of(Path(worktree.folder))
        edit_everything(Path(worktree.folder))
        done = await worked(worktree)
        (root / "a.txt").write_text("later")
        await workspace.adopt("r2", THREAD, "r1", done.commit if at == "its end" else "")
        await workspace.adopt("r2", THREAD, "r1", "")
        assert (await workspace.snapshot("r2")).commit == worktree.base
        other = await opened(workspace, "r2")
        assert tree_of(Path(other.folder)) == (tree_of(Path(worktree.folder)) if at == "its end" else before)
        assert await worktree.tip() == done.commit, "the other one stays as it was"

    async def test_nobody_begins_as_a_run_of_which_nothing_is_kept(
        self, workspace: Workspace, worktree: Worktree
    ) -> None:
        assert await reason(workspace.adopt("r2", THREAD, "r7", "")) == "name"
        assert await reason(workspace.adopt("r2", THREAD, "r1", "f" * 40)) == "name"
        assert await workspace.tip("r2", THREAD) == ""

    async def test_some_files_are_put_back_and_nothing_else(self, workspace: Workspace, worktree: Worktree) -> None:
        edit_everything(Path(worktree.folder))
        done = await worked(worktree)
        made = await workspace.restore_paths(
            done.commit, worktree.base, ("a.txt", "new/folder/new.txt", "code/deep/b.py")
        )
        changed = {one.path for one in (await workspace.diff(worktree.base, made)).changes}
        assert changed == {"code/renamed.py", "data.bin", "link"}
        assert await worktree.tip() == done.commit, "nothing leads to it"

    async def test_work_that_nobody_has_is_forgotten_only_if_that_is_said(
        self, workspace: Workspace, worktree: Worktree
    ) -> None:
        edit_everything(Path(worktree.folder))
        await worked(worktree)
        kept = RetainedRun(run="r1", base=worktree.base, unapplied=("Some work",))
        assert await workspace.list_kept_runs() == [kept]
        assert await reason(workspace.forget("r1", discard=True)) == "state"
        await workspace.close("r1", THREAD)
        said = await workspace.forget("r1")
        assert isinstance(said, Conflicts)
        assert [one.why for one in said.clashes] == ["not applied: Some work"]
        assert await workspace.list_kept_runs() == [kept]
        assert await workspace.forget("r1", discard=True) == kept
        assert (await workspace.list_kept_runs(), await workspace.tip("r1", THREAD)) == ([], "")

    async def test_what_was_applied_is_forgotten_and_never_undone(
        self, workspace: Workspace, worktree: Worktree, root: Path
    ) -> None:
        edit_everything(Path(worktree.folder))
        applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
        assert isinstance(applied, AppliedChange)
        after = tree_of(root)
        await workspace.close("r1", THREAD)
        kept = RetainedRun(run="r1", base=worktree.base, applied=(applied.id,))
        assert await workspace.forget("r1") == kept
        assert await reason(workspace.undo(applied.id)) == "name"
        assert tree_of(root) == after

    async def test_what_is_expected_is_what_happens(self, workspace: Workspace, worktree: Worktree) -> None:
        edit_everything(Path(worktree.folder))
        done = await worked(worktree)
        assert await workspace.list_changed_hooks(worktree.base, done.commit) == (), "nobody has any"
        applied = await workspace.apply("r1", worktree.base, done.commit)
        assert isinstance(applied, AppliedChange)
        expected = await reason(workspace.check_can_commit())
        assert await reason(workspace.commit(applied.id, "Do it")) == expected
        assert await reason(workspace.check_can_commit(branch="a b")) == "name"
        expected = await reason(workspace.check_can_commit(branch="work"))
        assert await reason(workspace.branch("work", worktree.base, done.commit, "Do it")) == expected
