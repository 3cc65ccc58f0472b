"""The conformance suite of `Workspace`, `Worktree` and `Worktrees`: every sentence of the port as a test.

    class TestMyWorkspace(WorkspaceConformance):
        async def open_workspace(self, root, cache):
            return await MyWorkspace.find(root, cache)

        def open_worktrees(self, cache):
            return MyWorktrees(cache)

The tree is a real folder with a few files. Override `prepare` to make it a repository. Requires pytest and
pytest-asyncio.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import (
    AppliedChange,
    CommitInfo,
    Conflicts,
    StepCommit,
    UndoResult,
    Workspace,
    WorkspaceFault,
    Worktree,
    WorktreeContents,
)
from tests.conformance.workspace_case import (
    FILES,
    WorkspaceCase,
    edit_everything,
    is_there,
    move_away,
    tree_of,
    worked,
)
from tests.conformance.workspace_runs import RunsConformance
from tests.conformance.workspace_threads import ThreadsConformance


class WorktreeConformance(WorkspaceCase):
    """Worktrees, and changes in them."""

    async def test_a_worktree_is_what_the_tree_was(self, workspace: Workspace, root: Path) -> None:
        before = tree_of(root)
        snapshot = await workspace.snapshot("r1")
        (root / "a.txt").write_text("later")
        worktree = await workspace.open("r1", "ann@t1", snapshot.commit)
        assert tree_of(Path(worktree.folder)) == before
        assert (await worktree.tree(), worktree.base, await worktree.tip()) == (snapshot.tree, *[snapshot.commit] * 2)
        assert (workspace.root, workspace.within, snapshot.left_out) == (str(root), "", ())

    async def test_a_snapshot_of_a_run_is_found_again(self, workspace: Workspace, root: Path) -> None:
        first = await workspace.snapshot("r1")
        (root / "a.txt").write_text("later")
        assert (await workspace.snapshot("r1")).commit == first.commit
        assert (await workspace.snapshot("r2")).tree != first.tree

    async def test_a_worktree_is_found_again_with_what_is_in_it(self, workspace: Workspace, worktree: Worktree) -> None:
        (Path(worktree.folder) / "mine").write_text("mine")
        again = await workspace.open("r1", "ann@t1", worktree.base)
        assert (again.folder, (Path(again.folder) / "mine").read_text()) == (worktree.folder, "mine")
        other = await workspace.open("r1", "bob@t1", worktree.base)
        assert other.folder != worktree.folder

    async def test_what_changed_is_a_commit_once(self, worktree: Worktree) -> None:
        nothing = StepCommit(commit="", tree=await worktree.tree())
        assert await worktree.commit(CommitInfo(run="r1", key="k0")) == nothing, "nothing has changed"
        edit_everything(Path(worktree.folder))
        first = await worked(worktree)
        assert (first.tree, first.commit) == (await worktree.tree(), await worktree.tip())
        assert await worktree.inspect() == WorktreeContents(tree=first.tree), "all of it is in the commit"
        (Path(worktree.folder) / "more").write_text("more")
        assert await worked(worktree) == StepCommit(commit=first.commit, tree=first.tree), "the same key: found again"
        second = await worked(worktree, "k2")
        assert (second.commit != first.commit, await worktree.tip()) == (True, second.commit)

    async def test_the_difference_of_two_commits(self, workspace: Workspace, worktree: Worktree) -> None:
        edit_everything(Path(worktree.folder))
        (Path(worktree.folder) / "other.bin").write_bytes(bytes(range(255, -1, -1)))
        done = await worked(worktree)
        diff = await workspace.diff(worktree.base, done.commit)
        assert [(one.path, one.kind, one.before, one.added, one.removed, one.binary) for one in diff.changes] == [
            ("a.txt", "changed", "", 1, 1, False),
            ("code/deep/b.py", "deleted", "", 0, 1, False),
            ("code/renamed.py", "renamed", "code/c.py", 0, 0, False),
            ("data.bin", "mode", "", 0, 0, True),
            ("link", "added", "", 1, 0, False),
            ("new/folder/new.txt", "added", "", 1, 0, False),
            ("other.bin", "added", "", 0, 0, True),
        ]
        assert [one.target for one in diff.changes if one.target] == ["a.txt"], "where a link leads"
        assert "-line 3\n+line three\n" in diff.text
        assert (diff.cut, (await workspace.diff(worktree.base, done.commit, limit=10)).cut) == (False, True)

    async def test_what_is_not_there_is_said(self, workspace: Workspace, worktree: Worktree) -> None:
        for wrong in (
            workspace.open("r1", "x@t1", "f" * 40),
            workspace.diff(worktree.base, "nothing"),
            workspace.undo("r1/7"),
            workspace.undo("nothing"),
            workspace.snapshot(""),
            workspace.open("r1", "x@t1", "--all"),
        ):
            with pytest.raises(WorkspaceFault) as caught:
                await wrong
            assert caught.value.reason == "name"


class ApplyConformance(WorkspaceCase):
    """How a change is applied to a person's tree, and undone."""

    async def test_what_is_applied_and_undone_leaves_no_trace(
        self, workspace: Workspace, worktree: Worktree, root: Path
    ) -> None:
        (root / "empty").mkdir()
        before = tree_of(root)
        edit_everything(Path(worktree.folder))
        done = await worked(worktree)
        assert tree_of(root) == before, "nothing comes by itself"
        applied = await workspace.apply("r1", worktree.base, done.commit)
        assert isinstance(applied, AppliedChange)
        after = tree_of(root)
        assert {**after, "empty": before["empty"]} == {**tree_of(Path(worktree.folder)), "empty": before["empty"]}
        assert (applied.fresh, applied.state) == (True, "applied")
        again = await workspace.apply("r1", worktree.base, done.commit)
        assert again == evolve(applied, fresh=False), "asked again, nothing is done"
        assert await workspace.undo(applied.id) == UndoResult(paths=applied.paths)
        assert tree_of(root) == before
        assert await workspace.undo(applied.id) == UndoResult(paths=())
        assert [one.state for one in await workspace.list_applied("r1")] == ["undone"]
        again = await workspace.apply("r1", worktree.base, done.commit)
        assert isinstance(again, AppliedChange)
        assert (again.id != applied.id, tree_of(root)) == (True, after)

    async def test_a_persons_edits_stay(self, workspace: Workspace, worktree: Worktree, root: Path) -> None:
        edit_everything(Path(worktree.folder))
        done = await worked(worktree)
        (root / "中文 and spaces.txt").write_text("mine")
        (root / "mine.txt").write_text("mine")
        before = tree_of(root)
        applied = await workspace.apply("r1", worktree.base, done.commit)
        assert isinstance(applied, AppliedChange)
        after = tree_of(root)
        assert {name: after[name] for name in ("中文 and spaces.txt", "mine.txt")} == {
            name: before[name] for name in ("中文 and spaces.txt", "mine.txt")
        }
        assert after["a.txt"][1] == FILES["a.txt"].replace(b"line 3\n", b"line three\n")
        assert isinstance(await workspace.undo(applied.id), UndoResult)
        assert tree_of(root) == before

    @pytest.mark.parametrize("kind", ["same line", "deleted", "changed", "added", "a link on the way"])
    async def test_what_does_not_fit_changes_nothing(
        self, workspace: Workspace, worktree: Worktree, root: Path, kind: str
    ) -> None:
        edit_everything(Path(worktree.folder))
        done = await worked(worktree)
        wrong = _in_the_way(root, kind)
        before = tree_of(root)
        said = await workspace.apply("r1", worktree.base, done.commit)
        assert isinstance(said, Conflicts)
        assert [one.path for one in said.clashes] in ([wrong], [wrong.partition("/")[0]])
        assert all(one.why for one in said.clashes)
        assert (tree_of(root), await workspace.list_applied("r1")) == (before, [])

    async def test_undo_refuses_what_a_person_edited_since(
        self, workspace: Workspace, worktree: Worktree, root: Path
    ) -> None:
        edit_everything(Path(worktree.folder))
        applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
        assert isinstance(applied, AppliedChange)
        (root / "new/folder/new.txt").write_text("edited")
        before = tree_of(root)
        said = await workspace.undo(applied.id)
        assert isinstance(said, Conflicts)
        assert ([one.path for one in said.clashes], tree_of(root)) == (["new/folder/new.txt"], before)

    async def test_folders_become_files_and_files_folders(
        self, workspace: Workspace, worktree: Worktree, root: Path
    ) -> None:
        folder = Path(worktree.folder)
        before = tree_of(root)
        (folder / "code/deep/b.py").unlink()
        (folder / "code/deep").rmdir()
        (folder / "code/deep").write_text("a file now")
        (folder / "data.bin").unlink()
        (folder / "data.bin").mkdir()
        (folder / "data.bin/part").write_text("a folder now")
        applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
        assert isinstance(applied, AppliedChange)
        assert tree_of(root) == tree_of(folder)
        assert isinstance(await workspace.undo(applied.id), UndoResult)
        assert tree_of(root) == before


class StandingConformance(WorkspaceCase):
    """Listing and removing worktrees."""

    async def test_work_is_never_lost_unsaid(self, worktree: Worktree, workspace: Workspace, cache: Path) -> None:
        every = self.open_worktrees(cache)
        edit_everything(Path(worktree.folder))
        done = await worked(worktree)
        (Path(worktree.folder) / "unsaved").write_text("unsaved")
        (standing,) = await every.list()
        assert (standing.unapplied, standing.dirty, standing.orphan) == (("Some work",), ("unsaved",), "")
        assert (standing.run, standing.thread, standing.root) == ("r1", "ann@t1", workspace.root)
        said = await every.clean(standing.name)
        assert isinstance(said, Conflicts)
        assert [(one.path, one.why) for one in said.clashes] == [
            ("", "not applied: Some work"),
            ("unsaved", "in no commit"),
        ]
        assert await every.clean(standing.name, discard=True) == standing
        assert (await every.list(), is_there(worktree.folder)) == ([], False)
        assert (await workspace.diff(worktree.base, done.commit)).changes, "its commits are still there"
        again = await workspace.open("r1", "ann@t1", worktree.base)
        assert (Path(again.folder) / "unsaved").read_text() == "unsaved", "and come back with it"

    async def test_what_has_no_work_in_it_just_goes(
        self, worktree: Worktree, workspace: Workspace, cache: Path
    ) -> None:
        every = self.open_worktrees(cache)
        edit_everything(Path(worktree.folder))
        assert isinstance(await workspace.apply("r1", worktree.base, (await worked(worktree)).commit), AppliedChange)
        (standing,) = await every.list()
        assert not standing.has_unsaved_work
        assert await every.clean(standing.name) == standing
        assert await every.list() == []
        with pytest.raises(WorkspaceFault, match="no worktree"):
            await every.clean(standing.name)

    async def test_a_worktree_whose_tree_is_gone_is_explained(
        self, worktree: Worktree, root: Path, cache: Path
    ) -> None:
        (Path(worktree.folder) / "unsaved").write_text("unsaved")
        move_away(root)
        (standing,) = await self.open_worktrees(cache).list()
        assert str(root) in standing.orphan
        assert "unsaved" in standing.dirty
        assert isinstance(await self.open_worktrees(cache).clean(standing.name), Conflicts)
        await self.open_worktrees(cache).clean(standing.name, discard=True)
        assert not is_there(worktree.folder)


def _in_the_way(root: Path, kind: str) -> str:
    """Make a conflicting change of the person. Return the conflicting file."""
    match kind:
        case "same line":
            (root / "a.txt").write_bytes(FILES["a.txt"].replace(b"line 3\n", b"mine\n"))
            return "a.txt"
        case "deleted":
            (root / "a.txt").unlink()
            return "a.txt"
        case "changed":
            (root / "code/deep/b.py").write_text("mine")
            return "code/deep/b.py"
        case "added":
            (root / "link").write_text("mine")
            return "link"
        case _:
            (root.parent / "outside").mkdir()
            (root / "new").symlink_to(root.parent / "outside")
            return "new/folder/new.txt"


class WorkspaceConformance(
    WorktreeConformance, ApplyConformance, StandingConformance, RunsConformance, ThreadsConformance
):
    """Inherit from this class and implement `open_workspace` and `open_worktrees`."""
