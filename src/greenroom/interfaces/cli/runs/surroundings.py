"""Where this was typed: the folder, its workspace, agents and notes. Loaded by name: reading agents takes its time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from greenroom.app.agents import Agents, find_agents
from greenroom.app.trust import agreed, agreed_notes, own_ledger
from greenroom.app.workspace import current_folder, workspace_root


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A folder, seen by whoever works there."""

    folder: Path

    @property
    def root(self) -> Path:
        """Where its workspace begins."""
        return workspace_root(self.folder)

    def notes(self) -> str:
        """What its people wrote for whoever works there; labelled, as far as nobody has agreed to it."""
        return agreed_notes(self.folder, own_ledger().trusted(self.root))

    def agents(self) -> Agents:
        """The agents that may be used there: not those that it brings and nobody has agreed to."""
        return agreed(find_agents(self.folder), self.root, own_ledger().trusted(self.root))


def surroundings() -> Surroundings:
    """Those of this process."""
    return Surroundings(current_folder())
