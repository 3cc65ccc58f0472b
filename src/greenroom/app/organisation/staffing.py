"""The staff: agents that an organisation has, or can make more of. The house's own, and those of the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import as_file, files
from typing import Final

from greenroom.app.agents.front_matter import read_sheet
from greenroom.app.agents.specs import spec_of
from greenroom.app.organisation.names import LANGUAGES, MANAGER, ROLES
from greenroom.core.base.records import evolve
from greenroom.core.state.spec import AgentSpec

ROOM: Final = "greenroom.app.organisation.staff"


def house_agent(name: str, language: str) -> AgentSpec:
    """One of the house's own, told of its work in this language."""
    spoken = language if language in LANGUAGES else LANGUAGES[0]
    with as_file(files(ROOM) / spoken / f"{name}.md") as path:
        sheet = read_sheet(path)
    spec = spec_of(sheet.keys().values, prompt=sheet.text, default_name=name)
    return evolve(spec, language=spoken)


def house_staff(language: str) -> Mapping[str, AgentSpec]:
    """All of the house's own by name, with the one that manages."""
    return {name: house_agent(name, language) for name in (MANAGER, *ROLES)}


def all_staff(language: str, others: Mapping[str, AgentSpec]) -> Mapping[str, AgentSpec]:
    """With those of the workspace, which have their names before the house's own."""
    return {**house_staff(language), **{name: _spoken(spec, language) for name, spec in others.items()}}


def _spoken(spec: AgentSpec, language: str) -> AgentSpec:
    return evolve(spec, language=spec.language or language)
