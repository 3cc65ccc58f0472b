"""Hearing a command to its end: what it prints is kept and shown as it comes, its processes are made known first."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from greenroom.abilities.tools.commands.kept import Kept
from greenroom.abilities.tools.commands.live import LiveLines
from greenroom.core.ports.commands import Begun, CommandEvent, Ended, Printed
from greenroom.core.state.step import Prepared


async def heard(
    run: AsyncGenerator[CommandEvent, None], prepare: Callable[[Prepared], Awaitable[None]], kept: Kept, live: LiveLines
) -> Ended:
    """How it ended. Whoever cancels this ends the command."""
    ended = Ended(how="lost")
    async with aclosing(run) as events:
        async for event in events:
            if isinstance(event, Begun) and event.mark is not None:
                await prepare(event.mark)
            elif isinstance(event, Printed):
                live.add(kept.add(event.text, event.missing))
            elif isinstance(event, Ended):
                ended = event
    kept.end()
    live.end()
    return ended
