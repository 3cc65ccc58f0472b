"""Limits of a command: its processes are measured four times a second, the workspace the more often the fuller it is.

Measuring comes late: a command can exceed a limit of its processes within a quarter of a second. As a second defence,
`oom_score_adj` makes the kernel end these processes first. The workspace holds at most a tenth more than its quota.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.base.records import record
from greenroom.core.ports.sandbox import CommandLimits

BLOCK_BYTES: Final = 512
COUNT_INTERVAL_S: Final = 2.0
COUNT_PAUSE_FACTOR: Final = 20
"""Pause after a count, as a multiple of its duration. A count runs at most every two seconds and takes at most a
twentieth of the time. It is needed because other programs may free disk space meanwhile."""

POLL_S: Final = 0.25
"""Seconds between two measurements of the processes, and of a workspace with much room."""

MIN_POLL_S: Final = 0.002
FASTEST_WRITING: Final = 4 * 1024**3
"""Bytes per second that a command can write, generously."""

UNCOUNTED_DIVISOR: Final = 8
"""Initial contents are counted only after the disk has grown by this fraction (1/8) of the quota."""


class Quota:
    """The quota of several folders together. Measuring the disk is cheap; counting reads every folder."""

    def __init__(self, folders: tuple[Path, ...], limits: CommandLimits) -> None:
        self._folders = folders
        self._limits = limits
        self._counted = (
            limits.quota - limits.quota // UNCOUNTED_DIVISOR,
            limits.entries - limits.entries // UNCOUNTED_DIVISOR,
        )
        self._disk_at_count: tuple[int, int] | None = None
        self._next_count = time.monotonic() + COUNT_INTERVAL_S

    def get_pause(self) -> float:
        """Return the seconds until the next measurement: so few that a command cannot fill the room meanwhile. 0 means
        that there may be none."""
        room = self._measure_room()
        return min(POLL_S, max(MIN_POLL_S, room / FASTEST_WRITING)) if room >= 0 else 0.0

    def is_nearly_full(self) -> bool:
        """Return whether more than three quarters of the quota were counted."""
        return self._counted[0] > self._limits.quota * 0.75

    def _measure_room(self) -> int:
        """Return how many bytes may be written before everything is counted, if what grew on the disks since the last
        count is all in the folders. Negative if it is to be counted now."""
        now = self._measure_disk()
        before = self._disk_at_count = self._disk_at_count or now
        (size, entries), quota = self._counted, self._limits.quota
        if entries + now[1] - before[1] > self._limits.entries:
            return -1
        return min(quota, max(quota * 3 // 4, size + quota // 20)) - size - now[0] + before[0]

    def find_exceeded_limit(self) -> str:
        """Return which limit is exceeded, as a sentence; empty if none is."""
        began, now, fits = time.monotonic(), self._measure_disk(), self._measure_room() >= 0
        if fits and began < self._next_count:
            return ""
        self._counted, self._disk_at_count = self._count(), now
        self._next_count = began + max(COUNT_INTERVAL_S, COUNT_PAUSE_FACTOR * (time.monotonic() - began))
        size, entries = self._counted
        if size > self._limits.quota:
            limit = f"{self._limits.quota / 1024**3:.3g} GiB"
            return f"Ended: about {limit} lie in the workspace, which is all it may hold. Remove something."
        if entries > self._limits.entries:
            return f"Ended: more than {self._limits.entries:,} files lie in the workspace. Remove some."
        return ""

    def _measure_disk(self) -> tuple[int, int]:
        """Return the used bytes and entries on the disks of the folders, of all users."""
        disks = [os.statvfs(folder) for folder in {folder.stat().st_dev: folder for folder in self._folders}.values()]
        size = sum((disk.f_blocks - disk.f_bfree) * disk.f_frsize for disk in disks)
        return size, sum(disk.f_files - disk.f_ffree for disk in disks)

    def _count(self) -> tuple[int, int]:
        size = count = 0
        pending = [str(folder) for folder in self._folders]
        while pending:
            with suppress(OSError), os.scandir(pending.pop()) as scan:  # it may disappear meanwhile
                entries = list(scan)
                size += BLOCK_BYTES * sum(entry.stat(follow_symlinks=False).st_blocks for entry in entries)
                count += len(entries)
                pending += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        return size, count


SUPERVISING_PROCESSES: Final = 4
"""How many supervising processes run around a command."""

PAGE_BYTES: Final = os.sysconf("SC_PAGESIZE")
TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
CPU_TIME_FIELD, CHILDREN_TIME_FIELD, THREADS_FIELD, START_TIME_FIELD = 11, 13, 17, 19
"""Positions in /proc/PID/stat after the name. A kernel that lists no children reports nothing."""


@record
class ProcessUsage:
    """Memory in bytes, threads, and CPU time in seconds."""

    memory: int = 0
    threads: int = 0
    seconds: float = 0.0


class UsageMeter:
    """Measures the usage of all commands in one workspace."""

    def __init__(self, limits: CommandLimits) -> None:
        self._memory_limit = limits.memory
        self._times: dict[str, dict[tuple[int, str], int]] = {}
        self._due: dict[str, float] = {}

    def is_due(self, token: str) -> bool:
        """Return whether a command was not measured within the last quarter of a second; then note that it is now."""
        now = time.monotonic()
        is_due = now >= self._due.get(token, 0.0)
        if is_due:
            self._due[token] = now + POLL_S
        return is_due

    def measure(self, token: str, supervisor_pid: int) -> ProcessUsage:
        """Return the usage of all descendants of the supervisor."""
        times, threads, with_exited = self._times.setdefault(token, {}), 0, 0
        processes = dict(_list_descendants(supervisor_pid))
        for pid, stat in processes.items():
            cpu_time, exited = (
                int(stat[place]) + int(stat[place + 1]) for place in (CPU_TIME_FIELD, CHILDREN_TIME_FIELD)
            )
            # The CPU time of a process without a waiting parent is lost, so every process seen is remembered.
            times[pid, stat[START_TIME_FIELD]] = cpu_time
            with_exited += cpu_time + exited
            threads += int(stat[THREADS_FIELD])
        memory = sum(map(_measure_unshared_memory, processes))
        if memory > self._memory_limit:  # after a fork, parent and child share pages until one writes
            memory = sum(map(_measure_proportional_memory, processes))
        return ProcessUsage(
            memory=memory, threads=threads, seconds=max(with_exited, sum(times.values())) / TICKS_PER_SECOND
        )

    def forget(self, token: str) -> None:
        """Forget a command that has ended."""
        self._times.pop(token, None)
        self._due.pop(token, None)


def find_exceeded_limit(usage: ProcessUsage, limits: CommandLimits) -> str:
    """Return which limit is exceeded, as a sentence; empty if none is."""
    if usage.seconds > limits.cpu_seconds:
        return f"Ended: it has used the processor for more than {limits.cpu_seconds} seconds, which is all it may."
    if usage.memory > limits.memory:
        return f"Ended: it has taken more than {limits.memory / 1024**3:.3g} GiB of memory, which is all it may."
    if usage.threads > limits.processes + SUPERVISING_PROCESSES:
        return f"Ended: it has begun more than {limits.processes} processes, which is all it may."
    return ""


def _list_descendants(supervisor_pid: int) -> Iterator[tuple[int, list[str]]]:
    """Yield all descendants of a process with their fields from /proc/PID/stat."""
    pending = list(_list_children(supervisor_pid))
    while pending:
        pid = pending.pop()
        if stat := _read_stat(pid):
            yield pid, stat
        pending += _list_children(pid)


def signal_descendants(supervisor_pid: int, number: int, *, slowed: bool = False) -> None:
    """Send a signal to all descendants of a process. With `slowed`, they get the lowest priority."""
    for pid, _ in _list_descendants(supervisor_pid):
        with suppress(OSError):  # it has ended
            if slowed:
                os.setpriority(os.PRIO_PROCESS, pid, 19)
            os.kill(pid, number)


def _list_children(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            yield from map(int, (thread / "children").read_text("ascii").split())


def _read_stat(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return []


def _measure_unshared_memory(pid: int) -> int:
    """Return the memory of a process without files. Shared pages count fully. This is fast."""
    with suppress(OSError, ValueError, IndexError):
        resident, shared = Path(f"/proc/{pid}/statm").read_text("ascii").split()[1:3]
        return (int(resident) - int(shared)) * PAGE_BYTES
    return 0


def _measure_proportional_memory(pid: int) -> int:
    """Return the memory of a process with shared pages divided among their users. This is slow."""
    with suppress(OSError, ValueError, IndexError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return _measure_unshared_memory(pid)
