"""What all walls need while they stand: who governs the workspace, how full it is, groups, and a place for commands."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from pathlib import Path

from greenroom.adapters.sandbox.cgroups import Cgroups
from greenroom.adapters.sandbox.ground import Ground, checked, tools
from greenroom.adapters.sandbox.guarding import Guarding
from greenroom.adapters.sandbox.identity import Identity
from greenroom.adapters.sandbox.lending import Lending
from greenroom.adapters.sandbox.quota import Quota
from greenroom.adapters.sandbox.scratch import Scratch
from greenroom.adapters.sandbox.watching import Watching, over, unlinked
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.sandbox import Limits


@record
class Joined:
    """One command: its name, and the groups that it joins."""

    token: str
    cgroups: tuple[str, ...]


class Standing:
    """Of one workspace. With `weak` walls what governs it is remembered, and what is root's is lent."""

    def __init__(self, ground: Ground, limits: Limits, cgroups: Cgroups, who: Identity, *, weak: bool = False) -> None:
        self.ground = checked(ground)
        self.limits = limits
        self.who = who
        self.cgroups = cgroups
        self.scratch = Scratch(ground.scratch)
        self.guarding = Guarding(ground, besides=(self.scratch.tmp, self.scratch.home), remember=weak)
        self._tools: list[Path] | None = None
        self._alone = threading.Lock()
        """Commands begin and end in threads: to look at a large workspace takes a while."""

        self._lending = Lending(ground.root, who.uid) if weak and who.swapped else None
        self._quota = Quota((ground.root, self.scratch.place), limits)
        self._watching = Watching(cgroups.holds, limits)

    @property
    def rlimits(self) -> dict[str, int]:
        """Those that hold for each process."""
        limits = self.limits
        return {
            "file_size": limits.file_size,
            "open_files": limits.open_files,
            "cpu_seconds": limits.cpu_seconds,
        }

    @property
    def tasks(self) -> int | None:
        """How many processes there may be on top of those that run, where no group counts them."""
        return None if "pids" in self.cgroups.holds else self.limits.processes

    def begin(self) -> Joined:
        """A command is about to run."""
        if self._lending is not None:
            self._lending.check()
        token = secrets.token_hex(8)
        with self._alone:
            self.guarding.begin()
            try:
                joined = Joined(token=token, cgroups=self.cgroups.made(token))
                if self._lending is not None:
                    self._lending.begin()
            except BaseException:
                self.cgroups.remove(token)
                self.guarding.end()
                raise
        return joined

    def end(self, token: str) -> None:
        """It has ended, or was not begun."""
        self._watching.forget(token)
        self.cgroups.remove(token)
        with self._alone:
            if self._lending is not None:
                self._lending.end()
            self.guarding.end()

    def tools(self, env: Mapping[str, str]) -> list[Path]:
        """They are looked for once: nobody installs another Python in the middle of a run, or sees it in the next."""
        if self._tools is None:
            self._tools = tools(env, self.ground)
        return self._tools

    def overrun(self, token: str, guard: int) -> str:
        """Why it has used too much: what all its processes have together, or room in the workspace."""
        with self._alone:
            why = self.guarding.alive()
        if why:
            return why
        usage = self._watching.usage(token, guard)
        usage = evolve(usage, seconds=max(usage.seconds, self.cgroups.spent(token)))
        return over(usage, self.limits) or self._quota.overrun(lambda: unlinked(guard))

    def close(self) -> None:
        """What commands had for themselves goes with the walls."""
        self.scratch.close()


def system_program(name: str, *folders: str) -> Path | None:
    """A program of the system's own: one that lies in a workspace may be anybody's."""
    known = (*folders, "/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin", "/run/current-system/sw/bin")
    return next((Path(one, name) for one in known if Path(one, name).is_file()), None)
