"""What the processes of a command use together, counted by looking at them: for where no control group counts it.

Somebody who looks comes late: what is taken in a quarter of a second can be too much. The kernel is told besides
(`oom_score_adj`) that such processes go first when memory runs out.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.cgroups import TIME
from greenroom.core.base.records import record
from greenroom.core.ports.sandbox import Limits

PAGE: Final = os.sysconf("SC_PAGESIZE")
REGULAR: Final = 0o100000
BLOCK: Final = 512
TICKS: Final = os.sysconf("SC_CLK_TCK")
OWN, CHILDREN, THREADS, STARTED = 11, 13, 17, 19
"""Where it stands in /proc/PID/stat, behind the name. A kernel that lists no children tells nothing."""


@record
class Usage:
    """Bytes of memory, threads, seconds of the processor."""

    memory: int = 0
    threads: int = 0
    seconds: float = 0.0


class Watching:
    """Of all commands of one workspace; `held` is what groups count already."""

    def __init__(self, held: Collection[str], limits: Limits) -> None:
        self._most = limits.memory
        self._needed = not {"memory", "pids", TIME} <= set(held)
        self._times: dict[str, dict[tuple[int, str], int]] = {}

    def usage(self, token: str, guard: int) -> Usage:
        """What all below this process use now. Nothing where nobody has to look."""
        if not self._needed:
            return Usage()
        times, threads, with_dead = self._times.setdefault(token, {}), 0, 0
        found = dict(_below(guard))
        for pid, stat in found.items():
            own = _ticks(stat, OWN)
            # A process that nobody waits for takes its time with it, so whoever was seen once is remembered.
            times[pid, stat[STARTED]] = own
            with_dead += own + _ticks(stat, CHILDREN)
            threads += int(stat[THREADS])
        memory = sum(map(_memory, found))
        if memory > self._most:  # whoever forks has the same pages as its parent, until one of both writes
            memory = sum(map(_share, found))
        return Usage(memory=memory, threads=threads, seconds=max(with_dead, sum(times.values())) / TICKS)

    def forget(self, token: str) -> None:
        """It has ended."""
        self._times.pop(token, None)


def over(usage: Usage, limits: Limits) -> str:
    """Which limit is passed, in a sentence; empty if none is."""
    if usage.seconds > limits.cpu_seconds:
        return f"Ended: it has used the processor for more than {limits.cpu_seconds} seconds, which is all it may."
    if usage.memory > limits.memory:
        return f"Ended: it has taken more than {limits.memory / 1024**3:.3g} GiB of memory, which is all it may."
    if usage.threads > limits.processes + OURS:
        return f"Ended: it has begun more than {limits.processes} processes, which is all it may."
    return ""


OURS: Final = 4
"""Processes around a command that are not its own."""


def _below(guard: int) -> Iterator[tuple[int, list[str]]]:
    """All processes below this one, with what the kernel tells of each."""
    waiting = list(_children(guard))
    while waiting:
        pid = waiting.pop()
        if stat := _stat(pid):
            yield pid, stat
        waiting += _children(pid)


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            yield from map(int, (thread / "children").read_text("ascii").split())


def _stat(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return []


def _ticks(stat: list[str], at: int) -> int:
    return int(stat[at]) + int(stat[at + 1])


def _memory(pid: int) -> int:
    """What it has that is no file, as if it shared that with nobody. Quick."""
    with suppress(OSError, ValueError, IndexError):
        resident, shared = Path(f"/proc/{pid}/statm").read_text("ascii").split()[1:3]
        return (int(resident) - int(shared)) * PAGE
    return 0


def _share(pid: int) -> int:
    """The same, divided by all who share a page. Slow, and where it cannot be known all of it."""
    with suppress(OSError, ValueError, IndexError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return _memory(pid)


def unlinked(guard: int) -> int:
    """Bytes on the disk of files that processes below this one hold open, and that lie in no folder any more."""
    known = (_known(place) for pid, _ in _below(guard) for place in _opened(Path(f"/proc/{pid}/fd")))
    gone = (one for one in known if one is not None and one.st_nlink == 0 and one.st_mode & REGULAR == REGULAR)
    return sum({(one.st_dev, one.st_ino): one.st_blocks * BLOCK for one in gone}.values())


def _known(place: Path) -> os.stat_result | None:
    """What is opened there; None when it was closed while we looked."""
    try:
        return place.stat()
    except OSError:
        return None


def _opened(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
