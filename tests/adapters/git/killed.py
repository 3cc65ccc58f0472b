"""Processes that apply, commit or undo, and are killed before a chosen git call or ref update."""

from __future__ import annotations

import asyncio
import multiprocessing as mp
import os
import shutil
import signal
from collections.abc import Mapping
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Literal
from unittest.mock import patch

from greenroom.adapters.git.process import Git, GitResult
from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.ports.workspace import AppliedChange, CommitInfo, StepCommit, Worktree
from tests.adapters.git.person import Person, opened, put, worked
from tests.adapters.git.shapes import dirty, edit

Act = Literal["apply", "undo", "commit", "undo commit", "revert", "commit team", "undo team", "revert team"]
"""A team's change has one commit per integrated thread."""

ThreadAct = Literal["integrate"]
HAND_IN = CommitInfo(run="r1", key="hand in", agent="ann", task="t1", step="ann#9", summary="Do the code")
SECONDS = 60
FIRST: Mapping[Act, tuple[Act, ...]] = {
    "apply": (),
    "undo": ("apply",),
    "commit": ("apply",),
    "undo commit": ("apply", "commit"),
    "revert": ("apply", "commit"),
    "commit team": ("apply",),
    "undo team": ("apply", "commit"),
    "revert team": ("apply", "commit"),
}
"""The actions that must come before."""


class Countdown:
    """Kills the process before the n-th call."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


async def prepared(root: Path, act: Act) -> tuple[str, str]:
    """Prepare a person's dirty tree and work on it up to this action. Return base and tip."""
    person = Person(root)
    dirty(person)
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    tip = (await worked(worktree)).commit
    if act.endswith("team"):
        tip = await integrated(workspace, worktree)
    for one in FIRST[act]:
        await acted(workspace, one, worktree.base, tip)
    return worktree.base, tip


async def integrated(workspace: GitWorkspace, first: Worktree) -> str:
    """Integrate this worktree and that of another thread. Return the tip of both."""
    second = await workspace.open("r1", "doc", first.base)
    put(second, "doc.md", "new\n")
    await worked(second, "k2", summary="Write it")
    for thread in ("ann@t1", "doc"):
        info = CommitInfo(run="r1", key=f"in {thread}", agent=thread, summary=f"Do it: {thread}")
        assert isinstance(await workspace.integrate("r1", thread, "main", info), StepCommit)
        await workspace.close("r1", thread)
    return await workspace.tip("r1", "main")


async def acted(workspace: GitWorkspace, act: Act | ThreadAct, base: str, tip: str) -> None:
    if act == "apply":
        assert isinstance(await workspace.apply("r1", base, tip), AppliedChange)
    elif act == "integrate":
        assert isinstance(await workspace.integrate("r1", "code", "main", HAND_IN), StepCommit)
    elif act in ("commit", "commit team"):
        await workspace.commit("r1/1", "Do it")
    else:
        await workspace.undo("r1/1", revert=act.startswith("revert"))


def copied(root: Path, to: Path) -> Person:
    """Copy the repository to another place."""
    shutil.copytree(root, to, symlinks=True)
    return Person(to, root.parent / "home")


def live(person: Person, act: Act | ThreadAct, pair: tuple[str, str], at: int) -> bool:
    """Run one process. Return whether it was killed."""
    process = lives().Process(target=_main, args=(str(person.root), str(person.home), act, pair, at))
    process.start()
    process.join(SECONDS)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
    process.close()
    assert code in (0, -9), f"a life ended with {code}"
    return code == -9


def _main(root: str, home: str, act: Act | ThreadAct, pair: tuple[str, str], at: int) -> None:
    count = Countdown(at)
    tried = Git.run_unchecked

    async def dying(self: Git, *words: str, stdin: bytes = b"", seconds: float = SECONDS) -> GitResult:
        count()
        return await tried(self, *words, stdin=stdin, seconds=seconds)

    async def life() -> None:
        workspace = await Person(Path(root), Path(home)).workspace()
        with patch.object(Git, "run_unchecked", dying):
            await acted(workspace, act, *pair)

    asyncio.run(asyncio.wait_for(life(), SECONDS))
    os._exit(0)


@cache
def lives() -> ForkServerContext:
    """Return a fork server, so that processes start fast and with their imports only."""
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["tests.adapters.git.killed"])
    return context
