"""No process outlives its client, nor the house: not what ignores being told, nor what left its session long ago."""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from greenroom.core.base.errors import WorldFault
from tests.adapters.mcp.running import asked, client_of, marked, output, raw, until

ROOT = Path(__file__).resolve().parents[3]


async def test_a_server_that_is_closed_ends_with_its_whole_family(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        await asked(client, "family")
        await until((tmp_path / "grandchild").exists)
        assert len(marked(tmp_path.name)) >= 3, "or this test shows nothing"
    assert marked(tmp_path.name) == []


async def test_a_server_that_stays_when_nobody_talks_to_it_is_ended(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, "stays")) as client:
        await client.catalogue()
    assert marked(tmp_path.name) == []


async def test_a_family_does_not_outlive_a_server_that_dies(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        await asked(client, "family")
        await until((tmp_path / "grandchild").exists)
        assert (await asked(client, "die")).state == "uncertain"
        await until(lambda: marked(tmp_path.name) == [])


async def test_a_client_that_was_closed_starts_nothing(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        await client.close()
        with pytest.raises(WorldFault, match="the run is over"):
            await client.catalogue()


def begun(folder: Path) -> subprocess.Popen[bytes]:
    """A house that has been begun."""
    words = [sys.executable, "-m", "tests.adapters.mcp.house", str(folder)]
    return subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL)


async def dead_after(folder: Path) -> float:
    """Kill a house in the middle of a call; returns how many seconds later all processes of its server are dead."""
    house = begun(folder)
    try:
        await until((folder / "grandchild").exists, 60)
        assert len(marked(folder.name)) >= 3, "or this test shows nothing"
    finally:
        house.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        house.wait()
    await until(lambda: marked(folder.name) == [], 5)
    return time.monotonic() - killed


async def test_nothing_outlives_a_house_that_is_killed(tmp_path: Path) -> None:
    await dead_after(tmp_path)


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_nothing_outlives_thirty_houses_that_are_killed(tmp_path: Path) -> None:
    took = []
    for number in range(30):
        folder = tmp_path / f"mcp-house-{number}"
        folder.mkdir()
        took.append(await dead_after(folder))
    print(f"\n30 kills, nothing left; dead after {statistics.median(took):.3f} s (median), {max(took):.3f} s (most)")


async def test_a_client_that_is_closed_while_its_server_starts_leaves_nothing(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        starting = asyncio.create_task(client.catalogue())
        await until(lambda: bool(marked(tmp_path.name)))
        await client.close()
        with pytest.raises(WorldFault, match="the run is over"):
            await starting
    assert marked(tmp_path.name) == []


async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path, "hangs")) as client:
        starting = asyncio.create_task(client.catalogue())
        await until((tmp_path / "grandchild").exists)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert marked(tmp_path.name) == []


async def test_a_server_does_not_outlive_its_keeper(tmp_path: Path) -> None:
    async with client_of(raw(tmp_path)) as client:
        await client.catalogue()
        keeper = min(marked(tmp_path.name))
        os.kill(keeper, signal.SIGKILL)
        await until(lambda: marked(tmp_path.name) == [])
        await until(lambda: client._link is not None and bool(client._link.over))
        assert output(await asked(client, "echo", text="again")) == "again"
