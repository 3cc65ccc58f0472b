"""Commands in namespaces: the suite that all pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.adapters.processes.plain import PlainCommands
from greenroom.core.ports.commands import Commands
from tests.adapters.sandbox.walls import walled
from tests.conformance.commands import CommandsConformance, RunConformance


class Walled:
    """Walls of namespaces."""

    def open_commands(self, root: Path, own: Mapping[str, str]) -> Commands:
        return PlainCommands(root, own=own, wall=walled(root, root.parent / "scratch"))


@pytest.mark.req("MA-54")
class TestWalledCommands(Walled, RunConformance):
    """What is quick."""


@pytest.mark.prove
class TestAllOfWalledCommands(Walled, CommandsConformance):
    """Everything."""
