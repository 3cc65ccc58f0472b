"""The processes below one: listed by the kernel where it can, else found among all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from greenroom.adapters.processes.family import Family, send, wait
from tests.conformance.running import until_there

TREE = "sleep 600 & (sleep 600 & sleep 600) & touch up; wait"


@pytest.fixture
def family(monkeypatch: pytest.MonkeyPatch) -> Family:
    """One that leaves this process what it is."""
    monkeypatch.setattr("greenroom.adapters.processes.family.prctl", lambda *_: False)
    return Family()


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A shell with children and grandchildren."""
    process = subprocess.Popen(["bash", "-c", TREE], cwd=tmp_path, start_new_session=True)
    yield process
    send(-process.pid, signal.SIGKILL)
    process.wait()


async def test_both_ways_of_looking_find_all(family: Family, tree: subprocess.Popen[bytes], tmp_path: Path) -> None:
    await until_there(tmp_path / "up")
    found: list[int] = []
    for _ in range(1000):
        found = family.below(tree.pid)
        if len(found) == 4:
            break
        await asyncio.sleep(0.005)
    assert len(found) == 4
    family._listed = False
    assert sorted(family.below(tree.pid)) == sorted(found)
    assert tree.pid in family.children()


def test_a_process_that_is_gone_has_no_children_and_hears_nothing(family: Family) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert family.below(process.pid) == []
    send(process.pid, signal.SIGTERM)


def test_waiting_says_what_can_be_read_and_which_signals_came() -> None:
    news, tell = os.pipe()
    other, write = os.pipe()
    try:
        assert wait(news, 0, other) == (b"", [])
        os.write(write, b"x")
        os.write(tell, bytes([signal.SIGCHLD]))
        assert wait(news, 0, other) == (bytes([signal.SIGCHLD]), [other])
    finally:
        for number in (news, tell, other, write):
            os.close(number)
