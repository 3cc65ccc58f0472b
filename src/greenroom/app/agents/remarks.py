"""What a person should know of an agent beside its spec: what it names that is not here, what nothing reads yet."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from greenroom.app.agents.claude import Note
from greenroom.app.agents.finding import Agents, Found
from greenroom.core.state.spec import AgentSpec

UNREAD: Final = "is kept, but nothing here reads it yet; it comes with planning."

IN_JOBS: Final = frozenset({"run_checks", "propose_plan"})
"""Tools that there are where a job is done, and nowhere else."""


def remarks(one: Found, agents: Agents, tools: Collection[str] = ()) -> tuple[Note, ...]:
    """All of them: of its file, of its tools, of whom it calls. `tools` are the names of those that there are."""
    return (*one.report, *missing_tools(one.spec, tools), *_missing_agents(one.spec, agents), *_unread(one.spec))


def missing_tools(spec: AgentSpec, tools: Collection[str]) -> Iterator[Note]:
    """Tools that it names and nobody has."""
    missing = [name for name in spec.tools if name not in tools and name not in IN_JOBS]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        yield Note(key="tools", text=f"names {names}, which this Greenroom does not have: its requests leave that out.")


def _missing_agents(spec: AgentSpec, agents: Agents) -> Iterator[Note]:
    missing = [name for name in spec.calls if name not in agents.found]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        yield Note(key="calls", text=f"names {names}, whom there is not here. `greenroom agents new NAME` makes one.")


def _unread(spec: AgentSpec) -> Iterator[Note]:
    if spec.capabilities:
        yield Note(key="capabilities", text=UNREAD)
    if spec.cooperation is not None:
        yield Note(key="cooperation", text=UNREAD)
