"""Output of any size and shape: read as it comes, never in the way of whoever prints it."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from pathlib import Path

import psutil

from greenroom.core.ports.commands import Begun, Ended, Printed
from tests.adapters.commands.running import commands_in, ran, shell, until_there

MIB = 1024 * 1024


async def test_what_is_printed_is_there_while_it_runs(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands, aclosing(commands.run(shell("echo first; sleep 600"))) as events:
        assert isinstance(await anext(events), Begun)
        assert await asyncio.wait_for(anext(events), 10) == Printed(text="first\n")


async def test_a_line_of_ten_megabytes_is_read_whole(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell("head -c 10485760 /dev/zero | tr '\\0' a"))
    assert made.text == "a" * 10 * MIB
    assert made.missing == 0


async def test_what_is_no_text_is_read_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(range(256)) * 100 + b"\xe6\x96")
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell("cat data"))
    assert made.text == (bytes(range(256)) * 100 + b"\xe6\x96").decode(errors="replace")


async def test_a_letter_may_come_in_two_pieces(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell("printf '\\xe6\\x96'; sleep 0.1; printf '\\x87'"))
    assert made.text == "文"


async def test_nobody_who_prints_waits_for_a_reader_that_does_not_listen(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        script = "head -c 20971520 /dev/zero | tr '\\0' a; touch printed; echo end"
        async with aclosing(commands.run(shell(script))) as events:
            assert isinstance(await anext(events), Begun)
            first = await anext(events)
            await until_there(tmp_path / "printed")
            rest = [event async for event in events]
    printed = [event for event in (first, *rest) if isinstance(event, Printed)]
    assert sum(len(event.text) + event.missing for event in printed) == 20 * MIB + len("end\n")
    assert sum(event.missing for event in printed) > 10 * MIB


async def test_endless_output_costs_little_memory_and_ends_in_time(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        before = psutil.Process().memory_info().rss
        size, most, ended = 0, 0, None
        began = time.monotonic()
        async with aclosing(commands.run(shell("yes", seconds=1.5))) as events:
            async for event in events:
                size += len(event.text) if isinstance(event, Printed) else 0
                most = max(most, psutil.Process().memory_info().rss)
                ended = event
        took = time.monotonic() - began
    assert isinstance(ended, Ended)
    assert ended.how == "timed_out"
    assert size > 10 * MIB
    assert most - before < 64 * MIB
    assert took < 4


async def test_a_command_that_closes_its_output_is_waited_for(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell("echo a; exec >&- 2>&-; sleep 0.3; exit 4"))
    assert (made.text, made.ended.code) == ("a\n", 4)
