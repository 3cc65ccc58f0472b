"""Helpers of the commands suite: run a command, and find every process that it started, even if it hides."""

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

from greenroom.core.ports.commands import Command, CommandEnded, CommandPrinted, CommandRunner

TOKEN: Final = (
    f"PROBE_TOKEN_{os.environ.get('PYTEST_XDIST_TESTRUNUID', '')}_{os.environ.get('PYTEST_XDIST_WORKER', '')}"
)
"""A token for this test process. Parallel tests search for their own processes."""

PATIENCE: Final = 10.0
"""Seconds after which a wait fails the test."""

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
"""A daemon: leaves its parent, session, group and output, and ignores SIGTERM."""


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
"""Variables of Greenroom's own environment that no command may get."""


class CommandsCase:
    """Base class of the suites. Subclasses open the port on a folder, with Greenroom's environment."""

    def open_commands(self, root: Path, own: Mapping[str, str]) -> CommandRunner:
        """Open the port."""
        raise NotImplementedError

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """The workspace."""
        found = tmp_path / "work"
        found.mkdir()
        return found

    @pytest.fixture
    def commands(self, root: Path) -> Iterator[CommandRunner]:
        """Return the port on the workspace, and close it at the end."""
        opened = self.open_commands(root, {**os.environ, **PLANTED})
        yield opened
        opened.close()


@dataclass
class Ran:
    """The output and the end of a command."""

    text: str
    ended: CommandEnded
    missing: int = 0


def shell(script: str, *, token: str = "", seconds: float = 60, folder: str = ".") -> Command:
    """Build a shell script. Its processes can be found by the token."""
    env = {TOKEN: token} if token else {}
    return Command(words=("bash", "-c", script), seconds=seconds, folder=folder, env=env)


async def ran(commands: CommandRunner, command: Command) -> Ran:
    """Run a command to its end."""
    texts, missing, ended = list[str](), 0, None
    async with aclosing(commands.run(command)) as events:
        async for event in events:
            if isinstance(event, CommandPrinted):
                texts.append(event.text)
                missing += event.missing
            elif isinstance(event, CommandEnded):
                ended = event
    assert ended is not None
    return Ran("".join(texts), ended, missing)


def marked(token: str) -> list[int]:
    """Return the processes with this token in their environment, without zombies."""
    wanted = f"{TOKEN}={token}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


async def until_there(path: Path) -> None:
    """Wait until this file exists."""
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
    """Wait until no process has this token. Return the seconds."""
    began = time.monotonic()
    while left := marked(token):
        assert time.monotonic() < began + seconds, f"{left} are still there"
        await asyncio.sleep(0.005)
    return time.monotonic() - began


def daemon(up: Path) -> str:
    """Return a script line that starts a daemon and continues when it is up."""
    return f'python3 -c "$DAEMON" {up}; while [ ! -e {up} ]; do sleep 0.01; done'


def with_daemon(script: str) -> str:
    """Return a script that can start a daemon."""
    return f"read -r -d '' DAEMON <<'EOF'\n{DAEMON}EOF\n{script}"
