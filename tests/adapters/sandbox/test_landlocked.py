"""Commands behind Landlock: the suite that all pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.adapters.processes.plain import PlainCommands
from greenroom.core.ports.commands import Commands
from tests.adapters.sandbox.walls import behind, landlocked
from tests.conformance.commands import CommandsConformance, SurroundingsConformance
from tests.conformance.running import ran, shell


class Landlocked:
    """Walls of Landlock around a folder that others can reach."""

    @pytest.fixture
    def root(self, open_folder: Path) -> Path:
        found = open_folder / "work"
        found.mkdir()
        return found

    def open_commands(self, root: Path, own: Mapping[str, str]) -> Commands:
        return PlainCommands(root, own=own, wall=landlocked(root, root.parent / "scratch"))


class TestLandlockedCommands(Landlocked, SurroundingsConformance):
    """What is quick."""

    async def test_git_does_not_ask_for_what_the_machine_has_set_and_nobody_here_may_read(self, root: Path) -> None:
        async with behind(landlocked(root, root.parent / "scratch"), root) as commands:
            ended = await ran(
                commands, shell('cat /etc/gitconfig 2>&1; git init -q made && echo "$GIT_CONFIG_NOSYSTEM"')
            )
        assert ended.text.splitlines()[-1:] == ["1"]


@pytest.mark.prove
class TestAllOfLandlockedCommands(Landlocked, CommandsConformance):
    """Everything."""
