"""All that a workspace brings with it, as a person sees it before they agree."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from greenroom.app.agents.finding import Found, find_agents
from greenroom.app.trust.brought import Brought
from greenroom.app.trust.notes import brought_notes
from greenroom.app.trust.scripts import FOLDERS, brought, project_scripts

LONG: Final = 120
"""Characters of a description."""


def brought_by(root: Path, more: Iterable[Brought] = (), *, folder: Path | None = None) -> tuple[Brought, ...]:
    """Its agents, tools and callbacks, and the notes that count in a `folder` of it; `more` comes from others, who know
    what else could act."""
    agents = [of_agent(one, root) for one in find_agents(root).found.values() if one.place.whose == "project"]
    scripts = [brought(one, kind, root) for kind in FOLDERS for one in project_scripts(root, kind).found]
    return (*agents, *scripts, *more, *brought_notes(folder or root))


def troubles_in(root: Path) -> tuple[str, ...]:
    """What of it could not be looked at, and why: agents, tools and callbacks."""
    agents = (one.text for one in find_agents(root).troubles if one.whose == "project")
    return (*agents, *(trouble for kind in FOLDERS for trouble in project_scripts(root, kind).troubles))


def of_agent(one: Found, root: Path) -> Brought:
    """An agent of the project. Where its file stands decides how it is understood, so that is agreed to as well."""
    where = one.path.relative_to(root).as_posix() if one.path.is_relative_to(root) else str(one.path)
    digest = hashlib.sha256(f"{where}\0{one.digest}".encode("utf-8", "surrogateescape")).hexdigest()
    return Brought(kind="agent", name=one.spec.name, shown=" · ".join((where, *_wants(one))), digest=digest)


def _wants(one: Found) -> Iterator[str]:
    """What it is for, and what it would have."""
    spec = one.spec
    what = " ".join((spec.description or spec.role).split())
    if what:
        yield what if len(what) <= LONG else f"{what[: LONG - 1]}…"
    model = str((spec.llm_config or {}).get("model", ""))
    for word, names in (
        ("tools", spec.tools),
        ("groups", spec.groups),
        ("calls", spec.calls),
        ("model", (model,) if model else ()),
    ):
        if names:
            yield f"{word}: {', '.join(names)}"
    if not spec.tools and not spec.groups:
        yield "says nothing about tools"
