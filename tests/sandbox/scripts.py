"""The preamble of each script: it announces its start, and can pause until it was observed from outside."""

from __future__ import annotations

from typing import Final

from tests.sandbox.attempt import BEGINS, HOLDING, Attempt
from tests.sandbox.stage import Stage

PYTHON: Final = f"""
import ctypes, os, platform, signal, socket, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
ARM = dict(ptrace=117, bpf=280, perf=241, userfaultfd=282, fanotify=262, add_key=217, keyctl=219, readv=270, writev=271)
INTEL = dict(ptrace=101, bpf=321, perf=298, userfaultfd=323, fanotify=300, add_key=248, keyctl=250, readv=310)
INTEL['writev'] = 311
BOTH = dict(io_uring=425, open_tree=428, fsopen=430, pidfd_open=434, pidfd_getfd=438, process_madvise=440)
NUMBERS = dict(BOTH, **(ARM if platform.machine() == 'aarch64' else INTEL))

def checked(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def call(name, *args):
    libc.syscall.restype = ctypes.c_long
    wide = [ctypes.c_long(given) if isinstance(given, int) else given for given in (NUMBERS[name], *args)]
    return checked(libc.syscall(*wide))

def hold():
    print({HOLDING!r}, flush=True)
    end = time.monotonic() + 20
    while not os.path.exists('@work@/go') and time.monotonic() < end:
        time.sleep(0.01)

def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as file:
        file.write(text)

os.chdir('@work@')
print({BEGINS!r}, flush=True)
"""

BASH: Final = f"""
hold() {{ echo {HOLDING!r}; for turn in $(seq 2000); do [ -e @work@/go ] && return; sleep 0.01; done; }}
cd @work@
echo {BEGINS!r}
"""


def words_of(attempt: Attempt, stage: Stage) -> tuple[str, str, str]:
    before = PYTHON if attempt.language == "python3" else BASH
    return attempt.language, "-c", stage.fill(before + attempt.script)
