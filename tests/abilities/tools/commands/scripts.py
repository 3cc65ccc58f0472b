"""The tools that run commands, with commands that are really run, or only said to be."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from greenroom.abilities.tools.commands import command_tools
from greenroom.abilities.tools.read_output import ReadOutput
from greenroom.adapters.commands.plain import PlainCommands
from greenroom.adapters.workers import processes
from greenroom.core.ports.commands import Begun, Command, CommandEvent, Commands, Ended, Printed
from greenroom.core.ports.executor import Executor
from tests.abilities.tools.calling import Caller, caller


class Said:
    """Commands that print and end as the test says."""

    def __init__(self, ended: Ended, *printed: str) -> None:
        self._ended = ended
        self._printed = printed
        self.asked: list[Command] = []

    async def run(self, command: Command) -> AsyncGenerator[CommandEvent, None]:
        """As the test says."""
        self.asked.append(command)
        yield Begun()
        for text in self._printed:
            yield Printed(text=text)
        yield self._ended

    def close(self) -> None:
        """Nothing runs."""


def tools(commands: Commands) -> list[Executor]:
    """All of them."""
    return [*command_tools(commands), ReadOutput()]


@asynccontextmanager
async def scripts(root: Path) -> AsyncIterator[Caller]:
    """A team that runs commands in this folder."""
    commands = PlainCommands(root, mark=processes.mark)
    try:
        async with caller(tools(commands)) as team:
            yield team
    finally:
        commands.close()
