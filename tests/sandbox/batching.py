"""Many attempts in one command, on one stage, for every test run. Each still has its own control.

In a working sandbox no attempt changes anything, so they do not disturb each other. An attempt that finds the result of
another reports it, and the test fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from typing import Final

from greenroom.core.ports.commands import Command, CommandPrinted, CommandRunner
from tests.conformance.running import TOKEN, marked
from tests.sandbox.attempt import HOLDING, Attempt, Ready, Tried
from tests.sandbox.props import PROPS
from tests.sandbox.scripts import PYTHON
from tests.sandbox.stage import Stage, staged
from tests.sandbox.tiers import CONTROLS, open_tier

APART: Final = frozenset({"resources", "outliving", "git", "afterwards"})
"""Classes that exhaust resources, live on, or make the same files. Each attempt needs its own command."""

DRIVER: Final = r"""
import json, os, signal, time, traceback
for number, script in enumerate(json.load(open('batch.json'))):
    print(f'\n#{number}#', flush=True)
    child = os.fork()
    if child == 0:
        try:
            exec(compile(script, f'attempt {number}', 'exec'), {'__name__': '__main__'})
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    end = time.monotonic() + 10
    while os.waitpid(child, os.WNOHANG)[0] == 0 and time.monotonic() < end:
        time.sleep(0.005)
    if os.path.exists('go'):
        os.unlink('go')
"""
MOST: Final = 40
"""Maximum attempts per command. Several commands run in parallel on several processors."""

CLASH: Final = "FileExistsError"


def disturbed(attempt: Attempt, made: Tried) -> bool:
    """Return whether the attempt only found the result of another. Files of the sandbox itself do not count."""
    return CLASH in made.text and attempt.kind != "greenroom"


def fits(attempt: Attempt) -> bool:
    """Return whether the attempt can share a command."""
    plain = attempt.language == "python3" and attempt.ending == "by itself" and not attempt.env
    return plain and attempt.kind not in APART and attempt.control == "plain"


def batches(attempts: Iterable[Attempt]) -> list[list[Attempt]]:
    """Group attempts with the same preparation."""
    found: dict[Ready, list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault(attempt.ready, []).append(attempt)
    return [several[at : at + MOST] for several in found.values() for at in range(0, len(several), MOST)]


async def made_together(attempts: Sequence[Attempt], tier: str) -> list[tuple[Tried, str]]:
    """Return the result of each attempt, and the observation of its success."""
    with staged(PROPS) as stage:
        stage.careful = tier not in CONTROLS
        attempts[0].ready(stage)
        stage.put(stage.work / "batch.json", json.dumps([stage.fill(PYTHON + one.script) for one in attempts]))
        commands = open_tier(tier, stage.work, stage.own)
        try:
            text, midway = await _run(attempts, commands, stage)
        finally:
            await asyncio.to_thread(commands.close)
        tries = [Tried(text=_part(text, number), midway=midway.get(number, "")) for number in range(len(attempts))]
        return [(one, one.midway or attempt.seen(stage, one)) for attempt, one in zip(attempts, tries, strict=True)]


async def _run(attempts: Sequence[Attempt], commands: CommandRunner, stage: Stage) -> tuple[str, dict[int, str]]:
    text, midway, looked = "", dict[int, str](), 0
    command = Command(words=("python3", "-c", DRIVER), seconds=110, env={TOKEN: stage.token})
    async with aclosing(commands.run(command)) as events:
        async for event in events:
            text += event.text if isinstance(event, CommandPrinted) else ""
            while text.count(HOLDING) > looked:
                looked += 1
                number = text.split(HOLDING)[looked - 1].count("\n#") - 1
                midway[number] = await _look(attempts[number], stage)
    return text, midway


async def _look(attempt: Attempt, stage: Stage) -> str:
    """Observe a paused attempt, then resume it."""
    pids = tuple(marked(stage.token))
    seen = await asyncio.to_thread(attempt.midway, stage, pids) if attempt.midway is not None else ""
    (stage.work / "go").touch()
    return seen


def _part(text: str, number: int) -> str:
    _, _, rest = text.partition(f"\n#{number}#")
    return rest.partition(f"\n#{number + 1}#")[0]
