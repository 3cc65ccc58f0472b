"""Limits of a command: control groups where we may make them, else a look at its processes; and the workspace's size.

Who looks comes late: what is taken in a quarter of a second can be too much. The kernel is told besides
(`oom_score_adj`) that such processes go first when memory runs out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.base.records import record
from greenroom.core.ports.sandbox import Limits

NAME: Final = "greenroom-{pid}-{token}"
PATIENCE: Final = 1.0
"""Seconds that the kernel may take to count the last process out."""

TIME: Final = "cpuacct"
V1: Final = {"memory": "memory.limit_in_bytes", "pids": "pids.max", TIME: ""}
V2: Final = {"memory": "memory.max", "pids": "pids.max", TIME: ""}
"""Time is only counted, so nothing is written for it."""


@record
class Place:
    """A folder in which groups can be made, and what is written into which file of a group."""

    folder: Path
    files: Mapping[str, str]


class Cgroups:
    """Those of one house. Where there is no place for any, a command gets none."""

    def __init__(self, limits: Limits, places: tuple[Place, ...] | None = None) -> None:
        self._values = {"memory": limits.memory, "pids": limits.processes}
        self._places = tuple(_usable(_places())) if places is None else places
        self.sweep()

    @property
    def holds(self) -> frozenset[str]:
        """What is limited by them: memory, pids."""
        return frozenset(kind for place in self._places for kind in place.files)

    def made(self, token: str) -> tuple[str, ...]:
        """Groups for one command: the files with which a process joins them."""
        joined = []
        for place in self._places:
            group = place.folder / NAME.format(pid=os.getpid(), token=token)
            group.mkdir()
            for kind, file in place.files.items():
                if not file:
                    continue
                (group / file).write_text(str(self._values[kind]), encoding="ascii")
            with suppress(OSError):
                (group / "memory.swap.max").write_text("0", encoding="ascii")
            joined.append(str(group / "cgroup.procs"))
        return tuple(joined)

    def spent(self, token: str) -> float:
        """Seconds of the processor that all processes of a command have used; 0 where nobody counts."""
        for place in self._places:
            if TIME in place.files:
                return _seconds(place.folder / NAME.format(pid=os.getpid(), token=token))
        return 0.0

    def remove(self, token: str) -> None:
        """Take them away; all in them are dead, but the kernel may still count."""
        for place in self._places:
            _removed(place.folder / NAME.format(pid=os.getpid(), token=token))

    def sweep(self) -> None:
        """Take away what a house left that was killed."""
        for group in (group for place in self._places for group in place.folder.glob("greenroom-*-*")):
            if not Path("/proc", group.name.split("-")[1]).exists():
                with suppress(OSError):
                    group.rmdir()


def _seconds(group: Path) -> float:
    with suppress(OSError, ValueError):
        return int((group / "cpuacct.usage").read_text(encoding="ascii")) / 1e9
    with suppress(OSError, ValueError, IndexError):
        return int((group / "cpu.stat").read_text(encoding="ascii").split()[1]) / 1e6
    return 0.0


def _removed(group: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.002)
        else:
            return


def _places() -> Iterator[Place]:
    """Where we are in each tree of groups."""
    trees = dict(_trees())
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, kinds, path = line.split(":", 2)
            yield from _in_tree(trees, kinds.split(","), path.lstrip("/"))


def _in_tree(trees: Mapping[str, Path], kinds: list[str], path: str) -> Iterator[Place]:
    """In the second version also above: a group that has processes cannot have limited groups in it."""
    for kind in kinds:
        if kind in V1 and kind in trees:
            yield Place(folder=trees[kind] / path, files={kind: V1[kind]})
    if kinds == [""] and "" in trees:
        own = trees[""] / path
        yield from (Place(folder=one, files=V2) for one in (own, *own.parents) if one.is_relative_to(trees[""]))
        yield Place(folder=own, files={TIME: ""})


def _trees() -> Iterator[tuple[str, Path]]:
    """The trees that are mounted, by what they limit; of the second version there is one, without a name."""
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
            _, where, kind, options = line.split(" ")[:4]
            if kind == "cgroup2":
                yield "", Path(where)
            elif kind == "cgroup":
                yield from ((one, Path(where)) for one in options.split(",") if one in V1)


def _usable(places: Iterator[Place]) -> Iterator[Place]:
    """Those in which a group can really be made, with its limits; for each limit the first."""
    done = set[str]()
    for place in places:
        trial = place.folder / NAME.format(pid=os.getpid(), token=f"trial{len(done)}")
        if done & place.files.keys() or not os.access(place.folder, os.W_OK):
            continue
        try:
            trial.mkdir()
        except OSError:
            continue
        if all(os.access(trial / file, os.W_OK) for file in place.files.values() if file):
            done |= place.files.keys()
            yield place
        with suppress(OSError):
            trial.rmdir()


# ---------------------------------------------------------------------------------------------------- the workspace

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

    def overrun(self, unlinked: Callable[[], int] = int) -> str:
        """Why it is too much; empty while it is not. `unlinked` counts files that are open and lie in no folder."""
        now = self._on_disk()
        if self._then is None:
            self._then = now
        grown = [have + after - before for have, after, before in zip(self._counted, now, self._then, strict=True)]
        fits = grown[0] <= self._limits.quota and grown[1] <= self._limits.entries
        began = time.monotonic()
        if fits and began < self._due:
            return ""
        size, entries = self._count()
        self._counted, self._then = (size + unlinked(), entries), now
        took = time.monotonic() - began
        self._due = began + max(OFTEN, SHARE * took)
        return self._said(*self._counted)

    def _said(self, size: int, entries: int) -> str:
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
        size = entries = 0
        waiting = [str(folder) for folder in self._folders]
        while waiting:
            with suppress(OSError):  # it went while we looked
                found, blocks, below = _in_folder(waiting.pop())
                size, entries = size + blocks * BLOCK, entries + found
                waiting += below
        return size, entries


def _in_folder(folder: str) -> tuple[int, int, list[str]]:
    """How many entries, how many blocks they have, and the folders among them."""
    with os.scandir(folder) as found:
        entries = list(found)
    blocks = sum(entry.stat(follow_symlinks=False).st_blocks for entry in entries)
    return len(entries), blocks, [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


# ---------------------------------------------------------------------------------------------------- processes

OURS: Final = 4
"""Processes around a command that are not its own."""

PAGE: Final = os.sysconf("SC_PAGESIZE")
REGULAR: Final = 0o100000
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
