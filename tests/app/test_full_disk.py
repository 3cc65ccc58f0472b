"""A disk that fills up while a command runs: what it came to is kept until there is room, and told as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.core.base.errors import StoreFault
from greenroom.core.ports.executor import Outcome
from greenroom.core.state.step import Step, StepTerms
from greenroom.testing.harness import Harness, harness
from tests.app.team import FakeTool, call, finishes, says, spec, stage
from tests.disks import fill, mounted

LONG = "a line of output\n" * 10_000


@pytest.fixture(name="disk")
def _disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "4m") as place:
        yield place


def long_output(_: object = None) -> Outcome:
    """Have much to say."""
    return Outcome(result={"output": LONG})


def filling(disk: Path) -> FakeTool:
    """Return a command with a long output that has filled the disk. It is never run twice."""
    return FakeTool("greedy", lambda _: (fill(disk), long_output())[1], lambda _: StepTerms(effect="effectful"))


async def tool_step(house: Harness) -> Step:
    """The one step of a tool that has ended."""
    (step,) = [one for one in await house.read_archive("step") if isinstance(one, Step) and one.work.type == "tool"]
    return step


CUES = (says("ann", 1, call("greedy")), finishes("ann", 2))


async def test_a_command_that_ran_is_not_told_as_if_it_had_not(disk: Path) -> None:
    log = await SqliteLog.open(disk / "home")
    async with harness([spec("ann", "greedy")], CUES, executors=[filling(disk)], log=log) as house:
        full = asyncio.Event()
        told: list[str | None] = []

        def hear(trouble: str | None) -> None:
            told.append(trouble)
            full.set()

        (await house.runtime.start(house.team)).listen_trouble(hear)
        work = asyncio.create_task(house.do(stage("ann")))
        await asyncio.wait_for(full.wait(), 20)
        assert "is full, so nothing can be saved" in str(told[0])
        (disk / "filler").unlink()
        assert (await asyncio.wait_for(work, 20)).state == "finished"
        step = await tool_step(house)
        assert (step.state, step.error) == ("finished", "")
        assert LONG.encode().splitlines()[0] in await log.get_blob(str((step.result or {})["blob"]))
        assert told[-1] is None


class Broken(SqliteLog):
    """A log that takes no blobs."""

    async def put_blob(self, data: bytes) -> str:
        """The disk fails."""
        raise StoreFault("The disk failed. Check it.")


async def test_of_a_result_that_cannot_be_kept_the_agent_reads_that_it_was_done(tmp_path: Path) -> None:
    log = await Broken.open(tmp_path / "home")
    cues = (says("ann", 1, call("long")), finishes("ann", 2))
    async with harness([spec("ann", "long")], cues, executors=[FakeTool("long", long_output)], log=log) as house:
        assert (await asyncio.wait_for(house.do(stage("ann")), 20)).state == "finished"
        step = await tool_step(house)
        assert step.state == "finished"
        said = str((step.result or {})["output"])
        assert said.startswith("a line of output\n")
        assert said.endswith("[… It was done, but all of its result could not be kept: The disk failed. Check it. …]")
