"""Attempts to write outside the workspace: by every name that a file can have."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Final

from tests.sandbox.attempt import Attempt, Tried
from tests.sandbox.seeing import changed, exists, overwritten
from tests.sandbox.stage import Stage

write = partial(Attempt, kind="writes")
VICTIM: Final = "@outside@/victim.txt"
changes: Final = partial(write, seen=changed(VICTIM))


def _mode(stage: Stage, _tried: Tried) -> str:
    mode = (stage.outside / "victim.txt").stat().st_mode & 0o7777
    return "" if mode == 0o666 else f"its mode is {mode:o}"


def _time(stage: Stage, _tried: Tried) -> str:
    return "its time is another" if (stage.outside / "victim.txt").stat().st_mtime == 86400 else ""


def _attribute(stage: Stage, _tried: Tried) -> str:
    return "it has an attribute" if "user.escape" in os.listxattr(stage.outside / "victim.txt") else ""


def _owner(stage: Stage, _tried: Tried) -> str:
    return "its owner is another" if (stage.outside / "victim.txt").stat().st_uid == 12345 else ""


def _program(stage: Stage) -> Path:
    return Path(f"/usr/local/bin/escape-{stage.token}")


def _remember_root(stage: Stage) -> None:
    stage.put(stage.base / "inode", str(stage.work.stat().st_ino))


def _another_root(stage: Stage, _tried: Tried) -> str:
    there = stage.work.exists() and str(stage.work.stat().st_ino) == (stage.base / "inode").read_text("ascii")
    return "" if there else "the workspace is another folder"


WRITES: Final = (
    changes(name="a file by its path", script=f"open('{VICTIM}', 'w').write('other')"),
    changes(name="a file by ..", script="open('../outside/victim.txt', 'a').write('other')"),
    changes(name="a file through a link", script=f"os.symlink('{VICTIM}', 'l'); open('l', 'w').write('other')"),
    changes(name="a folder through a link", script="os.symlink('@outside@', 'folder'); open('folder/victim.txt', 'w')"),
    changes(name="a second name for a file", script=f"os.link('{VICTIM}', 'l'); open('l', 'w').write('other')"),
    changes(name="truncate", script=f"os.truncate('{VICTIM}', 3)"),
    changes(name="delete", script=f"os.unlink('{VICTIM}')"),
    changes(name="a file moved in", script=f"os.rename('{VICTIM}', 'mine')"),
    changes(name="a file moved over it", script=f"open('f', 'w').write('x'); os.rename('f', '{VICTIM}')"),
    changes(
        name="two files exchanged",
        script=f"open('f', 'w'); checked(libc.renameat2(-100, b'f', -100, b'{VICTIM}', 2))",
    ),
    changes(
        name="the root of a process of the host",
        script=f"open('/proc/@victim@/root{VICTIM}', 'w').write('other')",
    ),
    changes(name="the folder of a process of the host", script="open('/proc/@victim@/cwd/victim.txt', 'w')"),
    changes(
        name="a bind mount in a namespace of its own",
        script="unshare -Urm bash -c 'mkdir -p m && mount --bind @outside@ m && echo other >m/victim.txt'",
        language="bash",
    ),
    changes(
        name="a mount namespace of a process of the host",
        script=(
            "fd = os.open('/proc/@victim@/ns/mnt', os.O_RDONLY)\nchecked(libc.setns(fd, 0x20000))\n"
            f"open('{VICTIM}', 'w').write('other')"
        ),
        needs=("root",),
    ),
    write(name="a new file", seen=exists("@outside@/new"), script="open('@outside@/new', 'w')"),
    write(
        name="a new name for an open file",
        seen=exists("@outside@/new"),
        script=(
            "file = open('f', 'w')\n"
            "checked(libc.linkat(-100, b'/proc/self/fd/%d' % file.fileno(), -100, b'@outside@/new', 0x400))"
        ),
    ),
    write(name="a new folder", seen=exists("@outside@/new"), script="os.mkdir('@outside@/new')"),
    write(name="a new link", seen=exists("@outside@/new"), script="os.symlink('/', '@outside@/new')"),
    write(name="a new pipe", seen=exists("@outside@/new"), script="os.mkfifo('@outside@/new')"),
    write(name="mode", seen=_mode, script=f"os.chmod('{VICTIM}', 0o600)"),
    write(name="time", seen=_time, script=f"os.utime('{VICTIM}', (86400, 86400))"),
    write(name="an attribute", seen=_attribute, script=f"os.setxattr('{VICTIM}', 'user.escape', b'1')"),
    write(name="owner", seen=_owner, script=f"os.chown('{VICTIM}', 12345, -1)", needs=("root",)),
    write(
        name="another workspace",
        seen=exists("@other@/new"),
        script="open('@other@/new', 'w')",
    ),
    write(
        name="a new file in shared /tmp",
        seen=exists("/tmp/new-@token@"),
        script="open('/tmp/new-@token@', 'w')",
        ready=lambda stage: stage.afterwards(lambda: Path(f"/tmp/new-{stage.token}").unlink(missing_ok=True)),
    ),
    write(
        name="a file in shared /tmp",
        seen=overwritten("@in_tmp@"),
        script="open('@in_tmp@', 'w').write('other')",
    ),
    write(
        name="a file in shared memory",
        seen=overwritten("@in_shm@"),
        script="open('@in_shm@', 'w').write('other')",
    ),
    write(
        name="the workspace itself moved away",
        ready=_remember_root,
        seen=_another_root,
        script="os.rename('@work@', '@work@.gone')",
    ),
    write(
        name="a program for everybody",
        seen=exists("/usr/local/bin/escape-@token@"),
        script="os.symlink('/bin/true', '/usr/local/bin/escape-@token@')",
        ready=lambda stage: stage.afterwards(lambda: _program(stage).unlink(missing_ok=True)),
        needs=("root",),
    ),
)
