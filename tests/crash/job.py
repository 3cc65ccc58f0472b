"""A job at the real door, killed with -9 wherever it is: in the run, while it is applied, while it is taken back."""

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
"""Seconds that a life may have before it is killed: about as long as the whole takes when it is not."""

MOST = 2
"""Kills in one part of one story."""


class Story:
    """Run, apply, undo; each is begun again until it comes to its end. `kills` counts what it took."""

    def __init__(self, folder: Path, source: random.Random) -> None:
        self.desk = Desk(folder / "home", founded(folder / "repo"))
        self.before = exactly(self.desk.repo)
        self.kills: dict[str, int] = dict.fromkeys(LONGEST, 0)
        self._source = source

    def tell(self) -> None:
        """The whole story, and after each part what must hold."""
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
            known = self.desk.types("tasks", "--output-format", "json").out
            words = ("resume", "last", "--non-interactive") if '"task"' in known or "t1" in known else words

    def _lived(self, *words: str) -> None:
        while self._killed(words[0], words, None):
            self._no_lock_blocks_git()

    def _killed(self, part: str, words: tuple[str, ...], fake: Beside | None) -> bool:
        """One life; whether it was killed. One that comes to its end must have ended well."""
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
            part == "undo" and self.kills[part] > 0 and "it is undone already." in said
        )  # it was killed after its last word
        assert code == 0 or over, f"{words}: {code}\n{said}"
        return False

    def _no_lock_blocks_git(self) -> None:
        """Whoever was killed inside git may leave a lock of ours; the person's git works all the same, or says why."""
        git(self.desk.repo, "status", "--short")

    def _left_nothing(self) -> None:
        """No lock, no broken object, no process, no copy that nobody can explain; and what is left can be dropped."""
        repo = self.desk.repo
        assert not list((repo / ".git").rglob("*.lock")), "a lock was left"
        git(repo, "fsck", "--no-progress")
        assert git(repo, "worktree", "list", "--porcelain").count("worktree ") <= 2
        listed = self.desk.types("workspaces", "list").out
        assert "not applied: " in listed
        assert "?" not in listed.replace("?? ", ""), "a copy of which nobody knows whose it is"
        assert self.desk.types("discard", "last", "--yes").code == 0
        assert self.desk.types("workspaces", "clean").code == 0
        assert "no copies" in self.desk.types("workspaces", "list").out
        assert strays(self.desk.home) == []


def strays(home: Path) -> list[str]:
    """Processes that still know of this home, after they had time to end."""
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
