"""Attempts to take more than its share: processes, memory, disk, time."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from tests.sandbox.attempt import Attempt, Midway, Tried
from tests.sandbox.limits import LIMITS, MIB
from tests.sandbox.seeing import pythons
from tests.sandbox.stage import Stage

take = partial(Attempt, kind="resources", seconds=40.0)
LATE: Final = 1.5
"""Seconds after which a violator must be dead, even if limits are only polled."""


def lasting(midway: Midway) -> Midway:
    """Observe that the excess is still there a while later."""

    def seen(stage: Stage, pids: tuple[int, ...]) -> str:
        if not midway(stage, pids):
            return ""
        time.sleep(LATE)
        return midway(stage, pids)

    return seen


def _processes(_stage: Stage, pids: tuple[int, ...]) -> str:
    threads = sum(_count(f"/proc/{pid}/task") for pid in pythons(pids))
    return f"it has {threads} processes" if threads > LIMITS.processes else ""


def _count(path: str) -> int:
    with suppress(OSError):
        return len([*Path(path).iterdir()])
    return 0


def _memory(_stage: Stage, pids: tuple[int, ...]) -> str:
    """Sum the private and unshared pages of all its processes."""
    pages = 0
    for pid in pythons(pids):
        with suppress(OSError):
            found = Path(f"/proc/{pid}/statm").read_text("ascii").split()
            pages += int(found[1]) - int(found[2])
    taken = pages * os.sysconf("SC_PAGESIZE")
    return f"it has {taken // MIB} MiB of memory" if taken > LIMITS.memory * 1.1 else ""


def _in_memory(name: str) -> Midway:
    """Observe a file in memory, as its processes see it."""

    def seen(stage: Stage, pids: tuple[int, ...]) -> str:
        found = (_blocks(one) for pid in pythons(pids) for one in Path(f"/proc/{pid}").glob(stage.fill(name)))
        taken = max(found, default=0) * 512
        return f"a file has {taken // MIB} MiB of memory" if taken > LIMITS.memory * 1.1 else ""

    return seen


def _in_files(stage: Stage, pids: tuple[int, ...]) -> str:
    """Observe several such files together."""
    folders = [Path(f"/proc/{pid}/root/dev/shm/big-{stage.token}") for pid in pythons(pids)]
    taken = max((sum(map(_blocks, one.iterdir())) for one in folders if one.is_dir()), default=0) * 512
    return f"files have {taken // MIB} MiB of memory" if taken > LIMITS.memory * 1.1 else ""


def _blocks(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_blocks
    return 0


def _time(_stage: Stage, pids: tuple[int, ...]) -> str:
    ticks = 0
    for pid in pythons(pids):
        with suppress(OSError):
            found = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
            ticks += sum(int(number) for number in found[11:15])
    spent = ticks / os.sysconf("SC_CLK_TCK")
    return f"it has taken {spent:.1f} s of a processor" if spent > LIMITS.cpu_seconds * 1.5 else ""


def _open_files(_stage: Stage, pids: tuple[int, ...]) -> str:
    most = max((_count(f"/proc/{pid}/fd") for pid in pythons(pids)), default=0)
    return f"it has {most} files open" if most > LIMITS.open_files else ""


def _large(stage: Stage, _tried: Tried) -> str:
    largest = max((one.stat().st_size for one in stage.work.iterdir() if one.is_file()), default=0)
    return f"a file has {largest // MIB} MiB" if largest > LIMITS.file_size else ""


def _much(stage: Stage, _tried: Tried) -> str:
    """Allow for polling: a fast disk may exceed the limit by what it writes in half a second."""
    taken = sum(one.stat().st_blocks * 512 for one in stage.work.rglob("*") if one.is_file())
    return f"the workspace has {taken // MIB} MiB" if taken > LIMITS.quota + 512 * MIB else ""


def _many(stage: Stage, _tried: Tried) -> str:
    found = sum(1 for _ in stage.work.rglob("*"))
    return f"the workspace has {found} files" if found > LIMITS.entries * 2.5 else ""


def _no_shared(stage: Stage) -> None:
    stage.afterwards(lambda: _gone(Path(f"/dev/shm/big-{stage.token}")))


def _gone(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


FORKS: Final = """
for turn in range(400):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    except OSError:
        break
hold()
"""
THREADS: Final = """
import threading
for turn in range(400):
    try:
        threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
    except RuntimeError:
        break
hold()
os._exit(0)
"""
ONE: Final = "kept = [bytearray(os.urandom(1) * 2**24) for turn in range(28)]\nhold()"
SEVERAL: Final = """
for turn in range(6):
    told, tell = os.pipe()
    if os.fork() == 0:
        kept = bytearray(b'x' * 2**26)
        os.write(tell, b'done')
        time.sleep(60)
        os._exit(0)
    os.close(tell)
    os.read(told, 9)
hold()
"""
FILL: Final = """
for turn in range(28):
    file.write(b'x' * 2**24)
file.flush()
hold()
"""
SPIN: Final = """
def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
"""
RELAY: Final = """
for turn in range(5):
    child = os.fork()
    if child == 0:
        spin(1)
        os._exit(0)
    os.waitpid(child, 0)
hold()
"""
MANY: Final = """
for turn in range(64):
    with open(f'file{turn}', 'wb') as file:
        file.write(b'x' * 2**24)
        os.fsync(file.fileno())
"""
SMALL: Final = """
for turn in range(40):
    os.mkdir(f'd{turn}')
    for other in range(500):
        open(f'd{turn}/{other}', 'w').close()
    time.sleep(0.05)
"""
FILES: Final = """
os.mkdir('/dev/shm/big-@token@')
for turn in range(14):
    try:
        open(f'/dev/shm/big-@token@/{turn}', 'wb').write(b'x' * 2**25)
    except OSError:
        break
hold()
"""
HANDLES: Final = """
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
kept = []
try:
    for turn in range(5000):
        kept.append(os.open('/dev/null', os.O_RDONLY))
except OSError:
    os.close(kept.pop())
hold()
"""

RESOURCES: Final = (
    take(name="processes", script=FORKS, midway=lasting(_processes)),
    take(name="threads", script=THREADS, midway=lasting(_processes)),
    take(name="memory of one process", script=ONE, midway=lasting(_memory)),
    take(name="memory of several processes", script=SEVERAL, midway=lasting(_memory)),
    take(
        name="memory as a file",
        script="file = open('/dev/shm/big-@token@', 'wb')\n" + FILL,
        ready=_no_shared,
        midway=_in_memory("root/dev/shm/big-@token@"),
    ),
    take(
        name="memory as several files",
        script=FILES,
        ready=_no_shared,
        midway=lasting(_in_files),
    ),
    take(
        name="memory as a file without a name",
        script="file = open(os.memfd_create('big'), 'wb')\n" + FILL,
        midway=_in_memory("fd/*"),
    ),
    take(name="a large file", script="open('f', 'wb').write(b'x' * 2**27)", seen=_large),
    take(name="a large file with nothing in it", script="open('f', 'wb').truncate(2**40)", seen=_large),
    take(name="a large file, reserved", script="os.posix_fallocate(os.open('f', 66), 0, 2**28)", seen=_large),
    take(name="many files", script=MANY, seen=_much),
    take(name="many small files", script=SMALL, seen=_many),
    take(name="a processor, by one process", script=SPIN + "spin(5); hold()", midway=_time),
    take(name="a processor, by one process after the other", script=SPIN + RELAY, midway=lasting(_time)),
    take(name="open files", script=HANDLES, midway=_open_files),
)
