"""Limits of a command: a look at its processes four times a second; and the workspace's size.

Who looks comes late: what is taken in a quarter of a second can be too much. The kernel is told besides
(`oom_score_adj`) that such processes go first when memory runs out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.base.records import record
from greenroom.core.ports.sandbox import Limits

BLOCK: Final = 512
OFTEN: Final = 2.0
SHARE: Final = 20
"""Others may free on the disk what is used up here, so it is counted now and then too: every two seconds, but for no
more than a twentieth of the time."""

SLACK: Final = 8
"""What lies there in the beginning is not counted until the disk has grown by this part of the quota."""


class Quota:
    """Of these folders together. A look at the disk is cheap; a count reads every folder."""

    def __init__(self, folders: tuple[Path, ...], limits: Limits) -> None:
        self._folders = folders
        self._limits = limits
        self._counted = (limits.quota - limits.quota // SLACK, limits.entries - limits.entries // SLACK)
        self._then: tuple[int, int] | None = None
        self._due = time.monotonic() + OFTEN

    def overrun(self) -> str:
        """Why it is too much; empty while it is not."""
        now = self._on_disk()
        if self._then is None:
            self._then = now
        grown = [have + after - before for have, after, before in zip(self._counted, now, self._then, strict=True)]
        fits = grown[0] <= self._limits.quota and grown[1] <= self._limits.entries
        began = time.monotonic()
        if fits and began < self._due:
            return ""
        self._counted, self._then = self._count(), now
        took = time.monotonic() - began
        self._due = began + max(OFTEN, SHARE * took)
        size, entries = self._counted
        if size > self._limits.quota:
            most = f"{self._limits.quota / 1024**3:.3g} GiB"
            return f"Ended: more than {most} lie in the workspace, which is all it may hold. Remove something."
        if entries > self._limits.entries:
            return f"Ended: more than {self._limits.entries:,} files lie in the workspace. Remove some."
        return ""

    def _on_disk(self) -> tuple[int, int]:
        """Bytes and entries on the disks of the folders, whoever they belong to."""
        size = entries = 0
        for folder in self._folders:
            disk = os.statvfs(folder)
            size += (disk.f_blocks - disk.f_bfree) * disk.f_frsize
            entries += disk.f_files - disk.f_ffree
        return size, entries

    def _count(self) -> tuple[int, int]:
        size = count = 0
        waiting = [str(folder) for folder in self._folders]
        while waiting:
            with suppress(OSError), os.scandir(waiting.pop()) as found:  # it may go while we look
                entries = list(found)
                size += BLOCK * sum(entry.stat(follow_symlinks=False).st_blocks for entry in entries)
                count += len(entries)
                waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        return size, count


# ---------------------------------------------------------------------------------------------------- processes

OURS: Final = 4
"""Processes around a command that are not its own."""

PAGE: Final = os.sysconf("SC_PAGESIZE")
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
    """Of all commands of one workspace."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.memory
        self._times: dict[str, dict[tuple[int, str], int]] = {}

    def usage(self, token: str, guard: int) -> Usage:
        """What all below this process use now."""
        times, threads, with_dead = self._times.setdefault(token, {}), 0, 0
        found = dict(_below(guard))
        for pid, stat in found.items():
            own, dead = (int(stat[place]) + int(stat[place + 1]) for place in (OWN, CHILDREN))
            # A process that nobody waits for takes its time with it, so whoever was seen once is remembered.
            times[pid, stat[STARTED]] = own
            with_dead += own + dead
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
