"""Run the `greenroom` command as a process of its own, forked from one that has loaded it."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e import warm

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Ended:
    """The exit code, stdout and stderr of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        """The object on stdout."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def lines(self) -> list[dict[str, object]]:
        """The objects on stdout, one per line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Process:
    """A running command. `end` waits for it, `send` sends it a signal."""

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str], folder: Path, stdin: str | None = None
    ) -> None:
        self._process = warm.Process(warm.Order(words=words, environment=environment, folder=str(folder)), stdin)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send(number)

    def end(self) -> Ended:
        """Wait for its end. After TIMEOUT_S it is killed and the test fails."""
        ended = Ended(*self._process.end(TIMEOUT_S))
        assert "Traceback" not in ended.err, ended.err
        return ended
