"""The part of the `Commands` suite about endings: after every kind of end, all processes of a command are dead."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from pathlib import Path
from typing import Final

import pytest

from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import CommandRunner, CommandStarted
from tests.conformance.running import (
    CommandsCase,
    daemon,
    marked,
    ran,
    shell,
    until_marked,
    until_there,
    with_daemon,
)
from tests.speed import is_soon

GOAL: Final = 0.5
"""Seconds from the timeout until all processes are dead. A busy machine gets twice as long."""

CHAIN: Final = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "end = time.monotonic() + 30\n"
    "while time.monotonic() < end:\n"
    "    if os.fork():\n"
    "        os._exit(0)\n"
    "    os.setsid()\n"
)
"""A process with a new pid at each look."""

HIDING: Final = {
    "a child": "sleep 600 & wait",
    "a child in a session of its own": "setsid sleep 600 & wait",
    "a daemon": with_daemon(f"{daemon(Path('daemon'))}; sleep 600"),
    "one that ignores being told": "trap '' TERM; while true; do sleep 0.05; done",
    "one that was stopped": "sleep 600 & kill -STOP $!; kill -STOP $$",
    "one that forks all the time": f'python3 -c "{CHAIN}" & sleep 600',
    "many": "for n in $(seq 50); do (sleep 600 & sleep 600) & done; wait",
    "one that prints all the time": "yes & yes",
}


class EndingConformance(CommandsCase):
    """Ends by itself, by timeout, by cancellation, by closing."""

    @pytest.mark.parametrize("how", HIDING)
    async def test_all_are_dead_when_its_time_is_over(self, commands: CommandRunner, how: str) -> None:
        began = time.monotonic()
        made = await ran(commands, shell(HIDING[how], token="time", seconds=0.5))
        took = time.monotonic() - began
        assert marked("time") == []
        assert made.ended.how == "timed_out"
        assert made.ended.contained
        assert is_soon(took, 0.5 + 2 * GOAL)

    @pytest.mark.parametrize("how", HIDING)
    async def test_all_are_dead_when_it_is_cancelled(self, commands: CommandRunner, root: Path, how: str) -> None:
        work = asyncio.create_task(ran(commands, shell(f"touch up; {HIDING[how]}", token="cancel")))
        await until_there(root / "up")
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert marked("cancel") == []

    async def test_one_that_is_cancelled_before_it_began_never_goes(self, commands: CommandRunner, root: Path) -> None:
        for turns in range(12):
            work = asyncio.create_task(ran(commands, shell("sleep 600; touch went", token="early")))
            for _ in range(turns):
                await asyncio.sleep(0)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(work, 5)
            assert marked("early") == []
        assert not (root / "went").exists()

    async def test_a_second_cancellation_does_not_leave_anything_alive(
        self, commands: CommandRunner, root: Path
    ) -> None:
        work = asyncio.create_task(ran(commands, shell("touch up; trap '' TERM; sleep 600 & wait", token="twice")))
        await until_there(root / "up")
        work.cancel()
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert marked("twice") == []

    async def test_all_are_dead_when_its_stream_is_closed(self, commands: CommandRunner) -> None:
        async with aclosing(commands.run(shell("echo up; setsid sleep 600 & sleep 600", token="shut"))) as events:
            assert isinstance(await anext(events), CommandStarted)
            await asyncio.wait_for(anext(events), 10)
            assert marked("shut"), "or this shows nothing"
        assert marked("shut") == []

    async def test_daemons_are_dead_when_their_command_has_ended(self, commands: CommandRunner, root: Path) -> None:
        script = with_daemon(f"{daemon(root / 'up')}; setsid sleep 600 & echo done")
        made = await ran(commands, shell(script, token="daemon"))
        assert marked("daemon") == []
        assert (made.text, made.ended.how, made.ended.code) == ("done\n", "exited", 0)

    async def test_a_command_has_a_moment_to_tidy_up(self, commands: CommandRunner) -> None:
        made = await ran(commands, shell("trap 'echo tidied; exit' TERM; sleep 600 & wait", seconds=0.3))
        assert (made.ended.how, made.text) == ("timed_out", "tidied\n")

    async def test_one_that_nobody_waits_for_goes_on_and_ends_with_the_rest(
        self, commands: CommandRunner, root: Path
    ) -> None:
        behind = asyncio.create_task(ran(commands, shell("while ! test -e stop; do sleep 0.01; done; echo stopped")))
        assert (await ran(commands, shell("touch stop; echo beside"))).text == "beside\n"
        assert (await asyncio.wait_for(behind, 10)).text == "stopped\n"
        last = asyncio.create_task(ran(commands, shell("sleep 600", token="behind")))
        await until_marked("behind")
        await asyncio.to_thread(commands.close)
        assert marked("behind") == []
        assert (await last).ended.how == "cancelled"

    async def test_closing_ends_all_that_runs_and_is_final(self, commands: CommandRunner, root: Path) -> None:
        script = with_daemon(f"{daemon(root / 'daemon')}; touch up; sleep 600")
        work = asyncio.create_task(ran(commands, shell(script, token="close")))
        await until_there(root / "up")
        commands.close()
        assert marked("close") == []
        assert (await work).ended.how == "cancelled"
        with pytest.raises(WorldFault, match="the run is over"):
            await ran(commands, shell("true"))
        commands.close()
