"""What the suites of `Workspace` share: a person's tree, and the port on it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.core.ports.workspace import Mark, Recorded, Workspace, Worktree, Worktrees

FILES: Mapping[str, bytes] = {
    "a.txt": b"".join(b"line %d\n" % number for number in range(1, 21)),
    "code/deep/b.py": b"print('b')\n",
    "code/c.py": b"print('c')\n",
    "data.bin": bytes(range(256)),
    "中文 and spaces.txt": "中文\r\n".encode(),
}


def tree_of(root: Path) -> dict[str, tuple[str, bytes]]:
    """Everything below a folder but git's own: kind and permissions, and content, by name."""
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
    """What the suites share. Say how to open the port on a folder."""

    async def open_workspace(self, root: Path, cache: Path) -> Workspace:
        """Open it."""
        raise NotImplementedError

    def open_worktrees(self, cache: Path) -> Worktrees:
        """Open all of a cache."""
        raise NotImplementedError

    def prepare(self, root: Path) -> None:
        """Make the folder what it has to be."""

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
        """The port on it."""
        return await self.open_workspace(root, cache)

    @pytest.fixture
    async def worktree(self, workspace: Workspace) -> Worktree:
        """A worktree of it."""
        return await opened(workspace)


async def opened(workspace: Workspace, run: str = "r1", thread: str = "ann@t1") -> Worktree:
    """A worktree of what is there now."""
    return await workspace.open(run, thread, (await workspace.snapshot(run)).commit)


async def worked(worktree: Worktree, key: str = "k1", run: str = "r1") -> Recorded:
    """What was done in a worktree, as a commit."""
    made = await worktree.commit(Mark(run=run, key=key, agent="ann", task="t1", step="ann#1", summary="Some work"))
    assert made.commit
    return made


def is_there(folder: str) -> bool:
    """Whether a folder is."""
    return Path(folder).exists()


def move_away(folder: Path) -> None:
    """As a person does it."""
    folder.rename(f"{folder}-elsewhere")


def edit_everything(folder: Path) -> None:
    """One of each kind of edit."""
    (folder / "a.txt").write_bytes(FILES["a.txt"].replace(b"line 3\n", b"line three\n"))
    (folder / "code/c.py").rename(folder / "code/renamed.py")
    (folder / "code/deep/b.py").unlink()
    (folder / "code/deep").rmdir()
    (folder / "data.bin").chmod(0o755)
    (folder / "new/folder").mkdir(parents=True)
    (folder / "new/folder/new.txt").write_text("new\n")
    (folder / "link").symlink_to("a.txt")
