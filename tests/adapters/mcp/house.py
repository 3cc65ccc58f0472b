"""Start a server with a detached grandchild and wait to be killed: `python house.py FOLDER`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.adapters.mcp.running import asked, client_of, raw


async def _main(folder: Path) -> None:
    async with client_of(raw(folder, "stays")) as client:
        await asked(client, "family")
        await asked(client, "hang")


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
