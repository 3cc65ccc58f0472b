"""A short team run in a process of its own, which dies at a chosen commit of its log, or at any moment."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from multiprocessing.queues import Queue
from pathlib import Path
from typing import NamedTuple

from greenroom.core.state.step import StepEnded
from greenroom.testing.demo_run import fingerprint
from tests.app.teams.play import (
    DISCOUNT,
    TAX,
    TESTS,
    TeamPlay,
    git,
    make_environment,
    make_plan,
    make_repository,
    part,
    writes,
)
from tests.crash.lives import UNFINISHED, DyingLog, Moment, fork_server

PLAN = make_plan(part("code-1"), part("code-2"), part("test", "test-writer", "code-1"))
CUES = (
    *writes("code-writer-1", "shop/tax.py", TAX),
    *writes("code-writer-2", "shop/discount.py", DISCOUNT),
    *writes("test-writer-1", "tests/test_tax.py", TESTS, handoff={"test_files": [], "tests_added": 1}),
)
FILES = {"shop/tax.py": TAX, "shop/discount.py": DISCOUNT, "tests/test_tax.py": TESTS}


class Result(NamedTuple):
    """What a run has left: its files, its merges, steps that ended more than once, worktrees and the person's files."""

    files: dict[str, str]
    merges: int
    twice: tuple[str, ...]
    worktrees: set[str]
    fingerprint: str


def _move_into(folder: Path) -> None:
    os.environ |= {**make_environment(folder), "GREENROOM_SANDBOX": "off"}
    os.chdir(folder / "shop")


async def _life(at: int, moment: Moment, pace: float) -> str:
    DyingLog.at, DyingLog.moment = at, moment
    async with TeamPlay.open(*CUES, pace=pace, store=DyingLog) as play:
        if not play.team:
            await play.create(PLAN)
        await play.runtime.start(play.team)
        return (await play.end()).state


def _main(folder: str, at: int, moment: Moment, pace: float) -> None:
    _move_into(Path(folder))
    word = asyncio.run(_life(at, moment, pace))
    os._exit(0 if word == "finished" else UNFINISHED)


def live(
    folder: Path, *, at: int = 0, moment: Moment = "before", pace: float = 0.0, kill_after: float | None = None
) -> int:
    """Run one process. Return its exit code, negative for a signal."""
    if not (folder / "shop").exists():
        make_repository(folder / "shop")
    process = fork_server().Process(target=_main, args=(str(folder), at, moment, pace))
    process.start()
    process.join(kill_after if kill_after is not None else 90)
    if process.exitcode is None:
        process.kill()
        process.join(10)
    code = process.exitcode
    process.close()
    return UNFINISHED if code is None else code


async def _look() -> Result:
    async with TeamPlay.open() as play:
        ended = Counter(event.step_id for event in await play.events(StepEnded))
        return Result(
            files=play.files(),
            merges=len(git(play.root, "log", "--merges", "--format=%H", play.ref()).split()),
            twice=tuple(name for name, count in ended.items() if count > 1),
            worktrees={name.split("+")[1] for name in play.worktrees()},
            fingerprint=fingerprint(play.root),
        )


def _look_in(folder: str, results: Queue[Result]) -> None:
    _move_into(Path(folder))
    results.put(asyncio.run(_look()))


def look(folder: Path) -> Result:
    """Look at a run that has ended, in a process of its own."""
    context = fork_server()
    results: Queue[Result] = context.Queue()
    process = context.Process(target=_look_in, args=(str(folder), results))
    process.start()
    found = results.get(timeout=60)
    process.join(10)
    return found
