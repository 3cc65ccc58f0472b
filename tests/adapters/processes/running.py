"""Commands of this machine, in tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from greenroom.adapters.processes.plain import PlainCommands


@asynccontextmanager
async def commands_in(root: Path, own: Mapping[str, str] | None = None) -> AsyncIterator[PlainCommands]:
    """Commands that are closed in the end."""
    commands = PlainCommands(root, own=own)
    try:
        yield commands
    finally:
        commands.close()
