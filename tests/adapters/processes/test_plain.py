"""Commands run plainly: the suite that all pass, and what is said of them here only."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path

import pytest

from greenroom.adapters.processes.plain import PlainCommands, birth_of, is_alive
from greenroom.core.ports.commands import Begun, Command, Commands
from tests.adapters.processes.running import commands_in
from tests.conformance.commands import CommandsConformance
from tests.conformance.running import ran, shell


@pytest.mark.req("MA-54")
class TestPlainCommands(CommandsConformance):
    def open_commands(self, root: Path, own: Mapping[str, str]) -> Commands:
        return PlainCommands(root, own=own)


async def test_a_file_that_is_no_program_says_so_in_its_output(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("text")
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, Command(words=("./notes",)))
    assert made.ended.code == 127
    assert "./notes could not be run: " in made.text


async def test_nothing_is_done_before_it_is_written_down(tmp_path: Path) -> None:
    commands = PlainCommands(tmp_path)
    try:
        async with aclosing(commands.run(shell("touch done"))) as events:
            begun = await anext(events)
            assert isinstance(begun, Begun)
            assert begun.mark is not None
            assert birth_of(int(begun.mark.key)) == begun.mark.before
        assert not (tmp_path / "done").exists()
        assert not is_alive(int(begun.mark.key))
    finally:
        commands.close()
