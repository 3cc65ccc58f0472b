import asyncio

import pytest

from greenroom.adapters.models.retry import Gate
from tests.adapters.models.asked import Time


async def turn(gate: Gate, name: str, said: list[str], go: asyncio.Event | None = None) -> None:
    """Go in, say so, and stay until told."""
    async with gate:
        said.append(name)
        if go is not None:
            await go.wait()


async def settle() -> None:
    """Let everybody do what they can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_no_more_than_may_are_inside_and_the_others_come_in_their_order() -> None:
    gate, go = Gate(parallel=2), asyncio.Event()
    said: list[str] = []
    tasks = [asyncio.create_task(turn(gate, str(n), said, go)) for n in range(6)]
    await settle()
    assert said == ["0", "1"]
    go.set()
    await asyncio.gather(*tasks)
    assert said == ["0", "1", "2", "3", "4", "5"]


async def test_so_many_begin_in_a_minute_and_no_more() -> None:
    time = Time()
    gate = Gate(per_minute=3, clock=time, sleep=time.sleep)
    said: list[str] = []
    await asyncio.gather(*(turn(gate, str(n), said) for n in range(7)))
    assert said == [str(n) for n in range(7)]
    assert time.now == pytest.approx(220.0), "three at once, three after a minute, one after two"


async def test_a_shut_gate_opens_by_itself() -> None:
    time = Time()
    gate = Gate(clock=time, sleep=time.sleep)
    said: list[str] = []
    gate.shut(5.0)
    gate.shut(2.0)
    await asyncio.gather(turn(gate, "a", said), turn(gate, "b", said))
    assert (said, time.now) == (["a", "b"], 105.0)


async def test_an_open_gate_costs_no_waiting() -> None:
    time = Time()
    gate = Gate(clock=time, sleep=time.sleep)
    said: list[str] = []
    for n in range(100):
        await turn(gate, str(n), said)
    assert time.naps == []


async def test_when_all_leave_at_once_the_gate_stands_open() -> None:
    gate, go = Gate(parallel=1), asyncio.Event()
    said: list[str] = []
    tasks = [asyncio.create_task(turn(gate, str(n), said, go)) for n in range(5)]
    await settle()
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) for one in ended)
    await asyncio.wait_for(turn(gate, "later", said), 5)
    assert said == ["0", "later"]


@pytest.mark.parametrize("when", ["in the line", "just let in", "inside"])
async def test_whoever_leaves_takes_nobodys_place(when: str) -> None:
    gate, go = Gate(parallel=1), asyncio.Event()
    said: list[str] = []
    first = asyncio.create_task(turn(gate, "first", said, go))
    await settle()
    leaver = asyncio.create_task(turn(gate, "leaver", said, go))
    await settle()
    last = asyncio.create_task(turn(gate, "last", said))
    await settle()
    if when == "in the line":
        leaver.cancel()
        await settle()
        go.set()
    elif when == "just let in":
        go.set()
        await asyncio.gather(first)  # its end lets the leaver in, which has not noticed yet
        leaver.cancel()
    else:
        first.cancel()
        await settle()
        leaver.cancel()
    await asyncio.gather(first, leaver, return_exceptions=True)
    await asyncio.wait_for(last, 5)
    assert said[-1] == "last"
