"""The keeper of a browser, with a small program in Chromium's place: it ends with all that it has begun."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from greenroom.adapters.browser.browser_folder import UNUSED_UID, BrowserFolder
from tests.conformance.running import until_there

FAKE = """#!/bin/sh
setsid sleep 600 &
id -u >who
python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)' 2>/dev/null && echo open >udp
echo $! >stray
exec sleep 600
"""

LIKE_PLAYWRIGHT = 'exec "$0" 3</dev/null 4>/dev/null'


@pytest.fixture
def fake(tmp_path: Path) -> str:
    program = tmp_path / "chromium"
    program.write_text(FAKE)
    program.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents):
        if os.geteuid() == 0 and str(folder).startswith("/tmp/pytest"):
            folder.chmod(0o755)
    return str(program)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_all_ends_when_the_lifeline_is_cut(fake: str) -> None:
    den = BrowserFolder(fake)
    process = await asyncio.create_subprocess_exec("sh", "-c", LIKE_PLAYWRIGHT, den.starter)
    await until_there(den.profile / "stray")
    stray = int((den.profile / "stray").read_text())
    assert is_alive(stray)
    assert int((den.profile / "who").read_text()) == (UNUSED_UID if os.geteuid() == 0 else os.geteuid())
    assert not (den.profile / "udp").exists()
    await den.end()
    await process.wait()
    assert not is_alive(stray)
    den.close()


async def test_all_ends_when_its_starter_is_killed(fake: str) -> None:
    den = BrowserFolder(fake)
    process = await asyncio.create_subprocess_exec("sh", "-c", LIKE_PLAYWRIGHT, den.starter)
    await until_there(den.profile / "stray")
    stray = int((den.profile / "stray").read_text())
    process.kill()
    await process.wait()
    await den.end()
    assert not is_alive(stray)
    den.close()
