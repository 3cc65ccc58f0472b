"""Commands behind Landlock: the suite that all pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.adapters.commands.plain import PlainCommands
from greenroom.core.ports.commands import Commands
from greenroom.testing.conformance.commands import CommandsConformance, SurroundingsConformance
from tests.adapters.sandbox.walls import landlocked


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


@pytest.mark.prove
class TestAllOfLandlockedCommands(Landlocked, CommandsConformance):
    """Everything."""
