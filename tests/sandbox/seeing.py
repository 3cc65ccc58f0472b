"""Observations from outside: each returns in words what it saw, or ""."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.sandbox.attempt import Midway, Seen, Tried
from tests.sandbox.stage import BEFORE, Stage

PWNED: Final = "pwned"
"""The file outside that a planted program makes."""


def leaked(stage: Stage, tried: Tried) -> str:
    """The secret is in its output."""
    return "the secret is in its output" if stage.secret in tried.text else ""


def changed(name: str, before: str = BEFORE) -> Seen:
    """A file, named with @names@, has other content, or is gone."""

    def seen(stage: Stage, _tried: Tried) -> str:
        path = Path(stage.fill(name))
        now = path.read_text("utf-8", "replace") if path.is_file() else None
        return "" if now == before else f"{path.name} is {'gone' if now is None else 'another'}"

    return seen


def overwritten(name: str) -> Seen:
    """A host file no longer contains the secret."""

    def seen(stage: Stage, _tried: Tried) -> str:
        path = Path(stage.value(name.strip("@")))
        there = path.is_file() and path.read_text("utf-8", "replace") == stage.secret
        return "" if there else f"{path.name} is another"

    return seen


def exists(name: str) -> Seen:
    """Something exists that was not there."""

    def seen(stage: Stage, _tried: Tried) -> str:
        path = Path(stage.fill(name))
        return f"{path.name} is there" if os.path.lexists(path) else ""

    return seen


def holds(name: str, what: str) -> Seen:
    """A file contains this."""

    def seen(stage: Stage, _tried: Tried) -> str:
        path = Path(stage.fill(name))
        there = path.is_file() and stage.fill(what) in path.read_text("utf-8", "replace")
        return f"{path.name} has it" if there else ""

    return seen


def reached(name: str) -> Seen:
    """A canary was reached."""

    def seen(stage: Stage, _tried: Tried) -> str:
        canary = stage.canaries[stage.value(name)]
        with suppress(BlockingIOError):
            heard = canary.accept()[0] if canary.type == 1 else canary.recv(4096)
            if not isinstance(heard, bytes):
                heard.close()
            return "the canary was reached"
        return ""

    return seen


def ran(*words: str, folder: str = "@work@") -> Seen:
    """A person runs this there, and a planted program runs: it makes a file outside."""

    def seen(stage: Stage, _tried: Tried) -> str:
        where = Path(stage.fill(folder))
        if where.is_dir():
            by_person(stage, where, *(stage.fill(word) for word in words))
        return "the planted program ran" if (stage.outside / PWNED).exists() else ""

    return seen


def by_person(stage: Stage, folder: Path, *words: str) -> str:
    """Run commands as a careless person in a terminal. Return the output."""
    env = {"PATH": stage.own["PATH"], "HOME": str(stage.home), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        words, cwd=folder, env=env, check=False, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL
    )
    return done.stdout + done.stderr


def alive(_stage: Stage, tried: Tried) -> str:
    """Processes are alive after its end."""
    return f"{len(tried.alive)} of its processes live on" if tried.alive else ""


def victim_is(what: str) -> Seen:
    """The host process is dead, or in this state of /proc."""

    def seen(stage: Stage, _tried: Tried) -> str:
        assert stage.victim is not None
        deadline = time.monotonic() + 0.3
        while time.monotonic() < deadline:
            if what == ("dead" if stage.victim.poll() is not None else state_of(stage.victim.pid)):
                return f"a process of the host is {what}"
            time.sleep(0.02)
        return ""

    return seen


def state_of(pid: int) -> str:
    """Return the letter of its state."""
    return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]


def victim_has(file: str, what: str) -> Seen:
    """A /proc file of the host process contains this."""

    def seen(stage: Stage, _tried: Tried) -> str:
        text = Path(f"/proc/{stage.value('victim')}/{file}").read_text("ascii")
        return f"{file} of a process of the host has it" if what in " ".join(text.split()) else ""

    return seen


def victim_remembers(what: bytes) -> Seen:
    """The memory of the host process contains this."""

    def seen(stage: Stage, _tried: Tried) -> str:
        with Path(f"/proc/{stage.value('victim')}/mem").open("rb") as memory:
            memory.seek(int(stage.value("address")))
            return "the memory of a process of the host has changed" if what in memory.read(64) else ""

    return seen


def has_open(what: str) -> Midway:
    """One of its processes has this open: a kind of file, or of socket."""

    def seen(_stage: Stage, pids: tuple[int, ...]) -> str:
        return f"it has {what} open" if any(what in one for pid in pids for one in opened(pid)) else ""

    return seen


def opened(pid: int) -> list[str]:
    """Return the open files of a process by name, and sockets by protocol."""
    found = []
    with suppress(OSError):
        for one in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                name = str(one.readlink())
                proto = os.getxattr(one, "system.sockprotoname") if name.startswith("socket:") else b""
                found.append(f"{name} {proto.rstrip(bytes(1)).decode()}")
    return found


def its_proc(file: str, what: str) -> Midway:
    """A /proc file of one of its Python processes contains this."""

    def seen(stage: Stage, pids: tuple[int, ...]) -> str:
        wanted = stage.fill(what)
        for pid in pythons(pids):
            with suppress(OSError):
                if wanted in " ".join(Path(f"/proc/{pid}/{file}").read_text("utf-8", "replace").split()):
                    return f"{file} has {what!r}"
        return ""

    return seen


def pythons(pids: tuple[int, ...]) -> list[int]:
    """Return the processes of the script itself, not of its launchers."""
    found = []
    for pid in pids:
        with suppress(OSError):
            if Path(f"/proc/{pid}/exe").readlink().name.startswith("python"):
                found.append(pid)
    return found


def other_space(name: str) -> Midway:
    """Its Python processes are in more than one namespace of this kind."""

    def seen(_stage: Stage, pids: tuple[int, ...]) -> str:
        spaces = set()
        for pid in pythons(pids):
            with suppress(OSError):
                spaces.add(Path(f"/proc/{pid}/ns/{name}").readlink())
        return f"it has made a namespace of its own ({name})" if len(spaces) > 1 else ""

    return seen
