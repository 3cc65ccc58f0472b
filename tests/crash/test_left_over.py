"""A command outlives the kill -9 of its owner; recovery ends it before anything else and leaves its step in doubt."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from greenroom.adapters.processes.local_commands import is_alive
from tests.crash.command import command_of, first_life, recovered
from tests.crash.lives import fork_server


def test_recovery_ends_the_processes_of_the_last_life(tmp_path: Path) -> None:
    process = fork_server().Process(target=first_life, args=(str(tmp_path),))
    process.start()
    deadline = time.monotonic() + 30
    team, group = asyncio.run(command_of(tmp_path))
    while not group and time.monotonic() < deadline:
        team, group = asyncio.run(command_of(tmp_path))
    assert group, "the command did not start"
    process.kill()
    process.join(10)
    assert is_alive(group), "it outlives its owner, or this test shows nothing"
    state = asyncio.run(recovered(tmp_path, team))
    assert not is_alive(group)
    assert state == "uncertain"
