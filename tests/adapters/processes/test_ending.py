"""Whoever ends a guard or the supervisor, and wherever the system helps little: nothing gets away, or that is said."""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from greenroom.adapters.processes.command_process import CommandProcess, OutputPipe
from greenroom.adapters.processes.process_tree import ProcessTree, send_signal, wait_for_signals
from greenroom.adapters.processes.supervisor import CommandRequest
from greenroom.core.ports.commands import Command
from tests.adapters.processes.running import commands_in
from tests.conformance.running import daemon, marked, ran, shell, until_gone, until_there, with_daemon


async def test_processes_that_are_left_are_counted(tmp_path: Path) -> None:
    script = with_daemon(f"{daemon(tmp_path / 'up')}; setsid sleep 600 & echo done")
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell(script))
    assert made.ended.strays == 2


async def test_a_daemon_that_forgets_where_it_comes_from_is_found(tmp_path: Path) -> None:
    script = with_daemon(
        'export DAEMON; env -i PATH=$PATH python3 -c "$DAEMON" up; while [ ! -e up ]; do sleep 0.01; done'
    )
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell(script))
    assert made.ended.strays == 1


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
    monkeypatch.setattr("greenroom.adapters.processes.command_process.SUPERVISOR_TIMEOUT_S", 0.5)
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell("setsid sleep 600 & kill -STOP $PPID; sleep 600", token="frozen", seconds=0.2))
        assert made.ended.how == "lost"
        await until_gone("frozen")


async def test_a_command_that_kills_the_supervisor_ends_and_the_next_one_is_run(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        script = "setsid sleep 600 & kill -9 $(ps -o ppid= -p $PPID); sleep 600"
        made = await ran(commands, shell(script, token="supervisor"))
        assert made.ended.how == "cancelled"
        assert marked("supervisor") == []
        assert (await ran(commands, shell("echo fine"))).text == "fine\n"


PLAINER = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from greenroom.adapters.processes import process_tree, supervisor; "
    "{change}; supervisor.main(int(sys.argv[2]))"
)
WITHOUT_PRCTL = PLAINER.format(change="process_tree.prctl = lambda *_: False")
WITHOUT_LISTS = PLAINER.format(change="process_tree.Path.exists = lambda _: False")


async def test_without_help_of_the_system_the_process_group_is_ended_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.adapters.processes.command_process.SUPERVISOR_CODE", WITHOUT_PRCTL)
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
    monkeypatch.setattr("greenroom.adapters.processes.command_process.SUPERVISOR_CODE", WITHOUT_LISTS)
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell("setsid sleep 600 & setsid sleep 600 & echo done", token="scan"))
        assert marked("scan") == []
    assert (made.ended.contained, made.ended.strays) == (True, 2)


async def test_a_house_whose_python_is_gone_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "gone"))
    async with commands_in(tmp_path) as commands:
        with pytest.raises(Exception, match="No command can be run"):
            await ran(commands, Command(words=("true",)))


class Deaf:
    """A writer whose words go nowhere, and a pipe of which nothing comes."""

    def write(self, _: bytes) -> None:
        """Nothing."""


@pytest.mark.parametrize("turns", range(6))
async def test_a_cancellation_that_comes_with_the_guard_s_answer_is_not_lost(turns: int) -> None:
    reader, deaf = asyncio.StreamReader(), Deaf()
    job = CommandProcess(reader, cast("asyncio.StreamWriter", deaf), cast("OutputPipe", deaf))
    asked = CommandRequest(words=["true"], folder="/", seconds=1, grace=0, env={})
    work = asyncio.create_task(job._wait_until_ready(asked))
    for _ in range(3):
        await asyncio.sleep(0)
    reader.feed_data(b'{"pid": 1, "guard": 2, "contained": true}\n')
    for _ in range(turns):
        await asyncio.sleep(0)
    if work.cancel():
        with pytest.raises(asyncio.CancelledError):
            await work


ROOT = Path(__file__).resolve().parents[3]


def begun(root: Path, token: str) -> subprocess.Popen[bytes]:
    """A house that has been begun."""
    words = [sys.executable, "-m", "tests.adapters.processes.house", str(root), token]
    return subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL)


async def dead_after(root: Path, token: str) -> float:
    """Kill a house in the middle of a command; returns how many seconds later all its processes are dead."""
    house = begun(root, token)
    try:
        await until_there(root / "up")
        assert len(marked(token)) >= 3, "or this test shows nothing"
    finally:
        house.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        house.wait()
    await until_gone(token)
    return time.monotonic() - killed


async def test_nothing_outlives_a_house_that_is_killed(tmp_path: Path) -> None:
    assert await dead_after(tmp_path, "house") < 1.0


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_nothing_outlives_fifty_houses_that_are_killed(tmp_path: Path) -> None:
    took = []
    for number in range(50):
        root = tmp_path / str(number)
        root.mkdir()
        took.append(await dead_after(root, f"house-{number}"))
    print(f"\n50 kills, nothing left; dead after {statistics.median(took):.3f} s (median), {max(took):.3f} s (most)")
    assert max(took) < 1.0


TREE = "sleep 600 & (sleep 600 & sleep 600) & : >up; wait"


@pytest.fixture
def family(monkeypatch: pytest.MonkeyPatch) -> ProcessTree:
    """One that leaves this process what it is."""
    monkeypatch.setattr("greenroom.adapters.processes.process_tree.prctl", lambda *_: False)
    return ProcessTree()


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A shell with children and grandchildren."""
    process = subprocess.Popen(["bash", "-c", TREE], cwd=tmp_path, start_new_session=True)
    yield process
    send_signal(-process.pid, signal.SIGKILL)
    process.wait()


async def test_both_ways_of_looking_find_all(
    family: ProcessTree, tree: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    await until_there(tmp_path / "up")
    found: list[int] = []
    for _ in range(1000):
        found = family.list_descendants(tree.pid)
        if len(found) == 4:
            break
        await asyncio.sleep(0.005)
    assert len(found) == 4
    family._has_child_lists = False
    assert sorted(family.list_descendants(tree.pid)) == sorted(found)
    assert tree.pid in family.list_children()


def test_a_process_that_is_gone_has_no_children_and_hears_nothing(family: ProcessTree) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert family.list_descendants(process.pid) == []
    send_signal(process.pid, signal.SIGTERM)


def test_waiting_says_what_can_be_read_and_which_signals_came() -> None:
    news, tell = os.pipe()
    other, write = os.pipe()
    try:
        assert wait_for_signals(news, 0, other) == (b"", [])
        os.write(write, b"x")
        os.write(tell, bytes([signal.SIGCHLD]))
        assert wait_for_signals(news, 0, other) == (bytes([signal.SIGCHLD]), [other])
    finally:
        for number in (news, tell, other, write):
            os.close(number)
