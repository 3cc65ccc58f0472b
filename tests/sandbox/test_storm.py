"""Many commands at once, ended at random: nothing of them is left, wherever one looks."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from greenroom.core.ports.commands import CommandRunner
from tests.conformance.running import daemon, marked, ran, shell, with_daemon
from tests.sandbox.props import PROPS
from tests.sandbox.stage import Stage, staged
from tests.sandbox.tiers import open_tier

SCRIPTS: Final = (
    "sleep 600",
    "setsid sleep 600 & sleep 600",
    "trap '' TERM; while true; do sleep 0.05; done",
    "echo x >$RANDOM.txt; mktemp >/dev/null; exit 3",
    "yes >/dev/null & sleep 600",
    "mkdir -p .greenroom/agents sub/.git; sleep 600",
    with_daemon(f"{daemon(Path('/tmp/up'))}; sleep 600"),
)
LOOKED_AT: Final = ("processes", "mounts", "temporary files", "open files", "what governs")


def left(stage: Stage) -> dict[str, list[str]]:
    """What is left of them, by where it was found."""
    mounts = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    scratch = stage.base / "scratch"
    return {
        "processes": [str(pid) for pid in marked(stage.token)],
        "mounts": [line for line in mounts if str(stage.base) in line],
        "temporary files": [str(one) for one in scratch.iterdir()] if scratch.exists() else [],
        "what governs": [name for name in (".greenroom", ".mcp.json", ".claude") if (stage.work / name).exists()],
    }


def opened() -> int:
    """How many files this process has open."""
    return len([*Path("/proc/self/fd").iterdir()])


async def one(commands: CommandRunner, token: str, chance: random.Random) -> str:
    """One command, and how it came to its end."""
    script, moment = chance.choice(SCRIPTS), chance.random() * 1.5
    how = chance.choice(("stopped", "in time", "by itself"))
    seconds = moment if how == "in time" else 2.0
    work = asyncio.create_task(ran(commands, shell(script, token=token, seconds=seconds)))
    if how == "stopped":
        await asyncio.wait((work,), timeout=moment)
        work.cancel()
    with suppress(asyncio.CancelledError):
        return (await work).ended.how
    return "stopped"


async def storm(tier: str, count: int, seed: int) -> None:
    """So many at once."""
    chance = random.Random(seed)
    before = opened()
    with staged(PROPS) as stage:
        commands = open_tier(tier, stage.work, stage.own)
        began = time.monotonic()
        ends = await asyncio.gather(*(one(commands, stage.token, chance) for _ in range(count)))
        took = time.monotonic() - began
        running = left(stage)
        await asyncio.to_thread(commands.close)
        after = left(stage)
    assert {place: found for place, found in after.items() if found} == {}
    assert {place: found for place, found in running.items() if found and place != "temporary files"} == {}
    assert opened() <= before + 2
    assert "lost" not in ends
    kinds = {how: ends.count(how) for how in sorted(set(ends))}
    print(f"\n{count} commands at once ({tier}) in {took:.1f} s: {kinds}; nothing left of {', '.join(LOOKED_AT)}")


async def test_nothing_is_left_of_twenty_commands_at_once() -> None:
    await storm("bubblewrap", 20, 5)


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tier", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_nothing_is_left_of_two_hundred_commands_at_once(tier: str, seed: int) -> None:
    await storm(tier, 200, seed)
