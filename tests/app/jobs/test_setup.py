"""Preparing a copy: a real command, what it leaves there, and what its failure says."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast

import pytest

from greenroom.adapters.commands.plain import PlainCommands
from greenroom.app.jobs.checkout import Prepare, Setup
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import Command, CommandEvent, Commands, Ended
from greenroom.core.ports.executor import Bench, Live, Outcome
from greenroom.core.rules.intents import FinishTask
from tests.abilities.tools.files.desk import FakeBench
from tests.app.jobs.log import Story


class Seen(FakeBench):
    """A bench at which somebody watches."""

    def show(self, _: Live) -> None:
        """Let them."""


async def prepared(setup: Setup, commands: Commands) -> Outcome:
    (step,) = Story().step("prepare").steps
    return await Prepare(setup, commands).run(cast("Bench", Seen(step, ())))


def why(outcome: Outcome) -> str:
    (end,) = outcome.intents
    assert isinstance(end, FinishTask)
    assert end.state == "failed"
    return end.summary


async def test_what_it_makes_stays_in_the_copy_and_what_it_printed_is_kept(tmp_path: Path) -> None:
    commands = PlainCommands(tmp_path)
    outcome = await prepared(Setup(line="mkdir node_modules && echo made"), commands)
    commands.close()
    assert (tmp_path / "node_modules").is_dir()
    assert outcome.intents == ()
    assert (outcome.result or {})["printed"] == "made\n"


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        (Setup(line="echo no such package; exit 3"), "failed: exit code 3. Nothing was begun.\nno such package"),
        (Setup(line="sleep 60", seconds=0.2), "failed: it took longer than 0.2 s"),
        (Setup(line="kill -9 $$"), "failed: it was ended by signal 9"),
    ],
)
async def test_a_failure_ends_the_job_and_says_how(tmp_path: Path, setup: Setup, said: str) -> None:
    commands = PlainCommands(tmp_path)
    outcome = await prepared(setup, commands)
    commands.close()
    assert said in why(outcome)


class Broken:
    """Commands that cannot begin, or are stopped."""

    def __init__(self, *events: CommandEvent) -> None:
        self._events = events

    async def run(self, _: Command) -> AsyncGenerator[CommandEvent, None]:
        """Nothing, or how it ended."""
        if not self._events:
            raise WorldFault("There is no shell.")
        for event in self._events:
            yield event

    def close(self) -> None:
        """Nothing runs."""


async def test_one_that_cannot_begin_or_is_stopped_is_a_failure_too() -> None:
    assert "it cannot begin: There is no shell." in why(await prepared(Setup(line="x"), Broken()))
    assert "it was stopped" in why(await prepared(Setup(line="x"), Broken(Ended(how="cancelled"))))


async def test_a_line_that_is_left_out_is_not_run_and_the_job_goes_on() -> None:
    outcome = await prepared(Setup(line="x", left="`x` was not run: no walls."), Broken())
    assert (outcome.intents, (outcome.result or {})["output"]) == ((), "`x` was not run: no walls.")
