"""Attempts on processes of the host: their memory, their files, their lives."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.sandbox.attempt import Attempt
from tests.sandbox.attempts.reads import SCAN
from tests.sandbox.seeing import leaked, victim_has, victim_is, victim_remembers

attack = partial(Attempt, kind="processes")

VECTOR: Final = """
class Vector(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
mine = ctypes.create_string_buffer(b'overwritten', 64)
here, there = Vector(ctypes.addressof(mine), SIZE), Vector(@address@, SIZE)
call('NAME', @victim@, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
print(mine.raw)
"""
TRACE: Final = """
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
checked(libc.ptrace(16, @victim@, None, None))
os.waitpid(@victim@, 0x40000000)
words = [libc.ptrace(1, @victim@, @address@ + place, None) for place in range(0, 48, 8)]
libc.ptrace(17, @victim@, None, None)
print(struct.pack('6q', *words))
"""
STOLEN: Final = """
target = call('pidfd_open', @victim@, 0)
print(os.pread(call('pidfd_getfd', target, @number@, 0), 99, 0))
"""
SHARED: Final = """
libc.shmat.restype = ctypes.c_void_p
number = checked(libc.shmget(@shared_memory@, 4096, 0))
print(ctypes.string_at(libc.shmat(number, None, 0), 64))
"""

PROCESSES: Final = (
    attack(name="memory read by ptrace", script=TRACE, seen=leaked),
    attack(
        name="memory read from afar",
        script=VECTOR.replace("NAME", "readv").replace("SIZE", "48"),
        seen=leaked,
    ),
    attack(
        name="memory written from afar",
        script=VECTOR.replace("NAME", "writev").replace("SIZE", "11"),
        seen=victim_remembers(b"overwritten"),
    ),
    attack(
        name="memory read as a file",
        script="fd = os.open('/proc/@victim@/mem', 0); print(os.pread(fd, 64, @address@))",
        seen=leaked,
    ),
    attack(
        name="memory written as a file",
        script="fd = os.open('/proc/@victim@/mem', os.O_RDWR); os.pwrite(fd, b'overwritten', @address@)",
        seen=victim_remembers(b"overwritten"),
    ),
    attack(name="an open file stolen", script=STOLEN, seen=leaked),
    attack(name="killed", script="os.kill(@victim@, 9)", seen=victim_is("dead")),
    attack(
        name="killed by its file descriptor",
        script="signal.pidfd_send_signal(call('pidfd_open', @victim@, 0), 15)",
        seen=victim_is("dead"),
    ),
    attack(name="stopped", script="os.kill(@victim@, signal.SIGSTOP)", seen=victim_is("T")),
    attack(
        name="given less time",
        script="os.setpriority(os.PRIO_PROCESS, @victim@, 19)",
        seen=victim_has("stat", " 39 19 "),
    ),
    attack(
        name="given fewer files",
        script="import resource; resource.prlimit(@victim@, resource.RLIMIT_NOFILE, (33, 33))",
        seen=victim_has("limits", "Max open files 33 33"),
    ),
    attack(
        name="chosen to die first",
        script="open('/proc/@victim@/oom_score_adj', 'w').write('987')",
        seen=victim_has("oom_score_adj", "987"),
    ),
    attack(name="all of them listed", script=SCAN.replace("FILE", "cmdline") + "# @victim@", seen=leaked),
    attack(name="System V shared memory", script=SHARED, seen=leaked),
)
