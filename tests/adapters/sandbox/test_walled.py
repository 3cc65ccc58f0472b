"""Commands in namespaces: the suite that all pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.adapters.commands.plain import PlainCommands
from greenroom.core.ports.commands import Commands
from greenroom.testing.conformance.commands import CommandsConformance
from tests.adapters.sandbox.walls import walled


@pytest.mark.req("MA-54")
class TestWalledCommands(CommandsConformance):
    def open_commands(self, root: Path, own: Mapping[str, str]) -> Commands:
        return PlainCommands(root, own=own, wall=walled(root, root.parent / "scratch"))
