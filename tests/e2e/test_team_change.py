"""The change of a team on the command line: one commit per subtask, undone and blamed like any other."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.ports.workspace import CommitInfo, StepCommit
from tests.acceptance.kit import GOOD, JSON, VERIFIED, Desk, git, rows, snapshot
from tests.adapters.git.person import put

TITLES = ["Document it", "Write the rest"]


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Desk:
    """A person whose run is done, with two more subtasks that are integrated into it."""
    desk = Desk(tmp_path)
    ended = desk.work(*GOOD)
    assert ended.code == VERIFIED, ended.err
    asyncio.run(integrate(desk, str(ended.json["team"])))
    return desk


async def integrate(desk: Desk, run: str) -> None:
    (cache,) = desk.home.rglob("worktrees")
    workspace = await GitWorkspace.find(desk.repo, cache, env=dict(os.environ))
    for number, title in enumerate(reversed(TITLES), start=1):
        thread = f"code-{number}"
        worktree = await workspace.open(run, thread, await workspace.tip(run, "main"))
        put(worktree, f"{thread}.txt", "new\n")
        await worktree.commit(CommitInfo(run=run, key=thread, agent=thread, step="coder#1", summary="Edit"))
        info = CommitInfo(run=run, key=f"in {thread}", agent=thread, summary=title)
        assert isinstance(await workspace.integrate(run, thread, "main", info), StepCommit)
        await workspace.close(run, thread)


def subjects(desk: Desk, of: str = "HEAD") -> list[str]:
    return git(desk.repo, "log", "--format=%s", of).splitlines()


def test_apply_makes_a_commit_for_each_and_undo_removes_them_all(desk: Desk) -> None:
    before = snapshot(desk.repo)
    applied = desk.type("apply", "last", *JSON)
    assert (applied.code, applied.json["commits"]) == (0, 2)
    assert applied.json["commit"] == git(desk.repo, "rev-parse", "HEAD").strip()
    assert subjects(desk) == [*TITLES, "first"]
    assert git(desk.repo, "status", "--porcelain") == ""
    again = desk.type("apply", "last")
    newest = str(applied.json["commit"])[:10]
    assert again.out == f"Applied already: 3 files, 2 commits, the newest is {newest}.\n"
    assert desk.type("blame", "code-2.txt:1", *JSON).json["step"] == "coder#1"
    assert desk.type("undo", "last").code == 0
    assert snapshot(desk.repo) == before


@pytest.mark.parametrize(
    ("words", "subject"), [(("--squash",), "Paint it."), (("--message", "Paint all"), "Paint all")]
)
def test_one_commit_is_made_where_one_is_wanted(desk: Desk, words: tuple[str, ...], subject: str) -> None:
    applied = desk.type("apply", "last", *words, *JSON)
    assert (applied.code, applied.json["commits"]) == (0, 1)
    assert subjects(desk) == [subject, "first"]


def test_a_branch_has_a_commit_for_each_and_the_files_stay(desk: Desk) -> None:
    before = snapshot(desk.repo)
    assert desk.type("branch", "last", "work").code == 0
    assert subjects(desk, "work") == [*TITLES, "first"]
    git(desk.repo, "branch", "--quiet", "-D", "work")
    assert snapshot(desk.repo) == before


def test_what_the_run_takes_is_shown(desk: Desk) -> None:
    (row,) = rows(desk.type("du", *JSON).json["teams"])
    assert all(isinstance(row[name], int) and row[name] for name in ("log", "worktrees", "commits"))
    assert desk.type("discard", "last", "--yes").code == 0
    (row,) = rows(desk.type("du", *JSON).json["teams"])
    assert (row["worktrees"], bool(row["commits"])) == (0, True)
    table = desk.type("du", COLUMNS="120").out
    assert "worktrees" in table.splitlines()[0]
