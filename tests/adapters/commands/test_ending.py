"""However a command ends, and whatever it did to hide: every process that it began is dead by then."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from greenroom.adapters.commands.plain import PlainCommands
from greenroom.core.ports.commands import Command
from tests.adapters.commands.running import (
    commands_in,
    daemon,
    marked,
    ran,
    shell,
    until_gone,
    until_there,
    with_daemon,
)

GOAL = 0.5
"""Seconds from the end of its time until all are dead. A machine that does much else is given twice that."""

CHAIN = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "end = time.monotonic() + 30\n"
    "while time.monotonic() < end:\n"
    "    if os.fork():\n"
    "        os._exit(0)\n"
    "    os.setsid()\n"
)
"""A process that is another one each time somebody looks."""

HIDING = {
    "a child": "sleep 600 & wait",
    "a child in a session of its own": "setsid sleep 600 & wait",
    "one that ignores being told": "trap '' TERM; while true; do sleep 0.05; done",
    "one that was stopped": "sleep 600 & kill -STOP $!; kill -STOP $$",
    "one that forks all the time": f'python3 -c "{CHAIN}" & sleep 600',
    "many": "for n in $(seq 50); do (sleep 600 & sleep 600) & done; wait",
    "one that prints all the time": "yes & yes",
}


@pytest.mark.parametrize("how", HIDING)
@pytest.mark.req("MA-54")
async def test_all_are_dead_when_its_time_is_over(tmp_path: Path, how: str) -> None:
    async with commands_in(tmp_path) as commands:
        began = time.monotonic()
        made = await ran(commands, shell(HIDING[how], token="time", seconds=0.5))
        took = time.monotonic() - began
        assert marked("time") == []
    assert made.ended.how == "timed_out"
    assert made.ended.contained
    assert took < 0.5 + 2 * GOAL


@pytest.mark.parametrize("how", HIDING)
async def test_all_are_dead_when_it_is_cancelled(tmp_path: Path, how: str) -> None:
    async with commands_in(tmp_path) as commands:
        work = asyncio.create_task(ran(commands, shell(f"touch up; {HIDING[how]}", token="cancel")))
        await until_there(tmp_path / "up")
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert marked("cancel") == []


async def test_one_that_is_cancelled_before_it_began_never_goes(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        for turns in range(12):
            work = asyncio.create_task(ran(commands, shell("touch went; sleep 600", token="early")))
            for _ in range(turns):
                await asyncio.sleep(0)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(work, 5)
            assert marked("early") == []


async def test_daemons_are_dead_when_their_command_has_ended(tmp_path: Path) -> None:
    script = with_daemon(f"{daemon(tmp_path / 'up')}; setsid sleep 600 & echo done")
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell(script, token="daemon"))
        assert marked("daemon") == []
    assert (made.text, made.ended.how, made.ended.code, made.ended.strays) == ("done\n", "exited", 0, 2)


async def test_a_daemon_that_forgets_where_it_comes_from_is_found(tmp_path: Path) -> None:
    script = with_daemon(
        'export DAEMON; env -i PATH=$PATH python3 -c "$DAEMON" up; while [ ! -e up ]; do sleep 0.01; done'
    )
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell(script))
    assert made.ended.strays == 1


async def test_a_command_has_a_moment_to_tidy_up(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell("trap 'echo tidied; exit' TERM; sleep 600 & wait", seconds=0.3))
    assert (made.ended.how, made.text) == ("timed_out", "tidied\n")


async def test_a_second_cancellation_does_not_leave_anything_alive(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        work = asyncio.create_task(ran(commands, shell("touch up; trap '' TERM; sleep 600 & wait", token="twice")))
        await until_there(tmp_path / "up")
        work.cancel()
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert marked("twice") == []


async def test_a_command_that_kills_its_guard_does_not_get_away(tmp_path: Path) -> None:
    script = with_daemon(f"{daemon(tmp_path / 'up')}; setsid sleep 600 & kill -9 $PPID; sleep 600")
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell(script, token="guard"))
        assert made.ended.how == "lost"
        assert not made.ended.contained
        await until_gone("guard")
        assert (await ran(commands, shell("echo fine"))).text == "fine\n"


async def test_a_command_that_stops_its_guard_does_not_get_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.adapters.commands.job.MARGIN", 0.5)
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell("setsid sleep 600 & kill -STOP $PPID; sleep 600", token="frozen", seconds=0.2))
        assert made.ended.how == "lost"
        await until_gone("frozen")


async def test_a_command_that_kills_the_warden_ends_and_the_next_one_is_run(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        script = "setsid sleep 600 & kill -9 $(ps -o ppid= -p $PPID); sleep 600"
        made = await ran(commands, shell(script, token="warden"))
        assert made.ended.how == "cancelled"
        assert marked("warden") == []
        assert (await ran(commands, shell("echo fine"))).text == "fine\n"


async def test_closing_ends_all_that_runs(tmp_path: Path) -> None:
    commands = PlainCommands(tmp_path)
    script = with_daemon(f"{daemon(tmp_path / 'daemon')}; touch up; sleep 600")
    work = asyncio.create_task(ran(commands, shell(script, token="close")))
    await until_there(tmp_path / "up")
    commands.close()
    assert marked("close") == []
    assert (await work).ended.how == "cancelled"


PLAINER = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from greenroom.adapters.commands.warden import family, main; "
    "{change}; main.main(int(sys.argv[2]))"
)
WITHOUT_PRCTL = PLAINER.format(change="family.prctl = lambda *_: False")
WITHOUT_LISTS = PLAINER.format(change="family.Path.exists = lambda _: False")


async def test_without_help_of_the_system_the_process_group_is_ended_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.adapters.commands.warden_process.PROGRAM", WITHOUT_PRCTL)
    async with commands_in(tmp_path) as commands:
        left = await ran(commands, shell("sleep 600 & (sleep 600 &); echo done", token="group"))
        assert marked("group") == []
        late = await ran(commands, shell("trap '' TERM; sleep 600 & wait", token="group", seconds=0.2))
        assert marked("group") == []
    assert (left.ended.how, left.ended.contained, left.text) == ("exited", False, "done\n")
    assert (late.ended.how, late.ended.contained) == ("timed_out", False)


async def test_a_kernel_that_does_not_list_children_is_asked_for_all_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.adapters.commands.warden_process.PROGRAM", WITHOUT_LISTS)
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell("setsid sleep 600 & setsid sleep 600 & echo done", token="scan"))
        assert marked("scan") == []
    assert (made.ended.contained, made.ended.strays) == (True, 2)


async def test_a_house_whose_python_is_gone_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "gone"))
    async with commands_in(tmp_path) as commands:
        with pytest.raises(Exception, match="No command can be run"):
            await ran(commands, Command(words=("true",)))
