"""`demo --crash`: a child process runs the team and is killed, a second one goes on; this one only watches the log."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections import Counter
from collections.abc import Sequence

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import record
from greenroom.core.state.message import MessageSent
from greenroom.core.state.step import StepEnded, StepStarted
from greenroom.interfaces.cli.running import Ending, telling
from greenroom.interfaces.cli.session import Door
from greenroom.interfaces.cli.telling import Teller
from greenroom.interfaces.cli.words import step_words
from greenroom.testing.demo import ANSWER, folder


async def crash_and_resume(door: Door, team: TeamId) -> Ending:
    """Let one process work until it dies, and another one finish; tell it all from the log."""
    teller = Teller()
    door.progress.begin(teller)
    try:
        await _dies(door, team, teller)
        await _carries_on(door, team, teller)
    finally:
        door.progress.end()
    tasks = [task.task_id for task in await door.runtime.ended_tasks(team)] + list(teller.world.tasks)
    return Ending(standings=[(task, await door.runtime.stands(team, task)) for task in tasks], teller=teller)


async def _dies(door: Door, team: TeamId, teller: Teller) -> None:
    child = await _start(door, "demo", "--team", team, "--fatal", ANSWER)
    async with telling(door, team, teller):
        code = await _end_of(child)
    if code != -signal.SIGKILL:
        raise WorldFault(f"The process that was to be killed ended by itself with code {code}. Try again.")
    running = [step for step in teller.world.steps.values() if step.state == "running"]
    door.progress.note("")
    door.progress.note(
        f"✗ Process {child.pid} was killed with kill -9 at version {teller.version}, in the middle of:",
        style="bold red",
    )
    for step in running:
        door.progress.note(f"    {step.agent_id}: {step_words(step)}", style="red")
    door.progress.note("")


async def _carries_on(door: Door, team: TeamId, teller: Teller) -> None:
    child = await _start(door, "resume", team)
    door.progress.note(
        f"◆ A new process, {child.pid}, takes the same team up: greenroom resume {team}", style="bold blue"
    )
    door.progress.note("")
    async with telling(door, team, teller):
        await _end_of(child)


async def _start(door: Door, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "greenroom.interfaces.cli",
        "--quiet",
        "--home",
        str(door.home),
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
    )


async def _end_of(child: asyncio.subprocess.Process) -> int:
    try:
        return await child.wait()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signal.SIGINT)
        await child.wait()
        raise


@record
class Proof:
    """What was counted after the fact, in one line."""

    what: str
    found: str
    right: bool


async def proofs(door: Door, team: TeamId) -> Sequence[Proof]:
    """Counted from the log and the disk: nothing lost, nothing twice."""
    messages: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    again = 0
    files: Counter[str] = Counter()
    async for told in door.runtime.events(team):
        match told.event:
            case MessageSent():
                messages[told.event.message.message_id] += 1
            case StepStarted():
                again += told.event.attempt > 1
            case StepEnded():
                steps[told.event.step_id] += 1
                output = str((told.event.result or {}).get("output", ""))
                files[output.partition(" ")[0]] += "written" in output
            case _:
                pass
    ledger = (folder(door.home, team) / "ledger.txt").read_text("utf-8").splitlines()
    return (
        _once("ledger", "lines", Counter(ledger)),
        _once("files", "written", +files),
        _once("messages", "sent", messages),
        _once("steps", "ended", steps, f"; {again} cut off and run again"),
    )


def _once(what: str, word: str, counted: Counter[str], more: str = "") -> Proof:
    twice = sum(count > 1 for count in counted.values())
    found = f"{len(counted)} {word}, " + (f"{twice} of them twice" if twice else "each once") + more
    return Proof(what=what, found=found, right=not twice and bool(counted))
