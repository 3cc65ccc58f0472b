"""Start, read and kill the other process."""

import hashlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

CHILD = Path(__file__).with_name("child.py")


class Child:
    """A process that prints the acknowledged versions."""

    def __init__(self, process: subprocess.Popen[str], out: IO[str]) -> None:
        self.process = process
        self._out = out

    def line(self) -> str:
        return self._out.readline().strip()

    def acknowledged(self, count: int) -> int:
        """Read `count` versions and return the last."""
        return [int(self.line()) for _ in range(count)][-1]

    def kill(self) -> int:
        """Kill it with -9 and return the last acknowledged version, or 0."""
        self.process.send_signal(signal.SIGKILL)
        rest = [line for line in self._out.read().split("\n") if line.isdigit()]
        self.process.wait(20)
        return int(rest[-1]) if rest else 0

    def rest(self) -> list[str]:
        lines = self._out.read().split()
        assert self.process.wait(20) == 0
        return lines


@contextmanager
def child(mode: str, home: Path, stream: str, limit: int = 10**9) -> Iterator[Child]:
    """Run the other process until it owns its stream."""
    command = [sys.executable, str(CHILD), mode, str(home), stream, str(limit)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            one = Child(process, process.stdout)
            assert one.line() == "ready"
            yield one
        finally:
            process.kill()


def contents(home: Path) -> dict[str, str]:
    """Return a hash of every file, except the WAL index and the empty WAL that SQLite creates for reading."""
    files = [path for path in sorted(home.rglob("*")) if path.is_file() and not path.name.endswith("-shm")]
    files = [path for path in files if path.stat().st_size > 0]
    return {str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
