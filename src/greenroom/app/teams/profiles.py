"""The profiles of specialists by type: the built-in ones, replaced and extended by the agents of the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from greenroom.app.agents.discovery import AgentFile, AgentFolder, Agents, read_packaged_agent
from greenroom.app.messages import translate
from greenroom.app.settings.schema import suggest_name
from greenroom.core.base.errors import RefusedError, Rejection
from greenroom.core.base.records import evolve
from greenroom.core.state.spec import AgentSpec

SPECIALISTS_PACKAGE: Final = "greenroom.app.teams.specialists"
SPECIALISTS: Final = (
    *("architect", "code-writer", "test-writer", "documentation", "refactor"),
    *("debug", "review", "translator", "optimizer", "security"),
)


class Profiles:
    """Profiles by type, which is the name of their spec."""

    def __init__(self, agents: Agents, language: str = "") -> None:
        self._by_type = {name: evolve(spec, language=spec.language or language) for name, spec in agents.specs.items()}

    def register(self, spec: AgentSpec) -> None:
        """Add a profile, or replace the one of the same type."""
        self._by_type[spec.name] = spec

    def get(self, type_: str) -> AgentSpec | None:
        """Return the profile of a type, or None."""
        return self._by_type.get(type_)

    def list(self) -> tuple[AgentSpec, ...]:
        """Return all profiles, the built-in ones first."""
        return tuple(self._by_type.values())

    def find_by_skill(self, skill: str) -> tuple[AgentSpec, ...]:
        """Return the profiles with this skill tag. Raise `RefusedError` with the nearest tag if there is none."""
        found = tuple(spec for spec in self.list() if skill in spec.capabilities)
        if not found:
            tags = dict.fromkeys(tag for spec in self.list() for tag in spec.capabilities)
            why = translate("agents.unknown_skill", skill=skill)
            raise RefusedError(Rejection(code="unknown_skill", why=why, hint=suggest_name(skill, tags)))
        return found


def add_specialists(agents: Agents, language: str) -> Agents:
    """Return these agents and the built-in specialists. An agent of the same name wins, even if its file is broken."""
    folder = AgentFolder(folder=Path(), scope="built-in")
    taken = {*agents.by_name, *(broken.name for broken in agents.broken_files)}
    specialists = {
        name: AgentFile(spec=read_packaged_agent(SPECIALISTS_PACKAGE, name, language), path=Path(), folder=folder)
        for name in SPECIALISTS
        if name not in taken
    }
    return evolve(agents, by_name={**specialists, **agents.by_name})


def load_profiles(agents: Agents, language: str) -> Profiles:
    """Load the built-in specialists in a language, and the workspace's own agents, which win over them."""
    return Profiles(add_specialists(agents, language), language)
