"""A person with a repository: how they use git, and the state that must never change."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from greenroom.adapters.git.snapshot import MAX_FILE_BYTES, PathPredicate, matches_nothing
from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.ports.workspace import CommitInfo, StepCommit, Worktree
from tests.conformance.workspace_case import tree_of


class Person:
    """A person who works in a folder."""

    def __init__(self, root: Path, home: Path | None = None) -> None:
        self.root = root
        self.home = home or root.parent / "home"

    @property
    def env(self) -> dict[str, str]:
        """Return an environment with its own home and user name."""
        if not self.home.exists():
            self.home.mkdir(parents=True)
            (self.home / ".gitconfig").write_text(
                '[user]\n\tname = Pat\n\temail = pat@x\n[protocol "file"]\n\tallow = always\n'
            )
        return {"PATH": os.environ["PATH"], "HOME": str(self.home)}

    def git(self, *words: str, folder: Path | None = None) -> str:
        said = subprocess.run(
            ("git", *words),
            cwd=folder or self.root,
            env=self.env,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return said.stdout

    def commit_all(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD").strip()

    def write(self, name: str, content: bytes | str) -> Path:
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        return place

    def theirs(self) -> dict[str, object]:
        """Return the state that must never change: files and their dates, the index byte for byte, HEAD, refs, logs,
        settings."""
        git = Path(self.git("rev-parse", "--absolute-git-dir").strip())
        files = {
            name: (git / name).read_bytes()
            for name in ("index", "HEAD", "config", "ORIG_HEAD")
            if (git / name).exists()
        }
        logs = {str(one): one.read_bytes() for one in (git / "logs").rglob("*") if one.is_file()}
        refs = [one for one in self.git("for-each-ref").splitlines() if "refs/greenroom/" not in one]
        dates = {name: (self.root / name).lstat().st_mtime_ns for name in tree_of(self.root)}
        return {"tree": tree_of(self.root), "git": files, "logs": logs, "refs": refs, "dates": dates}

    async def workspace(
        self, folder: Path | None = None, *, largest: int = MAX_FILE_BYTES, secret: PathPredicate = matches_nothing
    ) -> GitWorkspace:
        """Open Greenroom's workspace on their folder."""
        cache = self.root.parent / "cache"
        return await GitWorkspace.find(folder or self.root, cache, env=self.env, max_bytes=largest, is_secret=secret)


async def opened(workspace: GitWorkspace, run: str = "r1") -> Worktree:
    """Open a worktree of the current state."""
    return await workspace.open(run, "ann@t1", (await workspace.snapshot(run)).commit)


async def worked(worktree: Worktree, key: str = "k1", step: str = "ann#1", summary: str = "Some work") -> StepCommit:
    """Commit the work in a worktree."""
    made = await worktree.commit(CommitInfo(run="r1", key=key, agent="ann", task="t1", step=step, summary=summary))
    assert made.commit
    return made


def put(worktree: Worktree, name: str, text: str) -> None:
    Path(worktree.folder, name).write_text(text)


def got(worktree: Worktree) -> dict[str, str]:
    """Return the texts in a worktree's own folder, by name."""
    return {one.name: one.read_text() for one in Path(worktree.folder).iterdir() if one.name != ".git"}


def status(person: Person) -> str:
    """Return git's list of changes, one per line."""
    return person.git("status", "--porcelain", "--untracked-files=all")
