"""Agents of files, as a program has them: the file's agent and, by name, those that it calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from greenroom.app.agents.finding import load_agent, read_agent
from greenroom.app.library.blueprint import Blueprint
from greenroom.core.state.spec import AgentSpec


def spec_in(source: str | Path) -> AgentSpec:
    """The agent in this file; without a path in it, the one of this name that can be used in the current folder."""
    path = Path(source)
    if isinstance(source, Path) or path.suffix == ".md" or path.name != source:
        return read_agent(path)
    return load_agent(Path.cwd(), source)


def bring_along(agent: Blueprint[Any]) -> None:
    """Give an agent those that it calls and was not given, and them theirs. They share the tools that they name."""
    known = {one.name: one for one in (agent, *agent.agents)}
    todo = [agent]
    for one in todo:
        for name in one.spec.calls:
            if name not in known:
                spec = load_agent(Path.cwd(), name)
                known[name] = Blueprint(
                    name, spec=spec, tools=[each for each in agent.tools if each.name in spec.tools]
                )
                todo.append(known[name])
        one.agents = tuple(known[name] for name in one.spec.calls)
