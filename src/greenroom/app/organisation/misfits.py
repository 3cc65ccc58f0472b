"""Names in a charter that mean nobody and nothing here: the file can be read, and does not fit where it lies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from greenroom.app.hands.toolbox import Toolbox
from greenroom.app.organisation.charter import Charter
from greenroom.app.organisation.charter_words import said
from greenroom.core.base.errors import Refused
from greenroom.core.base.ids import looks_like
from greenroom.core.state.spec import AgentSpec


def misfits(charter: Charter, staff: Mapping[str, AgentSpec], tools: Toolbox, language: str) -> tuple[str, ...]:
    """A sentence for each. Without such a manager nothing begins, a person stays under whichever name; all else is left
    out until it is there."""
    return (
        *bad_managers(charter, staff, language),
        *_people(charter, staff, language),
        *_blueprints(charter, staff, language),
        *_tools(charter, tools, language),
    )


def bad_managers(charter: Charter, staff: Mapping[str, AgentSpec], language: str) -> tuple[str, ...]:
    """Why those cannot manage who cannot."""
    known = _listed(tuple(one for one, spec in staff.items() if spec.manager))
    return tuple(
        _said("manages_not" if name in staff else "no_manager", charter, language, name=name, known=known)
        for name in charter.managers
        if name not in staff or not staff[name].manager
    )


def _people(charter: Charter, staff: Mapping[str, AgentSpec], language: str) -> Iterator[str]:
    for one in charter.people:
        if any(looks_like(one.name, name) for name in staff):
            yield _said("an_agent", charter, language, name=one.name)


def _blueprints(charter: Charter, staff: Mapping[str, AgentSpec], language: str) -> Iterator[str]:
    workers = tuple(one for one, spec in staff.items() if not spec.manager)
    for name in charter.blueprints:
        if name not in staff:
            yield _said("no_blueprint", charter, language, name=name, known=_listed(workers))
        elif staff[name].manager:
            yield _said("manages", charter, language, name=name)


def _tools(charter: Charter, tools: Toolbox, language: str) -> Iterator[str]:
    for one in charter.people:
        for name in one.tools or ():
            why = bad_tool(tools, name)
            if why:
                yield _said("no_tool", charter, language, who=one.name, name=name, why=why)


def bad_tool(tools: Toolbox, name: str) -> str:
    """Why nobody can use it by hand; empty when people can."""
    try:
        tools.named(name)
    except Refused as refused:
        return str(refused)
    return ""


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))


def _said(what: str, charter: Charter, language: str, **known: object) -> str:
    return f"{charter.path}: {said(what, language, **known)}"
