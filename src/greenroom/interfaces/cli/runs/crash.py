"""`demo --crash`: a child process runs the team and is killed, a second one goes on; this one only watches the log."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections import Counter
from collections.abc import Mapping

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TeamId
from greenroom.core.state.message import MessageSent
from greenroom.core.state.step import StepEnded
from greenroom.interfaces.cli.display.telling import Teller
from greenroom.interfaces.cli.display.words import step_words
from greenroom.interfaces.cli.runs.running import Ending, command, telling
from greenroom.interfaces.cli.runs.session import Door
from greenroom.testing.demo import ANSWER, folder


async def crash_and_resume(door: Door, team: TeamId) -> Ending:
    """Let one process work until it dies, and another one finish; tell it all from the log."""
    teller = Teller()
    door.progress.begin(teller)
    try:
        await _dies(door, team, teller)
        await _carries_on(door, team, teller)
    except asyncio.CancelledError:
        door.progress.end()
        door.progress.note(f"Stopped. Go on with: {command(door, 'resume', team)}", style="bold")
        raise
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
        f"◆ A new process, {child.pid}, takes the same team up: {command(door, 'resume', team)}", style="bold blue"
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


async def prove(door: Door, team: TeamId) -> str:
    """Count in the log and on the disk that nothing was lost or done twice; returns what is wrong, if anything is."""
    door.progress.note("")
    door.progress.note("Counted in the log and on the disk:", style="bold")
    wrong = []
    for what, counted in (await _counted(door, team)).items():
        twice = [name for name, count in counted.items() if count > 1]
        right = bool(counted) and not twice
        found = f"{len(counted)} {what}, " + ("each once" if right else f"more than once: {', '.join(twice) or 'none'}")
        door.progress.note(f"  {'✓' if right else '✗'} {found}", style="green" if right else "bold red")
        wrong += [] if right else [found]
    return "; ".join(wrong)


async def _counted(door: Door, team: TeamId) -> Mapping[str, Counter[str]]:
    messages, steps, files = Counter[str](), Counter[str](), Counter[str]()
    async for told in door.runtime.events(team):
        match told.event:
            case MessageSent():
                messages[told.event.message.message_id] += 1
            case StepEnded():
                steps[told.event.step_id] += 1
                name, _, rest = str((told.event.result or {}).get("output", "")).partition(" written")
                files[name] += bool(rest)
            case _:
                pass
    ledger = (folder(door.home, team) / "ledger.txt").read_text("utf-8").splitlines()
    return {
        "lines in the ledger": Counter(ledger),
        "files written": +files,
        "messages sent": messages,
        "steps ended": steps,
    }
