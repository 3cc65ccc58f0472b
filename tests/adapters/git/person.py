"""A person with a repository: what they do with git, and what of theirs nobody may touch."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from greenroom.adapters.git.snapshot import LARGEST, Named, nothing
from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.ports.workspace import Mark, Recorded, Worktree
from tests.conformance.workspace_case import tree_of


class Person:
    """Somebody at work in a folder."""

    def __init__(self, root: Path, home: Path | None = None) -> None:
        self.root = root
        self.home = home or root.parent / "home"

    @property
    def env(self) -> dict[str, str]:
        """Their environment: a home of their own, with a name in it."""
        if not self.home.exists():
            self.home.mkdir(parents=True)
            (self.home / ".gitconfig").write_text(
                '[user]\n\tname = Pat\n\temail = pat@x\n[protocol "file"]\n\tallow = always\n'
            )
        return {"PATH": os.environ["PATH"], "HOME": str(self.home)}

    def git(self, *words: str, folder: Path | None = None) -> str:
        """Git as they run it."""
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
        """Everything as a commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD").strip()

    def write(self, name: str, content: bytes | str) -> Path:
        """A file."""
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        return place

    def theirs(self) -> dict[str, object]:
        """What nobody may touch: files and their dates, the index to the byte, HEAD, refs, logs, settings."""
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
        self, folder: Path | None = None, *, largest: int = LARGEST, secret: Named = nothing
    ) -> GitWorkspace:
        """Greenroom on their folder."""
        cache = self.root.parent / "cache"
        return await GitWorkspace.find(folder or self.root, cache, env=self.env, largest=largest, secret=secret)


async def opened(workspace: GitWorkspace, run: str = "r1") -> Worktree:
    """A worktree of what is there now."""
    return await workspace.open(run, "ann@t1", (await workspace.snapshot(run)).commit)


async def worked(worktree: Worktree, key: str = "k1", step: str = "ann#1", summary: str = "Some work") -> Recorded:
    """What was done in a worktree, as a commit."""
    made = await worktree.commit(Mark(run="r1", key=key, agent="ann", task="t1", step=step, summary=summary))
    assert made.commit
    return made


def put(worktree: Worktree, name: str, text: str) -> None:
    """Somebody writes a file in a worktree."""
    Path(worktree.folder, name).write_text(text)


def got(worktree: Worktree) -> dict[str, str]:
    """The texts that lie in a worktree's own folder, by name."""
    return {one.name: one.read_text() for one in Path(worktree.folder).iterdir() if one.name != ".git"}


def status(person: Person) -> str:
    """What git says has changed there, a line each."""
    return person.git("status", "--porcelain", "--untracked-files=all")
