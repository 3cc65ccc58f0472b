"""Shared parts of the `Workspace` suites: a person's tree, and the port on it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.core.ports.workspace import CommitInfo, StepCommit, Workspace, Worktree, Worktrees

FILES: Mapping[str, bytes] = {
    "a.txt": b"".join(b"line %d\n" % number for number in range(1, 21)),
    "code/deep/b.py": b"print('b')\n",
    "code/c.py": b"print('c')\n",
    "data.bin": bytes(range(256)),
    "中文 and spaces.txt": "中文\r\n".encode(),
}


def tree_of(root: Path) -> dict[str, tuple[str, bytes]]:
    """Return kind, permissions and content of everything in a folder except `.git`, by name."""
    found: dict[str, tuple[str, bytes]] = {}
    for folder, below, names in os.walk(root):
        below[:] = [one for one in below if one != ".git"]
        for name in (*below, *names):
            place = Path(folder, name)
            status = place.lstat()
            mode = stat.filemode(status.st_mode)
            content = os.fsencode(place.readlink()) if place.is_symlink() else b""
            if stat.S_ISREG(status.st_mode):
                content = place.read_bytes()
            if name != ".git":
                found[str(place.relative_to(root))] = (mode, content)
    return found


class WorkspaceCase:
    """Base class of the suites. Subclasses open the port on a folder."""

    async def open_workspace(self, root: Path, cache: Path) -> Workspace:
        """Open the port."""
        raise NotImplementedError

    def open_worktrees(self, cache: Path) -> Worktrees:
        """Open all worktrees of a cache."""
        raise NotImplementedError

    def prepare(self, root: Path) -> None:
        """Prepare the folder, for example as a repository."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """A person's tree."""
        root = tmp_path / "tree"
        for name, content in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        self.prepare(root)
        return root

    @pytest.fixture
    def cache(self, tmp_path: Path) -> Path:
        """The user's cache."""
        return tmp_path / "cache"

    @pytest.fixture
    async def workspace(self, root: Path, cache: Path) -> Workspace:
        """Return the port on the tree."""
        return await self.open_workspace(root, cache)

    @pytest.fixture
    async def worktree(self, workspace: Workspace) -> Worktree:
        """Return a worktree."""
        return await opened(workspace)


async def opened(workspace: Workspace, run: str = "r1", thread: str = "ann@t1") -> Worktree:
    """Open a worktree of the current state."""
    return await workspace.open(run, thread, (await workspace.snapshot(run)).commit)


async def worked(worktree: Worktree, key: str = "k1", run: str = "r1") -> StepCommit:
    """Commit the work in a worktree."""
    made = await worktree.commit(
        CommitInfo(run=run, key=key, agent="ann", task="t1", step="ann#1", summary="Some work")
    )
    assert made.commit
    return made


def is_there(folder: str) -> bool:
    """Return whether a folder exists."""
    return Path(folder).exists()


def move_away(folder: Path) -> None:
    """Move a folder away as a person would."""
    folder.rename(f"{folder}-elsewhere")


def edit_everything(folder: Path) -> None:
    """Make one of each kind of edit."""
    (folder / "a.txt").write_bytes(FILES["a.txt"].replace(b"line 3\n", b"line three\n"))
    (folder / "code/c.py").rename(folder / "code/renamed.py")
    (folder / "code/deep/b.py").unlink()
    (folder / "code/deep").rmdir()
    (folder / "data.bin").chmod(0o755)
    (folder / "new/folder").mkdir(parents=True)
    (folder / "new/folder/new.txt").write_text("new\n")
    (folder / "link").symlink_to("a.txt")
