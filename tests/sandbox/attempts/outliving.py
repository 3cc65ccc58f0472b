"""Attempts to live on: after the end, after the timeout, after Greenroom itself."""

from __future__ import annotations

import time
from functools import partial
from typing import Final

from tests.sandbox.attempt import Attempt, Ending, Tried
from tests.sandbox.seeing import alive
from tests.sandbox.stage import Stage

stay = partial(Attempt, kind="outliving", seen=alive, control="bare")

SLEEP: Final = (
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN); time.sleep(40)"
)
AWAY: Final = f"""
libc.prctl(1, 0)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        {SLEEP}
    os._exit(0)
os.wait()
"""
"""A daemon: it has left its parent, session, group and output."""

SESSION: Final = f"""
if os.fork() == 0:
    os.setsid()
    {SLEEP}
"""
CHAIN: Final = """
open('@work@/beat', 'w').close()
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        os.utime('@work@/beat')
        if os.fork():
            os._exit(0)
        os.setsid()
"""
KEEPER: Final = f"""
if os.fork() == 0:
    libc.prctl(36, 1)
    os.setsid()
    for turn in range(3):
        if os.fork() == 0:
            if os.fork() == 0:
                {SLEEP}
            os._exit(0)
    {SLEEP}
"""
"""A process that replaces the subreaper of its orphans."""

STOPPED: Final = """
if os.fork() == 0:
    os.setsid()
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(40)
"""
BESIDE: Final = """
CLONE_PARENT = 0x8000
if libc.syscall(220 if platform.machine() == 'aarch64' else 56, CLONE_PARENT | 17, 0, 0, 0, 0) == 0:
    os.setsid()
    time.sleep(40)
"""
FIRST_OF_ITS_OWN: Final = f"""
if os.fork() == 0:
    checked(libc.unshare(0x20000000))
    if os.fork() == 0:
        os.setsid()
        {SLEEP}
    os._exit(0)
"""
KEEPERS_KILLED: Final = f"""
def above(pid):
    return int(open(f'/proc/{{pid}}/stat').read().rpartition(')')[2].split()[1])

def kept(pid):
    return pid > 1 and b'supervisor' in open(f'/proc/{{pid}}/cmdline', 'rb').read()

guard = os.getppid()
supervisor = above(guard)
libc.prctl(1, 0)
if os.fork() == 0:
    os.setsid()
    libc.prctl(1, 0)
    if kept(guard) and kept(supervisor):
        os.kill(supervisor, signal.SIGSTOP)
        os.kill(guard, signal.SIGKILL)
        os.kill(supervisor, signal.SIGKILL)
    {SLEEP}
time.sleep(5)
"""
"""The supervisor is killed first."""


def _beats(stage: Stage, _tried: Tried) -> str:
    """A process with a new pid at each look is recognised by what it writes."""
    beat = stage.work / "beat"
    before = beat.stat().st_mtime_ns if beat.exists() else 0
    time.sleep(0.2)
    return "something still writes" if before and beat.stat().st_mtime_ns != before else ""


HOLD: Final = "\nif os.getpid() == leader:\n    hold()\n    time.sleep(40)\n"
LEADER: Final = "leader = os.getpid()\n"


def _ended(name: str, script: str, ending: Ending) -> Attempt:
    return stay(
        name=f"{name}, {WORDS[ending]}", script=LEADER + script + (HOLD if ending != "by itself" else ""), ending=ending
    )


WORDS: Final = {
    "by itself": "after its end",
    "in time": "after its time",
    "closed": "after being stopped",
    "house killed": "after a house that was killed",
}

OUTLIVING: Final = (
    _ended("a daemon", AWAY, "by itself"),
    _ended("a daemon", AWAY, "in time"),
    _ended("a daemon", AWAY, "closed"),
    _ended("a daemon", AWAY, "house killed"),
    _ended("a session of its own", SESSION, "by itself"),
    _ended("a session of its own", SESSION, "house killed"),
    stay(
        name="another process every moment, after its time",
        script=LEADER + CHAIN + HOLD,
        ending="in time",
        seen=_beats,
    ),
    _ended("a keeper of orphans", KEEPER, "in time"),
    _ended("a keeper of orphans", KEEPER, "house killed"),
    _ended("a process that is stopped", STOPPED, "in time"),
    _ended("a brother instead of a child", BESIDE, "by itself"),
    stay(name="the first process of a namespace of its own", script=LEADER + FIRST_OF_ITS_OWN, needs=("root",)),
    stay(name="those who look after it killed", script=KEEPERS_KILLED, control="plain"),
)
