"""What every sandbox needs while it stands: what is protected, how full it is, groups, and a place for commands."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from pathlib import Path

from greenroom.adapters.sandbox.ground import Ground, Identity, checked, tools
from greenroom.adapters.sandbox.limits import Cgroups, Quota, Watching, over, unlinked
from greenroom.adapters.sandbox.protection import Protection
from greenroom.adapters.sandbox.scratch import Scratch
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.sandbox import Limits


@record
class Joined:
    """One command: its name, and the groups that it joins."""

    token: str
    cgroups: tuple[str, ...]


class SandboxSession:
    """Of one workspace. With `weak` nothing is mounted, so what is protected is remembered and put back."""

    def __init__(self, ground: Ground, limits: Limits, cgroups: Cgroups, who: Identity, *, weak: bool = False) -> None:
        self.ground = checked(ground)
        self.limits = limits
        self.who = who
        self.cgroups = cgroups
        self.scratch = Scratch(ground.scratch)
        self.protection = Protection(ground, weak=weak)
        self._tools: list[Path] | None = None
        self._alone = threading.Lock()
        """Commands begin and end in threads."""

        layers = [] if weak else [Path(one.layer) for one in ground.lent if one.layer]
        for layer in layers:
            layer.mkdir(parents=True, exist_ok=True)
        self._quota = Quota((ground.root, self.scratch.place, *layers), limits)
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
        token = secrets.token_hex(8)
        with self._alone:
            self.protection.begin()
            try:
                return Joined(token=token, cgroups=self.cgroups.made(token))
            except BaseException:
                self.cgroups.remove(token)
                self.protection.end()
                raise

    def end(self, token: str) -> None:
        """It has ended, or was not begun."""
        self._watching.forget(token)
        self.cgroups.remove(token)
        with self._alone:
            self.protection.end()

    def tools(self, env: Mapping[str, str]) -> list[Path]:
        """They are looked for once: a Python installed in the middle of a run is seen in the next one."""
        if self._tools is None:
            self._tools = tools(env, self.ground)
        return self._tools

    def overrun(self, token: str, guard: int) -> str:
        """Why it has used too much: what all its processes have together, or room in the workspace."""
        with self._alone:
            self.protection.beat()
        usage = self._watching.usage(token, guard)
        usage = evolve(usage, seconds=max(usage.seconds, self.cgroups.spent(token)))
        return over(usage, self.limits) or self._quota.overrun(lambda: unlinked(guard))

    def close(self) -> None:
        """What commands had for themselves goes with it."""
        self.scratch.close()
