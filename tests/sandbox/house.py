"""Run a script and wait to be killed: `python -m tests.sandbox.house TIER ROOT SCRIPT NAME TOKEN`."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path

from greenroom.core.ports.commands import Command, CommandPrinted
from tests.sandbox.tiers import open_tier


async def _main(tier: str, root: Path, words: tuple[str, ...], name: str, token: str) -> None:
    commands = open_tier(tier, root, dict(os.environ))
    async with aclosing(commands.run(Command(words=words, seconds=600, env={name: token}))) as events:
        async for event in events:
            if isinstance(event, CommandPrinted):
                print(event.text, end="", flush=True)


if __name__ == "__main__":
    script = Path(sys.argv[3]).read_text("utf-8").split("\0")
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2]), tuple(script), sys.argv[4], sys.argv[5]))
