"""Commands that run in the background: begun by one step, looked at and stopped by others. They live in this process.

Nothing of them is in the log but what was read: when the process ends they are dead, and whoever asks is told so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Final

from greenroom.abilities.tools.commands.asking import Script
from greenroom.abilities.tools.commands.kept import Kept
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.ports.commands import Begun, CommandEvent, Commands, Ended, Printed
from greenroom.core.ports.executor import Bench, Outcome

AT_ONCE: Final = 16
REMEMBERED: Final = 64
BEGINNING: Final = 3 * 1024 * 1024


@dataclass(slots=True, eq=False)
class Running:
    """One of them, also after its end."""

    script: Script
    handle: str
    kept: Kept
    ended: Ended | None = None
    task: asyncio.Task[None] | None = field(default=None)

    async def stop(self) -> None:
        """End it, and see it dead."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait((self.task,))

    async def wait(self, seconds: float) -> None:
        """Until it ends, or so long."""
        if self.task is not None and seconds > 0:
            await asyncio.wait((self.task,), timeout=seconds)


class Background:
    """All of them, by team and handle."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._known: dict[tuple[str, str], Running] = {}

    async def begin(self, bench: Bench, script: Script) -> Outcome:
        """Begin one; its handle is the id of the step that began it."""
        alive = [one.handle for one in self._known.values() if one.ended is None]
        if len(alive) >= AT_ONCE:
            raise WorldFault(f"{len(alive)} commands run in the background. Stop one first: {', '.join(alive)}.")
        running = Running(script, bench.step.step_id, Kept(BEGINNING))
        events = self._commands.run(script.command)
        try:
            await _made_known(bench, events)
        except BaseException:
            await events.aclose()
            raise
        running.task = asyncio.create_task(_read(running, events), name=f"background {running.handle}")
        self._remember(bench.world.team.team_id, running)
        told = (
            f'It runs in the background. command_output(handle="{running.handle}") shows what it prints, '
            f'stop_command(handle="{running.handle}") ends it. It ends after {script.seconds} s, or with this run.'
        )
        return Outcome(result={"output": told, "handle": running.handle})

    async def find(self, bench: Bench, handle: str) -> Running | None:
        """The one with this handle; None when it was begun in an earlier life and is gone. A handle is a team's own."""
        found = self._known.get((bench.world.team.team_id, handle))
        if found is None and not await _was_begun(bench, handle):
            raise ModelFault(
                f"No command {handle!r} was begun in the background here. execute_script with background=true gives a "
                "handle: copy it from there."
            )
        return found

    async def quiet(self) -> list[str]:
        """End all that still run, and see them dead; returns their handles."""
        alive = [one for one in self._known.values() if one.ended is None]
        await asyncio.gather(*(one.stop() for one in alive))
        return [one.handle for one in alive]

    def _remember(self, team: str, running: Running) -> None:
        over = [key for key, one in self._known.items() if one.ended is not None]
        for key in over[: max(0, len(self._known) - REMEMBERED)]:
            del self._known[key]
        self._known[team, running.handle] = running


async def _made_known(bench: Bench, events: AsyncGenerator[CommandEvent, None]) -> None:
    begun = await anext(events)
    if isinstance(begun, Begun) and begun.mark is not None:
        await bench.prepare(begun.mark)


async def _read(running: Running, events: AsyncGenerator[CommandEvent, None]) -> None:
    """Take what it prints, until it ends or is stopped."""
    try:
        async for event in events:
            if isinstance(event, Printed):
                running.kept.add(event.text, event.missing)
            elif isinstance(event, Ended):
                running.ended = event
    finally:
        await events.aclose()
        running.kept.end()
        running.ended = running.ended or Ended(how="cancelled")


async def _was_begun(bench: Bench, handle: str) -> bool:
    """Whether a step of this conversation has begun it, in whichever life."""
    return any(
        step.step_id == handle and "handle" in (step.result or {}) and step.work.executor == "execute_script"
        for step in await bench.history()
    )
