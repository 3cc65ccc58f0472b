"""The speed of a team: subtasks at once instead of one by one, and the cost of Greenroom itself around them.

The model takes two seconds per reply. Git, the checks and the log are real; they run in processes of their own, so
their time and CPU are counted apart.
"""

import os
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from greenroom.adapters.git.process import Git, GitResult
from greenroom.app.context import tune_process
from greenroom.core.ports.model import ModelEvent, ModelRequest
from greenroom.testing.scripted import Cue
from tests.app.teams.play import GatedModel, TeamPlay, make_environment, make_plan, make_repository, part, writes

LATENCY_S = 2.0
AT_ONCE = 8
MANY = 200
QUARTER = MANY // 4
TYPES = ("code-writer", "test-writer")
"""Both may run four times at once."""

CHECKING = ("baseline", "deliver")
GOALS = {
    "8 subtasks, times faster than one by one": (">=", 5.0),
    "8 subtasks, own time to critical path (%)": ("<=", 10.0),
    "8 subtasks, own CPU per subtask (ms)": ("<=", 150.0),
    "200 subtasks, own CPU per subtask (ms)": ("<=", 150.0),
    "200 subtasks, last 50 to first 50": ("<=", 1.25),
}
Span = tuple[float, float]


class Figures(NamedTuple):
    """One measured run. Times are in seconds; `own` is the time in which neither model, git nor a check was busy."""

    whole: float
    own: float
    cpu: float
    ends: tuple[float, ...]


async def run() -> dict[str, float]:
    """Measure eight subtasks at once and one by one, and two hundred, eight at once."""
    tune_process()
    await _measure(2, 2, 0.0)  # everything is imported once
    # Other programs on the machine only add time, so the best of three counts.
    parallel = min([await _measure(AT_ONCE, AT_ONCE, LATENCY_S) for _ in range(3)], key=lambda figures: figures.whole)
    serial = await _measure(AT_ONCE, 1, LATENCY_S)
    many = await _measure(MANY, AT_ONCE, 0.0)
    first, last = many.ends[QUARTER - 1], many.ends[-1] - many.ends[-QUARTER - 1]
    return {
        "8 subtasks at once (s)": parallel.whole,
        "8 subtasks one by one (s)": serial.whole,
        "8 subtasks, times faster than one by one": serial.whole / parallel.whole,
        "8 subtasks, critical path: replies of the model (s)": 2 * LATENCY_S,
        "8 subtasks, own time (s)": parallel.own,
        "8 subtasks, own time to critical path (%)": 100 * parallel.own / (2 * LATENCY_S),
        "8 subtasks, own CPU per subtask (ms)": 1000 * parallel.cpu / AT_ONCE,
        "200 subtasks, model without latency (s)": many.whole,
        "200 subtasks, own CPU per subtask (ms)": 1000 * many.cpu / MANY,
        "200 subtasks, first 50 (s)": first,
        "200 subtasks, last 50 (s)": last,
        "200 subtasks, last 50 to first 50": last / first,
    }


async def _measure(count: int, at_once: int, latency: float) -> Figures:
    """Run that many subtasks, each of which writes a file of its own."""
    parts = [part(f"code-{number}", TYPES[number % 2]) for number in range(count)]
    numbers = dict.fromkeys(TYPES, 0)
    cues: list[Cue] = []
    for number in range(count):
        kind = TYPES[number % 2]
        numbers[kind] += 1
        handoff = {"modified_files": []} if kind == "code-writer" else {"test_files": [], "tests_added": 0}
        cues += writes(f"{kind}-{numbers[kind]}", f"shop/part_{number}.py", f"X = {number}\n", handoff=handoff)
    with _shop(), _timed() as spans:
        async with TeamPlay.open(*cues, pace=latency) as play:
            began, cpu = time.time(), _own_cpu()
            await play.start(make_plan(*parts, max_concurrent=at_once))
            status = await play.end(timeout=600)
            whole, cpu = time.time() - began, _own_cpu() - cpu
            assert status.state == "finished", status
            subtasks = (await play.subtasks()).values()
            spans += [
                ((step.started_at or 0) / 1000, (step.ended_at or 0) / 1000)
                for name in CHECKING
                for step in await play.steps(name)
            ]
    ends = sorted((subtask.ended_at or 0) / 1000 - began for subtask in subtasks if subtask.name.startswith("code-"))
    return Figures(whole=whole, own=whole - _union(spans), cpu=cpu, ends=tuple(ends))


@contextmanager
def _shop() -> Iterator[None]:
    """Make a repository in a folder of its own, and work there."""
    with tempfile.TemporaryDirectory(prefix="greenroom-bench-") as name:
        folder = Path(name)
        make_repository(folder / "shop")
        with patch.dict(os.environ, {**make_environment(folder), "GREENROOM_SANDBOX": "off"}), chdir(folder / "shop"):
            yield


@contextmanager
def _timed() -> Iterator[list[Span]]:
    """Note when git and the model are busy."""
    spans: list[Span] = []
    run_git, stream = Git.run_unchecked, GatedModel.stream

    async def timed_git(self: Git, *words: str, stdin: bytes = b"", seconds: float = 60.0) -> GitResult:
        began = time.time()
        try:
            return await run_git(self, *words, stdin=stdin, seconds=seconds)
        finally:
            spans.append((began, time.time()))

    async def timed_stream(self: GatedModel, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        began = time.time()
        async for event in stream(self, request):
            yield event
        spans.append((began, time.time()))

    with patch.object(Git, "run_unchecked", timed_git), patch.object(GatedModel, "stream", timed_stream):
        yield spans


def _union(spans: Iterable[Span]) -> float:
    """Return the time in which at least one span is open."""
    total, until = 0.0, 0.0
    for began, ended in sorted(spans):
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return total


def _own_cpu() -> float:
    """Return the CPU time of this process, without its children."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
