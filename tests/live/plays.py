"""A person's desk with the small model, what a play reads from the log, and the table of all plays."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.e2e.jobs import PERSON, committed
from tests.e2e.provider import settings
from tests.e2e.terminal import GREENROOM, Ended, environment
from tests.live.model_front import PYTHON, ROOT, ModelFront

MODEL = "llamacpp:smollm2"
SETTINGS = f"""model = "{MODEL}"

[models."{MODEL}"]
window = 8192
max_output = 250

[providers.llamacpp]
timeout = "30m"

[retry]
total = "1h"
"""
"""What a person writes for a small model on a slow machine."""

PATIENCE = 900.0
"""Seconds that one command may take on a busy machine."""

PAGE = ROOT / "docs" / "measured.md"
BEGIN, END = "<!-- written by `./go live --write` -->\n", "<!-- end -->\n"
HEAD = ("| task | turns | tokens | seconds | repairs | ended |", "|---|--:|--:|--:|--:|---|")
TABLE: list[str] = []


class Desk:
    """One person's home and folder, where commands use the small model."""

    def __init__(self, folder: Path, front: ModelFront) -> None:
        self.home, self.folder, self.front = folder / "home", folder / "repo", front
        self.folder.mkdir()
        self._started: list[subprocess.Popen[str]] = []
        settings(self.home, SETTINGS)

    @property
    def environment(self) -> Mapping[str, str]:
        """What commands, and programs that use the library, have in their environment."""
        return environment(self.home, **PERSON, LLAMACPP_BASE_URL=self.front.base_url, GREENROOM_SANDBOX="auto")

    def write_agent(self, name: str, text: str) -> None:
        """Write an agent of the person's own."""
        path = self.home / "config" / "greenroom" / "agents" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def write_repository(self) -> None:
        """Write a small project with one test."""
        (self.folder / "greet.py").write_text('def greet(name):\n    return f"Hello, {name}!"\n')
        (self.folder / "test_greet.py").write_text(
            "from greet import greet\n\n\ndef test_greet():\n    assert greet('a')\n"
        )
        committed(self.folder)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        process = subprocess.Popen(
            [*GREENROOM, *words],
            env=self.environment,
            cwd=self.folder,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        """End what a failed play left behind."""
        for process in self._started:
            with process:
                process.kill()

    def run(self, *words: str) -> Ended:
        """Run a command to its end."""
        return end(self.start(*words))

    def last_run(self) -> str:
        """Return the id of the newest run."""
        rows = self.run("runs", "--output-format", "json").json["tasks"]
        assert isinstance(rows, list)
        return str(rows[0]["team"])

    def events(self, run: str) -> Log:
        """Return the events of a run."""
        ended = self.run("events", run, "--output-format", "stream-json")
        assert ended.code == 0, ended.err
        return Log([json.loads(line) for line in ended.out.splitlines()])


def end(process: subprocess.Popen[str]) -> Ended:
    """Wait until a command ends. It must not end with a traceback."""
    out, err = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in err, err
    return Ended(process.returncode, out, err)


@dataclass(frozen=True)
class Log:
    """The events of a run."""

    events: list[dict[str, Any]]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of this type."""
        return [event for event in self.events if event["type"] == kind]

    @property
    def stored(self) -> list[dict[str, Any]]:
        """The events without the first and the last line of the output."""
        return self.events[1:-1]

    @property
    def finished(self) -> set[str]:
        """The steps that have ended."""
        return {event["step_id"] for event in self.of("StepEnded")}

    @property
    def tokens(self) -> int:
        """The tokens that count against the limit."""
        charged = (*self.of("StepEnded"), *self.of("StepInterrupted"))
        return sum(event.get("spent", {}).get("tokens", 0) for event in charged)

    @property
    def repairs(self) -> int:
        """Replies that could not be read, and actions that were refused: the model was told why, and asked again."""
        unread = sum("misread" in (event.get("result") or {}) for event in self.of("StepEnded"))
        return unread + len(self.of("Noticed"))

    @property
    def agents(self) -> set[str]:
        """The agents that took a step."""
        return {event["step_id"].partition("#")[0] for event in self.of("StepStarted")}

    def assert_sound(self) -> None:
        """Assert that each attempt has ended or was interrupted, no step has ended twice, and each call has its id."""
        begun, ended, broken_off = (
            Counter((event["step_id"], event["attempt"]) for event in self.of(kind))
            for kind in ("StepStarted", "StepEnded", "StepInterrupted")
        )
        assert begun <= ended + broken_off
        assert len({step for step, _ in ended}) == ended.total(), "a step has ended twice"
        calls = Counter(
            (event["step_id"], call["id"])
            for event in self.of("StepEnded")
            for call in (event.get("result") or {}).get("calls", ())
        )
        assert set(calls.values()) <= {1}


@dataclass
class Play:
    """What a play adds to the table."""

    ended: str = ""
    log: Log = field(default_factory=lambda: Log([]))


@contextmanager
def play(front: ModelFront, name: str) -> Iterator[Play]:
    """Measure one play and add it to the table."""
    front.take()
    while front.started.acquire(blocking=False):
        pass
    this, begin = Play(), time.monotonic()
    yield this
    seconds, traffic = time.monotonic() - begin, front.take()
    assert traffic.faults == [], "a strict provider would refuse this"
    this.log.assert_sound()
    cells = (name, traffic.requests, f"{traffic.tokens:,}", f"{seconds:.0f}", this.log.repairs, this.ended)
    TABLE.append(f"| {' | '.join(map(str, cells))} |")


def write_table(*, page: bool) -> str:
    """Return the table of the plays so far. With `page`, put it into the documentation."""
    table = "\n".join((*HEAD, *TABLE)) + "\n"
    (PYTHON.parents[1] / "table.md").write_text(table)
    if page:
        machine = f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()}"
        text, day = PAGE.read_text(), datetime.now(UTC).date().isoformat()
        before, rest = text.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\nMeasured on {day}, {machine}.\n\n{table}\n{END}{rest.split(END)[1]}")
    return table
