"""Run a command and wait to be killed: `python house.py ROOT TOKEN`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.adapters.processes.running import commands_in
from tests.conformance.running import daemon, ran, shell, with_daemon


async def _main(root: Path, token: str) -> None:
    async with commands_in(root) as commands:
        script = f"{daemon(root / 'daemon')}; setsid sleep 600 & trap '' TERM; touch up; yes >/dev/null"
        await ran(commands, shell(with_daemon(script), token=token))


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), sys.argv[2]))
