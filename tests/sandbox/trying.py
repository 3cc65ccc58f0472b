"""Make one attempt on a stage: run its script, observe midway, end it, and find live processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import Command, CommandPrinted, CommandRunner
from tests.conformance.running import TOKEN, marked
from tests.sandbox.attempt import HOLDING, Attempt, Tried
from tests.sandbox.scripts import words_of
from tests.sandbox.stage import Stage
from tests.sandbox.tiers import CONTROLS, open_tier

ROOT: Final = Path(__file__).resolve().parents[2]
LEFT: Final = 0.5
"""Seconds in which all processes must be dead."""

PATIENCE: Final = 20.0


async def tried(attempt: Attempt, tier: str, stage: Stage) -> Tried:
    """Run the attempt at this tier and return the result."""
    stage.careful = tier not in CONTROLS
    attempt.ready(stage)
    if attempt.ending == "house killed":
        return await _in_a_house(attempt, tier, stage)
    commands = open_tier(tier, stage.work, stage.own)
    try:
        text, midway = await _run(attempt, commands, stage)
    except WorldFault as fault:
        return Tried(refused=str(fault))
    finally:
        await asyncio.to_thread(commands.close)
    return Tried(text=text, midway=midway, alive=await still_alive(stage.token))


async def _run(attempt: Attempt, commands: CommandRunner, stage: Stage) -> tuple[str, str]:
    """Return the output, and the observation midway."""
    text, midway, looked = "", "", False
    async with aclosing(commands.run(command_of(attempt, stage))) as events:
        async for event in events:
            text += event.text if isinstance(event, CommandPrinted) else ""
            if HOLDING not in text or looked:
                continue
            looked, midway = True, await _look(attempt, stage)
            if attempt.ending == "closed":
                break
            (stage.work / "go").touch()
    return text, midway


def command_of(attempt: Attempt, stage: Stage) -> Command:
    """Return the script as a command whose processes carry a token."""
    env = {TOKEN: stage.token, **{name: stage.fill(value) for name, value in attempt.env.items()}}
    seconds = 1.5 if attempt.ending == "in time" else attempt.seconds
    return Command(words=words_of(attempt, stage), seconds=seconds, env=env)


async def _look(attempt: Attempt, stage: Stage) -> str:
    if attempt.midway is None:
        return ""
    pids = tuple(marked(stage.token))
    assert pids, "its processes cannot be found from outside, so nothing can be seen"
    return await asyncio.to_thread(attempt.midway, stage, pids)


async def still_alive(token: str) -> tuple[int, ...]:
    """Return its processes that are alive although all should be dead for a while."""
    return await asyncio.to_thread(_left, token)


def _left(token: str) -> tuple[int, ...]:
    deadline = time.monotonic() + LEFT
    while (left := tuple(marked(token))) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


async def _in_a_house(attempt: Attempt, tier: str, stage: Stage) -> Tried:
    """Run it in a separate Greenroom process, and kill that with -9 while the script pauses."""
    script = stage.put(stage.base / "script", "\0".join(words_of(attempt, stage)))
    house = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.sandbox.house", tier, str(stage.work), str(script), TOKEN, stage.token),
        cwd=ROOT,
        env={**stage.own, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    text = ""
    assert house.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            while HOLDING not in text and (line := await house.stdout.readline()):
                text += line.decode()
    finally:
        with suppress(ProcessLookupError):
            house.send_signal(signal.SIGKILL)
        await house.wait()
    return Tried(text=text, alive=await still_alive(stage.token))
