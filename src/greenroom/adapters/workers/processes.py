"""Child processes in groups of their own, and how a later life of ours finds and ends them.

A process id is used again by the system, so a group is named by its id *and* the moment its leader began. What cannot
be proven to be ours is left alone.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.core.state.step import PROCESS, Prepared

GATE: Final = 'read -r _ && exec "$@" </dev/null'
PROC: Final = Path("/proc")
LOOK_EVERY: Final = 0.01
LOOKS: Final = 500


def born(pid: int) -> str:
    """When the process with this id began, as text that no other process has; empty when there is none."""
    if PROC.is_dir():
        try:
            started = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
            boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            return ""
        return f"{boot}:{started}"
    listed = subprocess.run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listed.stdout.strip()


def mark(pid: int) -> Prepared:
    """What is written down about a process group before it does anything."""
    return Prepared(kind=PROCESS, key=str(pid), before=born(pid))


async def start(
    command: Sequence[str], *, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    """Start a command as the leader of a session of its own; it does nothing until `let_go`.

    So its group can be written down first: if we die before that, its gate closes and it ends by itself.
    """
    variables = {"PATH": os.defpath, **(env or {})}
    if shutil.which(command[0], path=variables["PATH"]) is None:
        raise WorldFault(f"{command[0]!r} could not be started: there is no such program.")
    return await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", GATE, "sh", *command),
        cwd=folder,
        env=variables,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )


def let_go(process: asyncio.subprocess.Process) -> None:
    """Open the gate: the command runs."""
    if process.stdin is not None:
        process.stdin.write(b"go\n")
        process.stdin.close()


async def end(pid: int) -> None:
    """Kill the whole group and see it dead."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    for _ in range(LOOKS):
        if not alive(pid):
            return
        await asyncio.sleep(LOOK_EVERY)
    raise WorldFault(f"The process group {pid} does not die although it was killed.")


def alive(group: int) -> bool:
    """Whether any member of the group still runs; a zombie that nobody has waited for does not."""
    if not PROC.is_dir():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, 0)
            return True
        return False
    return any(_runs_in(entry, group) for entry in PROC.iterdir() if entry.name.isdigit())


def _runs_in(entry: Path, group: int) -> bool:
    try:
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return int(fields[2]) == group and fields[0] not in ("Z", "X")


async def end_left_over(prepared: Sequence[Prepared]) -> int:
    """End what an earlier life of ours left running; returns how many groups there were."""
    ended = 0
    for one in prepared:
        if one.kind == PROCESS and one.before and born(int(one.key)) == one.before:
            await end(int(one.key))
            ended += 1
    return ended
