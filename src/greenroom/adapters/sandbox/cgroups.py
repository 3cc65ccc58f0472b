"""Control groups: the only limit of memory for all processes of a command together, where we may make one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
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
