"""Who is meant: an agent by its id, or by its name where only one has it."""

from __future__ import annotations

from collections.abc import Iterable

from greenroom.abilities.skills.planned.skill import Moment
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import AgentId
from greenroom.core.state.agent import Agent


def agents(moment: Moment, names: Iterable[object], among: Iterable[AgentId] | None = None) -> tuple[AgentId, ...]:
    """The agents of these names, each once; `ModelFault` lists who there is. Without `among` all of the house."""
    known = moment.world.agents
    there = [known[one] for one in (sorted(known) if among is None else among) if one in known]
    return tuple(dict.fromkeys(_agent(str(name).strip(), there) for name in names))


def _agent(name: str, there: list[Agent]) -> AgentId:
    for one in there:
        if one.agent_id == name:
            return one.agent_id
    called = [one.agent_id for one in there if one.spec.name == name]
    if len(called) == 1:
        return called[0]
    listed = ", ".join(f"{one.agent_id} ({one.spec.name})" for one in there) or "nobody"
    why = f"{len(called)} agents are called {name!r}" if called else f"There is no {name!r} here"
    raise ModelFault(f"{why}. Use an agent's id: {listed}.")
