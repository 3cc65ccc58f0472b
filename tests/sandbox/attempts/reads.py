"""Attempts to read files outside the workspace, and Greenroom's environment and keys."""

from __future__ import annotations

import ctypes
import os
from functools import partial
from pathlib import Path
from typing import Final

from tests.sandbox.attempt import Attempt, Tried
from tests.sandbox.seeing import by_person, leaked
from tests.sandbox.stage import Stage

read = partial(Attempt, kind="reads", seen=leaked)
env = partial(Attempt, kind="environment", seen=leaked)

SCAN: Final = """
for pid in os.listdir('/proc'):
    if pid.isdigit():
        try:
            sys.stdout.buffer.write(open(f'/proc/{pid}/FILE', 'rb').read())
        except OSError:
            pass
"""
BY_HANDLE: Final = """
raw = ctypes.create_string_buffer(bytes.fromhex('@handle@'), 136)
fd = checked(libc.open_by_handle_at(os.open('.', os.O_RDONLY), raw, os.O_RDONLY))
print(os.read(fd, 999))
"""


def _shadow(_stage: Stage, tried: Tried) -> str:
    with Path("/etc/shadow").open(encoding="utf-8") as file:
        return "the first line of /etc/shadow is in its output" if file.readline().strip() in tried.text else ""


def _other_repository(stage: Stage) -> None:
    for words in (("git", "init", "-q"), ("git", "add", "notes.md"), ("git", "commit", "-qm", "first")):
        by_person(stage, stage.other, *words)
    (stage.other / "notes.md").unlink()
    by_person(stage, stage.other, "chmod", "-R", "a+rwX", ".")


def _listed(stage: Stage) -> None:
    stage.put(stage.home / stage.secret)


READS: Final = (
    read(name="a file by its path", script="print(open('@outside@/secret.txt').read())"),
    read(name="a file through a link", script="os.symlink('@outside@/secret.txt', 'k'); print(open('k').read())"),
    read(
        name="a file under a second name",
        script="os.link('@outside@/secret.txt', 'l'); print(open('l').read())",
    ),
    read(name="the folder above, searched", script="grep -rh sesame .. | head", language="bash"),
    read(name="names of files at home", script="print(os.listdir('@home@'))", ready=_listed),
    read(name="a key of ssh", script="print(open(os.path.expanduser('~/.ssh/id_ed25519')).read())"),
    read(name="a key of a cloud", script="print(open('@home@/.aws/credentials').read())"),
    read(name="passwords for machines", script="cat ~/.netrc @home@/.netrc", language="bash"),
    read(name="passwords of git", script="cat @home@/.git-credentials", language="bash"),
    read(name="Greenroom's settings", script="cat @home@/.config/greenroom/config.toml", language="bash"),
    read(name="Greenroom's keys", script="cat @home@/.config/greenroom/keys.toml", language="bash"),
    read(name="Greenroom's log", script="cat @home@/.local/share/greenroom/log.sqlite", language="bash"),
    read(name="another workspace", script="cat @other@/notes.md", language="bash"),
    read(
        name="another repository, by git",
        script="git -c safe.directory='*' -C @other@ show HEAD:notes.md",
        language="bash",
        ready=_other_repository,
    ),
    read(name="a file in shared /tmp", script="cat @in_tmp@", language="bash"),
    read(name="a file in shared memory", script="cat @in_shm@", language="bash"),
    read(
        name="the folder of a process of the host",
        script="print(open('/proc/@victim@/cwd/secret.txt').read())",
    ),
    read(
        name="the root of a process of the host",
        script="print(open('/proc/@victim@/root@outside@/secret.txt').read())",
    ),
    read(
        name="a deleted file that a process of the host has open",
        script="print(open('/proc/@victim@/fd/@number@').read())",
    ),
    read(name="a file by its handle", script=BY_HANDLE, needs=("root",)),
    read(
        name="passwords of the machine",
        script="print(open('/etc/shadow').readline())",
        seen=_shadow,
        needs=("root",),
    ),
)


INHERITED = 777
"""A descriptor number that stays unused during the tests."""


def _inherited(stage: Stage) -> None:
    """Open an inheritable file, always with the same number."""
    file = os.open(stage.outside / "secret.txt", os.O_RDONLY)
    os.dup2(file, INHERITED, inheritable=True)
    os.close(file)
    stage.afterwards(lambda: os.close(INHERITED))


def _preloaded(stage: Stage) -> None:
    source = stage.put(
        stage.outside / "evil.c",
        '#include <fcntl.h>\n__attribute__((constructor)) static void run(void) { open("evil", O_CREAT, 0666); }\n',
    )
    by_person(stage, stage.outside, "cc", "-shared", "-fPIC", "-o", str(stage.work / "evil.so"), str(source))


def _evil(stage: Stage) -> None:
    stage.put(stage.work / "evil.sh", "touch @work@/evil".replace("@work@", str(stage.work)))
    stage.put(stage.work / "lib" / "sitecustomize.py", f"open({str(stage.work / 'evil')!r}, 'w')")
    stage.put(stage.work / "bin" / "uname", f"#!/bin/sh\ntouch {stage.work}/evil\n").chmod(0o755)


def _something_else_ran(stage: Stage, _tried: Tried) -> str:
    """A planted program has run, although the command does not mention it."""
    return "something else has run" if (stage.work / "evil").exists() else ""


def _in_keyring(stage: Stage) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    add, control = (217, 219) if os.uname().machine == "aarch64" else (248, 250)
    name, secret = f"escape-{stage.token}".encode(), stage.secret.encode()
    key = libc.syscall(add, b"user", name, secret, len(secret), -4)
    if key == -1:
        raise OSError(ctypes.get_errno(), "no keyring")
    libc.syscall(control, 5, key, 0x3F3F3F3F)
    stage.afterwards(lambda: libc.syscall(control, 9, key, -4))


KEYRING: Final = """
key = call('keyctl', 10, -4, b'user', b'escape-@token@', 0)
found = ctypes.create_string_buffer(200)
call('keyctl', 11, key, found, 200)
print(found.value)
"""

planted = partial(env, ready=_evil, seen=_something_else_ran, control="bare", language="bash", script="uname; true")

ENVIRONMENT: Final = (
    env(name="a key in its environment", script="print(os.environ)", control="bare"),
    env(
        name="the environment of what began it",
        script=SCAN.replace("FILE", "environ")
        .replace("os.listdir('/proc')", "['self', str(os.getppid())]")
        .replace("if pid.isdigit()", "if pid"),
        control="bare",
    ),
    env(name="the environment of every process", script=SCAN.replace("FILE", "environ") + "# @victim@"),
    env(
        name="a file that the house has open",
        script=f"print(os.read({INHERITED}, 99))",
        ready=_inherited,
        control="bare",
    ),
    env(name="the person's keyring", script=KEYRING, ready=_in_keyring),
    planted(name="a library before all others", ready=_preloaded, env={"LD_PRELOAD": "@work@/evil.so"}, needs=("cc",)),
    planted(name="a script before every shell", env={"BASH_ENV": "@work@/evil.sh"}),
    planted(
        name="a module before every Python",
        env={"PYTHONPATH": "@work@/lib"},
        script="pass",
        language="python3",
    ),
    planted(name="another program of the same name", env={"PATH": "@work@/bin:/usr/bin:/bin"}),
)
