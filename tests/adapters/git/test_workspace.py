"""Workspaces on git pass the suite of the port: in a repository, and in a folder that is in none."""

from __future__ import annotations

from pathlib import Path

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.adapters.git.worktree import GitWorktrees
from greenroom.core.ports.workspace import Workspace, Worktrees
from tests.adapters.git.person import Person
from tests.conformance.workspace import WorkspaceConformance
from tests.conformance.workspace_case import WorkspaceCase


class GitCase(WorkspaceCase):
    async def open_workspace(self, root: Path, cache: Path) -> Workspace:
        return await GitWorkspace.find(root, cache)

    def open_worktrees(self, cache: Path) -> Worktrees:
        return GitWorktrees(cache)


class TestOutsideGit(GitCase, WorkspaceConformance):
    pass


class TestInGit(GitCase, WorkspaceConformance):
    def prepare(self, root: Path) -> None:
        person = Person(root)
        person.git("init", "--quiet")
        person.commit_all("first")
