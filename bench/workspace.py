"""The cost of a workspace: a snapshot and a worktree of a repository with 50,000 files, and one step's commit in it.

Its objects are in a pack, as in every repository of that size that was cloned or has had a `git gc`. Nearly all of the
time for a worktree is the kernel creating files, so the disk matters. ext4 is several times slower for minutes after
many files were deleted, because it does not reuse their inodes immediately. Therefore the benchmark alternates with
git's own `worktree add`: the difference is our cost.
"""

import subprocess
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.ports.workspace import AppliedChange, CommitInfo

T = TypeVar("T")
FILES = 50_000
LINES = 40
ROUNDS = 3
GOALS = {
    "snapshot (s)": ("<=", 1.0),
    "worktree (s)": ("<=", 2.0),
    "worktree / git's own": ("<=", 1.25),
    "tree (s)": ("<=", 0.5),
    "commit (s)": ("<=", 1.0),
    "apply (s)": ("<=", 1.0),
}


async def run() -> dict[str, float]:
    """Measure each figure once, in a new repository."""
    with tempfile.TemporaryDirectory(prefix="greenroom-bench-") as name:
        root = Path(name) / "tree"
        _repository(root)
        return await _measured(root, Path(name) / "cache")


async def _measured(root: Path, cache: Path) -> dict[str, float]:
    figures: dict[str, float] = {"files": FILES}

    async def timed(what: str, work: Awaitable[T]) -> T:
        began = time.perf_counter()
        made = await work
        figures[f"{what} (s)"] = time.perf_counter() - began
        return made

    workspace = await timed("find", GitWorkspace.find(root, cache))
    snapshot = await timed("snapshot", workspace.snapshot("bench"))
    ours, floor, opened = [], [], []
    for number in range(ROUNDS):
        floor.append(_floor(root, cache / f"floor-{number}"))
        opened.append(await timed("worktree", workspace.open("bench", f"ann@t{number}", snapshot.commit)))
        ours.append(figures["worktree (s)"])
    worktree = opened[-1]
    figures |= {"worktree (s)": min(ours), "git worktree add (s)": min(floor)}
    figures["worktree / git's own"] = min(ours) / min(floor)
    for number in range(10):
        (Path(worktree.folder) / f"d{number}/s0/f0.txt").write_text("changed\n")
    await timed("tree", worktree.tree())
    made = await timed("commit", worktree.commit(CommitInfo(run="bench", key="k1")))
    assert made is not None
    applied = await timed("apply", workspace.apply("bench", worktree.base, made.commit))
    assert isinstance(applied, AppliedChange)
    await timed("undo", workspace.undo(applied.id))
    return figures


def _floor(root: Path, place: Path) -> float:
    """Return the seconds that plain git takes for a worktree, with one worker."""
    began = time.perf_counter()
    subprocess.run(("git", "worktree", "add", "--quiet", "--detach", str(place)), cwd=root, check=True)
    return time.perf_counter() - began


def _repository(root: Path) -> None:
    for number in range(FILES):
        place = root / f"d{number % 50}" / f"s{number // 5000}" / f"f{number // 50 % 100}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{number}\n" * LINES)
    name = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
    packed = ("repack", "-adq")
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "first"), packed):
        subprocess.run(("git", *name, *words), cwd=root, check=True)
    (root / "d49/s0/f0.txt").write_text("changed by a person\n")
