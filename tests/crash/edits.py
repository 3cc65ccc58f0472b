"""Processes that edit files and are killed at a chosen disk call, and the state of their workspace afterwards."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from unittest.mock import patch

from greenroom.abilities.tools.files.tools import build_file_tools
from greenroom.adapters.files import disk
from greenroom.adapters.files.disk import OpenPlace
from greenroom.adapters.files.local_files import LocalFiles
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from tests.crash.lives import die, fork_server

Kind = Literal["patch", "rewrite", "several"]
ANN = AgentId("ann")
MARK = "the mark\n"
BODY = "".join(f"line {number} of a file that is worth losing\n" for number in range(4000))
OLD = f"{MARK}{BODY}"
NEW = f"{MARK}one more\n{BODY}"  # done twice, it would have two of them
EDITS = [{"search": MARK, "replace": f"{MARK}one more\n"}]
NAMES: dict[Kind, tuple[str, ...]] = {
    "patch": ("a.txt",),
    "rewrite": ("a.txt",),
    "several": ("a.txt", "b/c.txt", "d.txt"),
}


def works(kind: Kind) -> tuple[Work, ...]:
    """Return the steps of a process."""
    several = {"files": [{"file": name, "edits": EDITS} for name in NAMES["several"]]}
    if kind == "several":
        return (Work(type="tool", executor="patch", instruction_content=several),)
    if kind == "patch":
        return (Work(type="tool", executor="patch", instruction_content={"file": "a.txt", "edits": EDITS}),)
    reads = [{"file": "a.txt", "start_line": first} for first in range(1, 4001, 500)]
    return (
        *(Work(type="tool", executor="read_code", instruction_content=one) for one in reads),
        Work(type="tool", executor="rewrite", instruction_content={"file": "a.txt", "content": NEW}),
    )


class Countdown:
    """Kills the process at the n-th call that changes the disk: before it, or in the middle of a write."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self) -> bool:
        """Return whether this is the n-th call."""
        self.left -= 1
        return self.left == 0


class DyingOs:
    """The module `os` for the adapter, which counts calls that change something."""

    def __init__(self, now: Countdown) -> None:
        self._now = now

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def write(self, file: int, content: memoryview) -> int:
        """Write all or half of the content."""
        if self._now():
            os.write(file, content[: len(content) // 2])
            die()
        return os.write(file, content)

    def fsync(self, file: int) -> None:
        """Sync, or die."""
        if self._now():
            die()
        os.fsync(file)

    def fchmod(self, file: int, mode: int) -> None:
        """Set the mode, or die."""
        if self._now():
            die()
        os.fchmod(file, mode)

    def rename(self, old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        """Rename, or die just before or just after."""
        if self._now():
            die()
        os.rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        if self._now():
            die()


def workspace(home: Path, kind: Kind) -> Path:
    """Make a workspace with the old files."""
    root = home / "work"
    for name in NAMES[kind]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(OLD)
    return root


async def _life(home: Path, kind: Kind) -> None:
    log = await SqliteLog.open(home / "log")
    tools = build_file_tools(LocalFiles(home / "work"))
    runtime = Runtime(log, capability_factories={"": lambda _: Capabilities(tools)})
    teams = await log.streams()
    team = TeamId(teams[0].stream) if teams else None
    if team is None or not (await runtime.state(team)).team.tasks_made:
        # The last process ended before the work was requested: nothing has been promised yet.
        if team is not None:
            await log.forget(team)
        names = tuple(tool.name for tool in tools)
        team = await runtime.create("t", [(ANN, AgentSpec(name="ann", tools=names, manager=True))])
        task = AddTask(name="t", intention="t", manager=ANN, driver="manager")
        steps = QueueSteps(agent_id=ANN, works=works(kind), task_id=TaskId("t1"))
        await runtime.ask(team, task, steps)
    await runtime.start(team)
    for _ in range(6000):
        if len(await ended(runtime, team)) == len(works(kind)):
            break
        await asyncio.sleep(0.01)
    await runtime.close()


async def ended(runtime: Runtime, team: TeamId) -> list[Step]:
    """Return the ended steps."""
    return [one async for one in runtime.archive(team, "step") if isinstance(one, Step)]


def in_place(_: disk.Disk, place: OpenPlace, __: str, content: bytes, ___: object) -> None:
    """Write a file without crash safety."""
    file = os.open(place.name, os.O_WRONLY | os.O_TRUNC, dir_fd=place.folder)
    vars(disk)["os"].write(file, memoryview(content))
    os.close(file)


def _main(home: str, kind: Kind, at: int, careless: bool) -> None:
    if careless:
        patch.object(disk.Disk, "_replace", in_place).start()
    if at:
        dying = DyingOs(Countdown(at))
        patch.object(disk, "os", dying).start()  # the adapter's own view of the system, in this process only
    asyncio.run(asyncio.wait_for(_life(Path(home), kind), 60))
    os._exit(0)


def live(
    home: Path, kind: Kind, *, at: int = 0, careless: bool = False, kill_after: Callable[[], float] | None = None
) -> int:
    """Run one process. Return its exit code, negative for a signal."""
    process = fork_server().Process(target=_main, args=(str(home), kind, at, careless))
    process.start()
    process.join(kill_after() if kill_after is not None else 90)
    if process.exitcode is None:
        process.kill()
        process.join(10)
    code = process.exitcode
    process.close()
    return 99 if code is None else code


async def cut_off(home: Path) -> bool:
    """Return whether the last process had announced a write, but not confirmed it."""
    if not (home / "log").exists():
        return False
    log = await SqliteLog.open(home / "log")
    try:
        teams = await log.streams()
        state = await Runtime(log).state(TeamId(teams[0].stream)) if teams else None
        return state is not None and any(step.state == "running" and step.prepared for step in state.steps.values())
    finally:
        await log.close()


async def states(home: Path) -> list[str]:
    """Return how the steps ended."""
    log = await SqliteLog.open(home / "log")
    try:
        return [step.state for step in await ended(Runtime(log), TeamId((await log.streams())[0].stream))]
    finally:
        await log.close()


def violations(root: Path, kind: Kind) -> list[str]:
    """Return what is wrong with a workspace after a kill: each file must be old or new."""
    wrong = [name for name in NAMES[kind] if (root / name).read_text() not in (OLD, NEW)]
    there = {one.relative_to(root).as_posix() for one in root.rglob("*") if one.is_file()}
    return wrong + sorted(one for one in there - set(NAMES[kind]) if not Path(one).name.startswith(disk.DRAFT_PREFIX))


def unfinished(root: Path, kind: Kind) -> list[str]:
    """Return what is wrong with a workspace after recovery: every file must be new, and nothing else left."""
    wrong = [name for name in NAMES[kind] if (root / name).read_text() != NEW]
    there = {one.relative_to(root).as_posix() for one in root.rglob("*") if one.is_file()}
    return wrong + sorted(there ^ set(NAMES[kind]))
