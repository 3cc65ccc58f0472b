"""A fake server in its own process, so that a benchmark measures only its client."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from greenroom.core.base.errors import WorldFault
from tests.fake_openai.server import FakeOpenAI

GRACE = 10.0
ROOT = Path(__file__).resolve().parents[2]
"""The import root of this package."""


@contextmanager
def run_in_process(script: str = "hello", *, latency: float = 0.0, chunks: int = 0) -> Iterator[str]:
    """Yield the base URL of a server that plays a built-in script ("hello", "tool_round", "rounds:N"). Its counters are
    at `/stats`. It ends with this process, however that ends."""
    command = [
        sys.executable,
        "-m",
        "tests.fake_openai",
        script,
        f"--latency={latency}",
        f"--chunks={chunks}",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        address = child.stdout.readline().strip()
        if not address:
            child.wait(GRACE)
            raise WorldFault(f"The fake server did not start with {script!r}; it says why on stderr.")
        try:
            yield address
        finally:
            child.stdin.close()
            child.wait(GRACE)


async def serve(script: str, *, latency: float, chunks: int) -> None:
    """Serve until the parent closes our standard input or ends."""
    async with FakeOpenAI(script, latency=latency, chunks=chunks, keep=False) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


def main(arguments: Sequence[str] | None = None) -> None:
    """The program of the child process."""
    parser = argparse.ArgumentParser(prog="tests.fake_openai", description=__doc__)
    parser.add_argument("script")
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--chunks", type=int, default=0)
    given = parser.parse_args(arguments)
    asyncio.run(serve(given.script, latency=given.latency, chunks=given.chunks))
