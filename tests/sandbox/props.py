"""Props of a stage, made when a script names them: a host process, canaries, handles, terminals."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.sandbox.stage import Stage

VICTIM: Final = """
import ctypes, os, sys, time
secret = (sys.stdin.readline().strip() + ' in memory').encode()
held = ctypes.create_string_buffer(secret, 64)
file = open('deleted.txt', 'w+'); file.write(secret.decode()); file.flush(); os.unlink('deleted.txt')
print(ctypes.addressof(held), file.fileno(), flush=True)
time.sleep(600)
"""
"""A host process with the secret in its memory, environment, arguments and an unlinked open file."""


def victim(stage: Stage) -> str:
    """Start the victim and return its pid."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", VICTIM, stage.secret],
        cwd=stage.outside,
        env={"API_KEY": stage.secret},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stage.victim = process
    stage.afterwards(lambda: _end(process))
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{stage.secret}\n")
    process.stdin.flush()
    address, number = process.stdout.readline().split()
    stage.put(stage.base / "address", address)
    stage.put(stage.base / "number", number)
    return str(process.pid)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _of_victim(name: str) -> Callable[[Stage], str]:
    def told(stage: Stage) -> str:
        stage.value("victim")
        return (stage.base / name).read_text("ascii")

    return told


def _internet(family: int, kind: int, address: str) -> Callable[[Stage], str]:
    def made(stage: Stage) -> str:
        canary = socket.socket(family, kind)
        canary.bind((address, 0))
        return _listening(stage, canary, str(canary.getsockname()[1]))

    return made


def _at_53(stage: Stage) -> str:
    canary = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    canary.bind(("127.0.0.77", 53))
    return _listening(stage, canary, "127.0.0.77")


def _unix(where: Callable[[Stage], str], kind: int = socket.SOCK_STREAM) -> Callable[[Stage], str]:
    def made(stage: Stage) -> str:
        address = where(stage)
        canary = socket.socket(socket.AF_UNIX, kind)
        canary.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        if not address.startswith("@"):
            Path(address).chmod(0o777)
            stage.afterwards(lambda: Path(address).unlink(missing_ok=True))
        return _listening(stage, canary, address)

    return made


def _listening(stage: Stage, canary: socket.socket, name: str) -> str:
    if canary.type == socket.SOCK_STREAM:
        canary.listen(8)
    canary.setblocking(False)
    stage.canaries[name] = canary
    return name


def own_address(_stage: Stage) -> str:
    """Return an address of this machine other than 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked, suppress(OSError):
        asked.connect(("192.0.2.99", 9))
        return str(asked.getsockname()[0])
    return "127.0.0.2"


def free_port(_stage: Stage) -> str:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return str(probe.getsockname()[1])


def handle(stage: Stage) -> str:
    """Return the kernel's handle of the secret file. `open_by_handle_at` opens it without a path."""
    libc = ctypes.CDLL(None, use_errno=True)
    found, mount = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136), ctypes.c_int()
    name = str(stage.outside / "secret.txt").encode()
    if libc.name_to_handle_at(-100, name, found, ctypes.byref(mount), 0) != 0:
        raise OSError(ctypes.get_errno(), "no handle")
    return found.raw.hex()


def terminal(stage: Stage) -> str:
    """Return a person's terminal. Its other end can be read."""
    ours, theirs = os.openpty()
    stage.afterwards(lambda: os.close(ours))
    stage.afterwards(lambda: os.close(theirs))
    os.set_blocking(ours, False)
    stage.put(stage.base / "terminal", str(ours))
    name = os.ttyname(theirs)
    Path(name).chmod(0o666)
    return name


def shared_memory(stage: Stage) -> str:
    """Make a System V segment with the secret and return its key."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    key = int(stage.token[:7], 16)
    number = libc.shmget(key, 4096, 0o1666)
    where = libc.shmat(number, None, 0)
    ctypes.memmove(where, stage.secret.encode() + b"\0", len(stage.secret) + 1)
    libc.shmdt(ctypes.c_void_p(where))
    stage.afterwards(lambda: libc.shmctl(number, 0, None))
    return str(key)


def _place(folder: str) -> Callable[[Stage], str]:
    """Make a host file with the secret in a shared folder."""

    def made(stage: Stage) -> str:
        path = Path(folder) / f"escape-{stage.token}"
        path.write_text(stage.secret, encoding="utf-8")
        path.chmod(0o666)
        stage.afterwards(lambda: path.unlink(missing_ok=True))
        return str(path)

    return made


PROPS: Final[Mapping[str, Callable[[Stage], str]]] = {
    "work": lambda stage: str(stage.work),
    "outside": lambda stage: str(stage.outside),
    "home": lambda stage: str(stage.home),
    "other": lambda stage: str(stage.other),
    "token": lambda stage: stage.token,
    "victim": victim,
    "address": _of_victim("address"),
    "number": _of_victim("number"),
    "tcp": _internet(socket.AF_INET, socket.SOCK_STREAM, "0.0.0.0"),
    "tcp_six": _internet(socket.AF_INET6, socket.SOCK_STREAM, "::1"),
    "udp": _internet(socket.AF_INET, socket.SOCK_DGRAM, "127.0.0.1"),
    "resolver": _at_53,
    "free_port": free_port,
    "own_address": own_address,
    "abstract": _unix(lambda stage: f"@escape-{stage.token}"),
    "abstract_dgram": _unix(lambda stage: f"@escape-d-{stage.token}", socket.SOCK_DGRAM),
    "socket": _unix(lambda stage: str(stage.outside / "service.sock")),
    "inner_socket": _unix(lambda stage: str(stage.work / "service.sock")),
    "agent": _unix(lambda stage: str(stage.home / "agent.sock")),
    "docker": _unix(lambda stage: f"/run/escape-{stage.token}.sock"),
    "tmp_socket": _unix(lambda stage: f"/tmp/escape-{stage.token}.sock"),
    "handle": handle,
    "terminal": terminal,
    "shared_memory": shared_memory,
    "in_tmp": _place("/tmp"),
    "in_shm": _place("/dev/shm"),
}
