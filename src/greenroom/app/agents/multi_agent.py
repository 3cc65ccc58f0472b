"""The agents of a MultiAgent: the list of dictionaries with which a program of that design describes them."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom.app.agents.keys import BadKey, plain
from greenroom.app.agents.specs import spec_of, versioned
from greenroom.app.settings.reading import meant
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.state.spec import AgentSpec


def agents_config(
    agents_config: Sequence[Data], main_agent_name: str, common_system_prompt: str = ""
) -> tuple[AgentSpec, ...]:
    """The agents of a MultiAgent, the main one first. The others do not end a task by themselves."""
    made: dict[str, AgentSpec] = {}
    for place, item in enumerate(agents_config):
        spec = _item(item, f"agents_config[{place}]", common_system_prompt)
        if spec.name in made:
            raise WorldFault(f"agents_config[{place}]: there is another agent called {spec.name!r}. Rename one.")
        made[spec.name] = spec
    main = made.pop(main_agent_name, None)
    if main is None:
        raise WorldFault(f"There is no agent {main_agent_name!r} to be the main one. {meant(main_agent_name, made)}")
    return (main, *(_second(one) for one in made.values()))


def _item(item: Data, where: str, common: str) -> AgentSpec:
    try:
        if not any(plain(key) == "name" for key in item):
            raise BadKey("name", "is missing. Each agent of a MultiAgent needs one.")
        spec = spec_of({**item, "design": "jarvis"})
    except BadKey as fault:
        raise WorldFault(f"{where}: {fault}") from None
    return versioned(evolve(spec, prompt=f"{common}\n\n{spec.prompt}")) if common.strip() else spec


def _second(spec: AgentSpec) -> AgentSpec:
    return versioned(evolve(spec, turn=evolve(spec.turn, auto_complete=False)))
