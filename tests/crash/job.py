"""A run through the real command, killed with -9 at any time: while it runs, is applied, or is undone."""

from __future__ import annotations

import os
import random
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tests.e2e.jobs import ASKED, Desk, Turns, exactly, founded, git, honest
from tests.e2e.provider import Beside, provider, reached
from tests.e2e.terminal import PATIENCE, environment
from tests.e2e.warm import Forked, Order

LONGEST = {"run": 6.0, "apply": 0.7, "undo": 0.7}
"""Maximum seconds before a process is killed: about the duration of an undisturbed story."""

MOST = 2
"""Maximum number of kills in one part of a story."""


class Story:
    """Run, apply, undo. Each is repeated until it reaches its end. `kills` counts the attempts."""

    def __init__(self, folder: Path, source: random.Random) -> None:
        self.desk = Desk(folder / "home", founded(folder / "repo"))
        self.before = exactly(self.desk.repo)
        self.kills: dict[str, int] = dict.fromkeys(LONGEST, 0)
        self._source = source

    def tell(self) -> None:
        """Play the whole story, and check it after each part."""
        with provider(Turns(honest())) as fake:
            self._run(fake)
            assert exactly(self.desk.repo) == self.before, "a run touched the person's files"
            self._lived("apply", "last")
            assert git(self.desk.repo, "log", "--format=%an %s").splitlines() == [f"Pia {ASKED}", "Pia first"]
            assert "json.dump(rows, out)" in (self.desk.repo / "export.py").read_text()
            self._lived("undo", "last")
        assert exactly(self.desk.repo) == self.before
        self._left_nothing()

    def _run(self, fake: Beside) -> None:
        words = ("run", ASKED, "--yes")
        while self._killed("run", words, fake):
            known = self.desk.types("runs", "--output-format", "json").out
            words = ("resume", "last", "--non-interactive") if '"task"' in known or "t1" in known else words

    def _lived(self, *words: str) -> None:
        while self._killed(words[0], words, None):
            self._no_lock_blocks_git()

    def _killed(self, part: str, words: tuple[str, ...], fake: Beside | None) -> bool:
        """Run one process. Return whether it was killed. Otherwise it must have succeeded."""
        null = os.open(os.devnull, os.O_RDWR)
        more = {**self.desk.own, **(reached(fake) if fake is not None else {})}
        order = Order(words=words, environment=environment(self.desk.home, **more), folder=str(self.desk.repo))
        out = os.open(self.desk.home.parent / "out", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        life = Forked(order, (null, out, out))
        os.close(null)
        os.close(out)
        patience = self._source.uniform(0.02, LONGEST[part]) if self.kills[part] < MOST else PATIENCE
        with suppress(subprocess.TimeoutExpired):
            life.wait(patience)
        if life.poll() is None:
            life.kill()
            life.wait(PATIENCE)
        code = life.poll()
        if code == -9:
            assert self.kills[part] < MOST, "a life did not end within a minute"
            self.kills[part] += 1
            return True
        said = (self.desk.home.parent / "out").read_text()
        over = (
            part == "undo" and self.kills[part] > 0 and "it was undone already." in said
        )  # it was killed after its last word
        assert code == 0 or over, f"{words}: {code}\n{said}"
        return False

    def _no_lock_blocks_git(self) -> None:
        """A process killed inside git may leave a lock of ours. The person's git must still work, or say why not."""
        git(self.desk.repo, "status", "--short")

    def _left_nothing(self) -> None:
        """There must be no lock, broken object, process or unknown worktree, and the rest can be discarded."""
        repo = self.desk.repo
        assert not list((repo / ".git").rglob("*.lock")), "a lock was left"
        git(repo, "fsck", "--no-progress")
        assert git(repo, "worktree", "list", "--porcelain").count("worktree ") <= 2
        listed = self.desk.types("workspaces", "list").out
        assert "not applied: " in listed
        assert "?" not in listed.replace("?? ", ""), "a copy of which nobody knows whose it is"
        assert self.desk.types("discard", "last", "--yes").code == 0
        assert self.desk.types("workspaces", "clean").code == 0
        assert "no worktrees" in self.desk.types("workspaces", "list").out
        assert strays(self.desk.home) == []


def strays(home: Path) -> list[str]:
    """Return processes that still reference this home after a grace period."""
    deadline = time.monotonic() + 10
    while (found := _of(home)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _of(home: Path) -> list[str]:
    mark, found = str(home).encode(), list[str]()
    for one in Path("/proc").iterdir():
        if not one.name.isdigit() or int(one.name) == os.getpid():
            continue
        with suppress(OSError):
            if mark in (one / "environ").read_bytes() or mark in (one / "cmdline").read_bytes():
                found.append((one / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found
