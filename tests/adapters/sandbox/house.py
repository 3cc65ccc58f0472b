"""Run a command in a sandbox and wait to be killed: `python house.py FOLDER TOKEN`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.adapters.sandbox.walls import behind, walled
from tests.conformance.running import daemon, ran, shell, with_daemon


async def _main(root: Path, scratch: Path, token: str) -> None:
    async with behind(walled(root, scratch), root) as commands:
        script = f"{daemon(root / 'daemon')}; setsid sleep 600 & trap '' TERM; touch up; yes >/dev/null"
        await ran(commands, shell(with_daemon(script), token=token))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "work").mkdir()
    asyncio.run(_main(folder / "work", folder / "scratch", sys.argv[2]))
