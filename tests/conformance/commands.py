"""The conformance suite of `Commands`: every sentence of the port as a test.

    class TestMyCommands(CommandsConformance):
        def open_commands(self, root, own):
            return MyCommands(root, own=own)

`own` is Greenroom's own environment, with variables that no command may get. The workspace is a real folder and the
processes are real. Requires pytest and pytest-asyncio, bash and python3, and /proc to see which processes are dead.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Final

import pytest

from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import (
    Command,
    CommandEnded,
    CommandEvent,
    CommandPrinted,
    CommandRunner,
    CommandStarted,
)
from tests.conformance.endings import EndingConformance
from tests.conformance.running import CommandsCase, ran, shell, until_there
from tests.speed import is_soon

MIB: Final = 1024 * 1024
TOLD: Final = ("PAGER", "GIT_PAGER", "GIT_EDITOR", "GIT_TERMINAL_PROMPT", "TERM", "DEBIAN_FRONTEND")
MOST: Final = 64 * MIB
"""Maximum memory that endless output may take at any time."""


class RunConformance(CommandsCase):
    """What a command gets, and how its end is reported."""

    async def test_output_comes_in_order_and_the_exit_code_last(self, commands: CommandRunner) -> None:
        made = await ran(commands, shell("echo one; echo two >&2; echo three; exit 3"))
        assert made.text == "one\ntwo\nthree\n"
        assert (made.ended.how, made.ended.code, made.ended.strays, made.ended.contained) == ("exited", 3, 0, True)
        assert 0 < made.ended.seconds < 30

    async def test_a_command_that_kills_itself_says_by_which_signal(self, commands: CommandRunner) -> None:
        made = await ran(commands, shell("kill -SEGV $$"))
        assert (made.ended.how, made.ended.code, made.ended.signal) == ("signalled", None, 11)

    async def test_a_broken_pipe_ends_a_command_as_everywhere(self, commands: CommandRunner) -> None:
        made = await ran(commands, shell("set -o pipefail; yes | head -n 1"))
        assert (made.text, made.ended.code) == ("y\n", 128 + 13)

    async def test_it_gets_nothing_of_ours_but_its_output(self, commands: CommandRunner) -> None:
        made = await ran(commands, Command(words=("python3", "-c", "import os; print(os.listdir('/proc/self/fd'))")))
        assert made.text == "['0', '1', '2', '3']\n", "the fourth is the list itself"

    async def test_it_begins_in_the_folder_that_is_named(self, commands: CommandRunner, root: Path) -> None:
        (root / "inner").mkdir()
        inner = await ran(commands, shell("touch here", folder="inner"))
        there = await ran(commands, shell("touch there; pwd"))
        assert (inner.ended.code, there.text) == (0, f"{root}\n")
        assert (root / "inner" / "here").exists()
        assert (root / "there").exists()

    @pytest.mark.parametrize("folder", ["nowhere", "..", "/", "/tmp", "out", "file", "inner/../..", "a\0b"])
    async def test_it_does_not_begin_outside_the_workspace(
        self, commands: CommandRunner, root: Path, folder: str
    ) -> None:
        (root / "inner").mkdir()
        (root / "file").touch()
        (root / "out").symlink_to("/")
        with pytest.raises(WorldFault, match="folder"):
            await ran(commands, shell("touch was-here", folder=folder))

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            (("no-such-program-here",), "no program 'no-such-program-here'"),
            ((), "needs a program"),
            (("",), "needs a program"),
            (("echo", "a\0b"), "NUL"),
            (("bash", "-c", "#" * 130_000), "Write it to a file"),
        ],
    )
    async def test_what_cannot_be_begun_says_why(
        self, commands: CommandRunner, words: tuple[str, ...], why: str
    ) -> None:
        with pytest.raises(WorldFault, match=why):
            await ran(commands, Command(words=words))

    async def test_nothing_is_done_before_it_is_asked_for(self, commands: CommandRunner, root: Path) -> None:
        async with aclosing(commands.run(shell("touch done"))) as events:
            assert isinstance(await anext(events), CommandStarted)
            assert not (root / "done").exists()
        assert not (root / "done").exists(), "nobody asked for more, so it never went"

    async def test_many_commands_run_at_once(self, commands: CommandRunner) -> None:
        streams = [commands.run(shell(f"echo {number}")) for number in range(20)]
        for stream in streams:
            await anext(stream)
        ends = [[event async for event in stream][-1] for stream in streams]
        assert all(isinstance(end, CommandEnded) and end.code == 0 for end in ends)


class SurroundingsConformance(CommandsCase):
    """The environment of a command: no input, and only variables that were let in."""

    async def test_nothing_secret_reaches_it(self, commands: CommandRunner) -> None:
        made = await ran(commands, shell("env; tr '\\0' '\\n' </proc/self/environ"))
        assert "HOME=" in made.text
        assert "planted" not in made.text

    async def test_nobody_is_asked_anything(self, commands: CommandRunner) -> None:
        told = await ran(commands, shell(f"for n in {' '.join(TOLD)}; do echo ${{!n}}; done"))
        asked = await ran(commands, shell("read -r line || echo nobody; tty; test -t 1 || echo no terminal"))
        assert told.text.split() == ["cat", "cat", "true", "0", "dumb", "noninteractive"]
        assert asked.text.splitlines() == ["nobody", "not a tty", "no terminal"]

    async def test_what_is_added_is_there(self, commands: CommandRunner) -> None:
        made = await ran(commands, Command(words=("bash", "-c", "echo $FLAVOUR"), env={"FLAVOUR": "sweet"}))
        assert made.text == "sweet\n"

    @pytest.mark.parametrize("name", ["LD_PRELOAD", "PATH", "PYTHONPATH", "BASH_ENV", "GIT_DIR", "A=B", ""])
    async def test_what_changes_the_meaning_of_a_command_line_is_refused(
        self, commands: CommandRunner, name: str
    ) -> None:
        with pytest.raises(WorldFault, match="variable"):
            await ran(commands, Command(words=("true",), env={name: "x"}))


class OutputConformance(CommandsCase):
    """Output of any size and shape: read as it comes, without blocking the command."""

    async def test_what_is_printed_is_there_while_it_runs(self, commands: CommandRunner) -> None:
        async with aclosing(commands.run(shell("echo first; sleep 600"))) as events:
            assert isinstance(await anext(events), CommandStarted)
            assert await asyncio.wait_for(anext(events), 10) == CommandPrinted(text="first\n")

    async def test_a_line_of_ten_megabytes_is_read_whole(self, commands: CommandRunner) -> None:
        made = await ran(commands, shell("head -c 10485760 /dev/zero | tr '\\0' a"))
        assert made.text == "a" * 10 * MIB
        assert made.missing == 0

    async def test_what_is_no_text_is_read_all_the_same(self, commands: CommandRunner, root: Path) -> None:
        (root / "data").write_bytes(bytes(range(256)) * 100 + b"\xe6\x96")
        made = await ran(commands, shell("cat data"))
        assert made.text == (bytes(range(256)) * 100 + b"\xe6\x96").decode(errors="replace")

    async def test_a_letter_may_come_in_two_pieces(self, commands: CommandRunner) -> None:
        made = await ran(commands, shell("printf '\\xe6\\x96'; sleep 0.1; printf '\\x87'"))
        assert made.text == "文"

    async def test_nobody_who_prints_waits_for_a_reader_that_does_not_listen(
        self, commands: CommandRunner, root: Path
    ) -> None:
        script = "head -c 20971520 /dev/zero | tr '\\0' a; touch printed; echo end"
        async with aclosing(commands.run(shell(script))) as events:
            assert isinstance(await anext(events), CommandStarted)
            first = await anext(events)
            await until_there(root / "printed")
            rest = [event async for event in events]
        printed = [event for event in (first, *rest) if isinstance(event, CommandPrinted)]
        assert sum(len(event.text) + event.missing for event in printed) == 20 * MIB + len("end\n")
        assert sum(event.missing for event in printed) > 10 * MIB

    async def test_endless_output_costs_little_memory_and_ends_in_time(self, commands: CommandRunner) -> None:
        before = _memory()
        began = time.monotonic()
        size, most, ended = await _watched(commands.run(shell("yes", seconds=1.5)))
        took = time.monotonic() - began
        assert isinstance(ended, CommandEnded)
        assert ended.how == "timed_out"
        assert size > 10 * MIB
        assert most - before < MOST
        assert is_soon(took, 4)

    async def test_a_command_that_closes_its_output_is_waited_for(self, commands: CommandRunner) -> None:
        made = await ran(commands, shell("echo a; exec >&- 2>&-; sleep 0.3; exit 4"))
        assert (made.text, made.ended.code) == ("a\n", 4)


async def _watched(run: AsyncGenerator[CommandEvent, None]) -> tuple[int, int, CommandEvent | None]:
    """Return how much it printed, the peak memory, and its last event."""
    size, most, last = 0, 0, None
    async with aclosing(run) as events:
        async for event in events:
            size += len(event.text) if isinstance(event, CommandPrinted) else 0
            most, last = max(most, _memory()), event
    return size, most, last


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")


class CommandsConformance(RunConformance, SurroundingsConformance, OutputConformance, EndingConformance):
    """Inherit from this class and implement `open_commands`."""
