"""Commands that are run: what they print, how they end, where they begin, what cannot be begun."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from greenroom.adapters.commands.plain import PlainCommands
from greenroom.adapters.workers import processes
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import Begun, Command, Ended
from tests.adapters.commands.running import commands_in, ran, shell


async def test_output_comes_in_order_and_the_exit_code_last(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell("echo one; echo two >&2; echo three; exit 3"))
    assert made.text == "one\ntwo\nthree\n"
    assert (made.ended.how, made.ended.code, made.ended.strays, made.ended.contained) == ("exited", 3, 0, True)
    assert 0 < made.ended.seconds < 30


async def test_a_command_that_kills_itself_says_by_which_signal(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell("kill -SEGV $$"))
    assert (made.ended.how, made.ended.code, made.ended.signal) == ("signalled", None, 11)


async def test_a_broken_pipe_ends_a_command_as_everywhere(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, shell("set -o pipefail; yes | head -n 1"))
    assert (made.text, made.ended.code) == ("y\n", 128 + 13)


async def test_it_gets_nothing_of_ours_but_its_output(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, Command(words=("python3", "-c", "import os; print(os.listdir('/proc/self/fd'))")))
    assert made.text == "['0', '1', '2', '3']\n", "the fourth is the list itself"


async def test_it_begins_in_the_folder_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    async with commands_in(tmp_path) as commands:
        inner = await ran(commands, shell("touch here", folder="inner"))
        root = await ran(commands, shell("touch there; pwd"))
    assert (inner.ended.code, root.text) == (0, f"{tmp_path}\n")
    assert (tmp_path / "inner" / "here").exists()
    assert (tmp_path / "there").exists()


@pytest.mark.parametrize("folder", ["nowhere", "..", "/", "/tmp", "out", "file", "inner/../..", "a\0b"])
async def test_it_does_not_begin_outside_the_workspace(tmp_path: Path, folder: str) -> None:
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "file").touch()
    (root / "out").symlink_to("/")
    async with commands_in(root) as commands:
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
async def test_what_cannot_be_begun_says_why(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    async with commands_in(tmp_path) as commands:
        with pytest.raises(WorldFault, match=why):
            await ran(commands, Command(words=words))


async def test_a_file_that_is_no_program_says_so_in_its_output(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("text")
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, Command(words=("./notes",)))
    assert made.ended.code == 127
    assert "./notes could not be run: " in made.text


async def test_nothing_is_done_before_it_is_written_down(tmp_path: Path) -> None:
    commands = PlainCommands(tmp_path, mark=processes.mark)
    try:
        async with aclosing(commands.run(shell("touch done"))) as events:
            begun = await anext(events)
            assert isinstance(begun, Begun)
            assert begun.mark is not None
            assert processes.born(int(begun.mark.key)) == begun.mark.before
            assert not (tmp_path / "done").exists()
        assert not (tmp_path / "done").exists(), "nobody asked for more, so it never went"
        assert not processes.alive(int(begun.mark.key))
    finally:
        commands.close()


async def test_nothing_is_run_when_all_is_closed(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        await ran(commands, shell("true"))
    with pytest.raises(WorldFault, match="the run is over"):
        await ran(commands, shell("true"))


async def test_many_commands_run_at_once(tmp_path: Path) -> None:
    async with commands_in(tmp_path) as commands:
        streams = [commands.run(shell(f"echo {number}")) for number in range(20)]
        for stream in streams:
            await anext(stream)
        ends = [[event async for event in stream][-1] for stream in streams]
    assert all(isinstance(end, Ended) and end.code == 0 for end in ends)
