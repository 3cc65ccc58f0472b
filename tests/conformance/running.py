"""What the suite for commands needs: running one, and finding every process that it began, whatever it did to hide."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from greenroom.core.ports.commands import Command, Commands, Ended, Printed

TOKEN: Final = (
    f"PROBE_TOKEN_{os.environ.get('PYTEST_XDIST_TESTRUNUID', '')}_{os.environ.get('PYTEST_XDIST_WORKER', '')}"
)
"""Tests beside this one look for processes of their own."""

PATIENCE: Final = 10.0
"""Seconds that a wait may take before the test fails."""

DAEMON: Final = """import os, signal, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.closerange(0, 3)
open(sys.argv[1], 'w').close()
time.sleep(600)
"""
"""Leaves its parent, its session, its group and its output behind, and does not end when it is told to."""


PLANTED: Final[Mapping[str, str]] = {
    "OPENAI_API_KEY": "planted-1",
    "ANTHROPIC_API_KEY": "planted-2",
    "GITHUB_TOKEN": "planted-3",
    "AWS_SECRET_ACCESS_KEY": "planted-4",
    "SSH_AUTH_SOCK": "/run/planted-5",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/planted-6",
    "HTTPS_PROXY": "http://user:planted-7@proxy",
    "LD_PRELOAD": "/planted-8.so",
    "PYTHONPATH": "/planted-9",
    "BASH_ENV": "/planted-10",
    "GREENROOM_HOME": "/planted-11",
    "SOMETHING_NEW": "planted-12",
    "LC_TOKEN": "planted-13",
}
"""What no command may get of the house's own environment."""


class CommandsCase:
    """What the suites share. Say how to open the port on a folder, for a house with this environment."""

    def open_commands(self, root: Path, own: Mapping[str, str]) -> Commands:
        """Open it."""
        raise NotImplementedError

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """The workspace."""
        found = tmp_path / "work"
        found.mkdir()
        return found

    @pytest.fixture
    def commands(self, root: Path) -> Iterator[Commands]:
        """The port on it, closed in the end."""
        opened = self.open_commands(root, {**os.environ, **PLANTED})
        yield opened
        opened.close()


@dataclass
class Ran:
    """What came of a command."""

    text: str
    ended: Ended
    missing: int = 0


def shell(script: str, *, token: str = "", seconds: float = 60, folder: str = ".") -> Command:
    """A shell's script; with a token its processes can be found."""
    env = {TOKEN: token} if token else {}
    return Command(words=("bash", "-c", script), seconds=seconds, folder=folder, env=env)


async def ran(commands: Commands, command: Command) -> Ran:
    """Run it to its end."""
    texts, missing, ended = list[str](), 0, None
    async with aclosing(commands.run(command)) as events:
        async for event in events:
            if isinstance(event, Printed):
                texts.append(event.text)
                missing += event.missing
            elif isinstance(event, Ended):
                ended = event
    assert ended is not None
    return Ran("".join(texts), ended, missing)


def marked(token: str) -> list[int]:
    """The processes with this token in their environment, zombies apart."""
    wanted = f"{TOKEN}={token}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


async def until_there(path: Path) -> None:
    """Wait until somebody has made this file."""
    deadline = time.monotonic() + PATIENCE
    while not os.access(path, os.F_OK):
        assert time.monotonic() < deadline, f"{path.name} never came"
        await asyncio.sleep(0.005)


async def until_marked(token: str) -> None:
    """Wait until a process has this token."""
    deadline = time.monotonic() + PATIENCE
    while not marked(token):
        assert time.monotonic() < deadline, "the command did not start"
        await asyncio.sleep(0.005)


async def until_gone(token: str, seconds: float = PATIENCE) -> float:
    """Wait until no process has this token; returns how long that took."""
    began = time.monotonic()
    while left := marked(token):
        assert time.monotonic() < began + seconds, f"{left} are still there"
        await asyncio.sleep(0.005)
    return time.monotonic() - began


def daemon(up: Path) -> str:
    """A line of a script that begins a daemon and goes on when it is there."""
    return f'python3 -c "$DAEMON" {up}; while [ ! -e {up} ]; do sleep 0.01; done'


def with_daemon(script: str) -> str:
    """A script that can begin a daemon."""
    return f"read -r -d '' DAEMON <<'EOF'\n{DAEMON}EOF\n{script}"
