"""Starting, reading and killing the other process."""

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
    """A process that prints what was acknowledged to it."""

    def __init__(self, process: subprocess.Popen[str], out: IO[str]) -> None:
        self.process = process
        self._out = out

    def line(self) -> str:
        return self._out.readline().strip()

    def acknowledged(self, count: int) -> int:
        """Read that many versions; the last one."""
        return [int(self.line()) for _ in range(count)][-1]

    def kill(self) -> int:
        """Kill it with -9; the last version that it was told before, 0 when there was none."""
        self.process.send_signal(signal.SIGKILL)
        rest = [line for line in self._out.read().split("\n") if line.isdigit()]
        self.process.wait(20)
        return int(rest[-1]) if rest else 0

    def rest(self) -> list[str]:
        """What it printed until its end."""
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
    """A hash of every file but what SQLite makes when it only looks: an index of the WAL, and an empty WAL."""
    files = [path for path in sorted(home.rglob("*")) if path.is_file() and not path.name.endswith("-shm")]
    files = [path for path in files if path.stat().st_size > 0]
    return {str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
