"""Names in a charter that mean nobody and nothing here: the file can be read, and does not fit where it lies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from greenroom.app.hands.toolbox import Toolbox
from greenroom.app.organisation.charter import Charter
from greenroom.app.organisation.charter_words import said
from greenroom.core.base.errors import Refused
from greenroom.core.state.spec import AgentSpec


def misfits(charter: Charter, staff: Mapping[str, AgentSpec], tools: Toolbox, language: str) -> tuple[str, ...]:
    """A sentence for each. Without such a manager nothing begins; all else is left out until it is there."""
    managers = (bad_manager(charter, staff, name, language) for name in charter.managers)
    return (
        *(one for one in managers if one),
        *_blueprints(charter, staff, language),
        *_tools(charter, tools, language),
    )


def bad_manager(charter: Charter, staff: Mapping[str, AgentSpec], name: str, language: str) -> str:
    """Why somebody cannot manage; empty when they can."""
    if name not in staff:
        known = (one for one, spec in staff.items() if spec.manager)
        return _said("no_manager", charter, language, name=name, known=_listed(tuple(known)))
    return "" if staff[name].manager else _said("manages_not", charter, language, name=name)


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
            try:
                tools.named(name)
            except Refused as refused:
                yield _said("no_tool", charter, language, who=one.name, name=name, why=str(refused))


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))


def _said(what: str, charter: Charter, language: str, **known: object) -> str:
    return f"{charter.path}: {said(what, language, **known)}"
