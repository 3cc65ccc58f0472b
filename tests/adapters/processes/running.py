"""Commands of this machine, in tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from greenroom.adapters.processes.local_commands import LocalCommands


@asynccontextmanager
async def commands_in(root: Path, own: Mapping[str, str] | None = None) -> AsyncIterator[LocalCommands]:
    """Open commands, and close them at the end."""
    commands = LocalCommands(root, environ=own)
    try:
        yield commands
    finally:
        commands.close()
